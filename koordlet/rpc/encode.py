"""A view as the messages of the feed, section by section.

Covers: every field of the sections, without usage (``encode_usage``).
Does not cover: what changed (``feed``), sending (``server``).

Texts from outside (names of groups, of pods) may be no UTF-8; protobuf takes nothing else, so what
cannot be said is replaced by a question mark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from koordlet.model import cgroup, pod, topology
from koordlet.report import view
from koordlet.rpc.gen import feed_pb2


def summary(now: view.ReportView, version: str) -> feed_pb2.Summary:
    """Identity of the agent."""
    seen = now.snapshot
    return feed_pb2.Summary(
        name=_text(seen.node.name),
        machine_id=seen.machine_id,
        boot_id=seen.boot_id,
        mode=now.mode,
        ready=now.ready,
        version=version,
    )


def machine(found: topology.Topology) -> feed_pb2.Topology:
    """The machine."""
    return feed_pb2.Topology(
        cpus=[
            feed_pb2.Cpu(
                cpu=cpu.cpu,
                online=cpu.online,
                core=cpu.core,
                socket=cpu.socket,
                node=cpu.node,
                l3=cpu.l3,
            )
            for cpu in found.cpus
        ],
        nodes=[
            feed_pb2.NumaNode(
                node=node.node,
                cpus=str(node.cpus),
                memory_bytes=node.memory_bytes,
                distances=node.distances,
            )
            for node in found.nodes
        ],
    )


def allocation(now: view.ReportView) -> feed_pb2.Allocation:
    """Owner of each CPU."""
    ledger = now.plan.ledger
    return feed_pb2.Allocation(
        claims=[
            feed_pb2.Claim(
                owner=claim.owner.value,
                cpus=str(claim.cpus),
                holder=_text(claim.holder),
                policy=claim.policy,
                reason=_text(claim.reason),
            )
            for claim in ledger.claims
        ],
        pools=[
            feed_pb2.Pool(kind=pool.kind, cpus=str(pool.cpus), socket=pool.socket, node=pool.node)
            for pool in ledger.pools
        ],
    )


def conditions(now: view.ReportView) -> feed_pb2.Conditions:
    """Conditions that are true."""
    return feed_pb2.Conditions(
        conditions=[
            feed_pb2.Condition(
                type=condition.type,
                status=condition.status,
                reason=_text(condition.reason),
                message=_text(condition.message),
                subject=_text(condition.subject),
            )
            for condition in now.plan.conditions
        ],
        unsupported=[
            feed_pb2.Unsupported(feature=one.feature, why=_text(one.why))
            for one in now.plan.unsupported
        ],
    )


def workload(one: pod.Pod, groups: Mapping[str, cgroup.Group]) -> feed_pb2.Workload:
    """A workload and its placement, without usage."""
    group = groups.get(one.group) if one.group is not None else None
    cpus = (group.effective() or group.cpus()) if group is not None else None
    return feed_pb2.Workload(
        uid=_text(one.uid),
        namespace=_text(one.namespace),
        name=_text(one.name),
        qos=one.qos.value,
        cgroup=None if one.group is None else _text(one.group),
        cpus=None if cpus is None else str(cpus),
    )


def _text(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


class Workloads:
    """Makes the section, with what it needs to know of the last one."""

    def __init__(self) -> None:
        self._pods: Sequence[pod.Pod] | None = None
        self._groups: Mapping[str, cgroup.Group] | None = None
        self._keys: list[str] = []
        self._without_use = feed_pb2.Workloads()

    def made(self, now: view.ReportView) -> feed_pb2.Workloads:
        """Workload section of this view; the section is immutable afterwards."""
        seen = now.snapshot
        if seen.pods is not self._pods or seen.groups is not self._groups:
            self._pods, self._groups = seen.pods, seen.groups
            self._keys = [one.key for one in seen.pods]
            self._without_use = feed_pb2.Workloads(
                workloads=[workload(one, seen.groups) for one in seen.pods]
            )
        workloads = feed_pb2.Workloads()
        workloads.CopyFrom(self._without_use)
        for key, one in zip(self._keys, workloads.workloads, strict=True):
            cores = now.usage.get(key)
            if cores is not None:
                one.usage_milli = max(0, round(cores * 1000))
        return workloads
