"""A view as the messages of the feed, section by section.

Covers: every field of the sections, without usage (``encode_usage``).
Does not cover: what changed (``feed``), sending (``server``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from koordlet.model import cgroup, pod, remember, topology
from koordlet.report import view
from koordlet.rpc import plain
from koordlet.rpc.gen import feed_pb2


def summary(now: view.ReportView, version: str) -> feed_pb2.Summary:
    """Identity of the agent."""
    seen = now.snapshot
    return feed_pb2.Summary(
        name=plain.text(seen.node.name),
        machine_id=seen.machine_id,
        boot_id=seen.boot_id,
        mode=now.mode,
        ready=now.ready,
        version=version,
    )


def machine(shape: topology.Topology) -> feed_pb2.Topology:
    """The machine."""
    return feed_pb2.Topology(
        cpus=[plain.message(feed_pb2.Cpu, cpu) for cpu in shape.cpus],
        nodes=[plain.message(feed_pb2.NumaNode, node) for node in shape.nodes],
    )


def allocation(now: view.ReportView) -> feed_pb2.Allocation:
    """Owner of each CPU."""
    ledger = now.plan.ledger
    return feed_pb2.Allocation(
        claims=[plain.message(feed_pb2.Claim, claim) for claim in ledger.claims],
        pools=[plain.message(feed_pb2.Pool, pool) for pool in ledger.pools],
    )


def conditions(now: view.ReportView) -> feed_pb2.Conditions:
    """Conditions that are true."""
    gaps = now.plan.unsupported
    return feed_pb2.Conditions(
        conditions=[plain.message(feed_pb2.Condition, met) for met in now.plan.conditions],
        unsupported=[plain.message(feed_pb2.Unsupported, gap) for gap in gaps],
    )


def workload(workload: pod.Pod, groups: Mapping[str, cgroup.Group]) -> feed_pb2.Workload:
    """A workload and its placement, without usage."""
    group = groups.get(workload.group) if workload.group is not None else None
    cpus = (group.effective() or group.cpus()) if group is not None else None
    return plain.message(
        feed_pb2.Workload,
        workload,
        cgroup=None if workload.group is None else plain.text(workload.group),
        cpus=None if cpus is None else str(cpus),
    )


def _without_use(
    pods: Sequence[pod.Pod], groups: Mapping[str, cgroup.Group]
) -> tuple[list[str], feed_pb2.Workloads]:
    workloads = [workload(member, groups) for member in pods]
    return [member.key for member in pods], feed_pb2.Workloads(workloads=workloads)


class Workloads:
    """Makes the section, with what it needs to know of the last one."""

    def __init__(self) -> None:
        self._without_use = remember.last(_without_use)

    def made(self, now: view.ReportView) -> feed_pb2.Workloads:
        """Workload section of this view; the section is immutable afterwards."""
        keys, without_use = self._without_use(now.snapshot.pods, now.snapshot.groups)
        workloads = feed_pb2.Workloads()
        workloads.CopyFrom(without_use)
        for key, member in zip(keys, workloads.workloads, strict=True):
            cores = now.usage.get(key)
            if cores is not None:
                member.usage_milli = max(0, round(cores * 1000))
        return workloads
