"""Views for tests: a small machine with two workloads, and large ones.

Covers: ``view()`` with every part filled, and what a test wants to change about it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from koordlet.model import (
    absence,
    action,
    cgroup,
    cpuset,
    decision,
    ledger,
    plan,
    pod,
    qos,
    result,
    snapshot,
    topology,
)
from koordlet.report import view as published

EPOCH = "epoch-1"
WALL = 1_790_000_000.25


def machine(cpus: int = 8, nodes: int = 2) -> topology.Topology:
    """CPUs in pairs of siblings, evenly on NUMA nodes; the last CPU is offline."""
    online = cpuset.CPUSet.span(0, cpus - 2)
    per_node = cpus // nodes
    return topology.Topology(
        cpus=tuple(
            topology.Cpu(cpu=n, online=True, core=n // 2, socket=0, node=n // per_node, l3=0)
            if n in online
            else topology.Cpu(cpu=n, online=False)
            for n in range(cpus)
        ),
        nodes=tuple(
            topology.Node(
                node=n,
                cpus=cpuset.CPUSet.span(n * per_node, (n + 1) * per_node - 1) & online,
                memory_bytes=1 << 30,
                distances=tuple(10 if m == n else 21 for m in range(nodes)),
            )
            for n in range(nodes)
        ),
        possible=cpuset.CPUSet.span(0, cpus - 1),
        present=cpuset.CPUSet.span(0, cpus - 1),
        online=online,
        offline=cpuset.CPUSet.of([cpus - 1]),
        smt="on",
        vendor="GenuineIntel",
        arch="x86_64",
    )


def workload(name: str, kind: qos.Qos = qos.Qos.LS, *, namespace: str = "default") -> pod.Pod:
    """One workload with a group of its own."""
    return pod.Pod(
        uid=f"uid-{name}",
        namespace=namespace,
        name=name,
        qos=kind,
        source="configuration",
        group=f"shop/{name}",
        match=f"cgroup=shop/{name}",
    )


def pods(number: int) -> tuple[pod.Pod, ...]:
    """Many workloads."""
    return tuple(workload(f"pod-{n:05}", namespace=f"team-{n % 7}") for n in range(number))


def groups(workloads: tuple[pod.Pod, ...]) -> dict[str, cgroup.Group]:
    """The groups of workloads, on CPUs 2-6."""
    values = {"cpuset.cpus": "2-6", "cpuset.cpus.effective": "2-6"}
    return {
        owner.group: cgroup.Group(path=owner.group, inode=n, values=values)
        for n, owner in enumerate(workloads, start=2)
        if owner.group is not None
    }


def made_plan(**changes: Any) -> plan.Plan:
    """A plan with one step, one claim, two pools, one condition, one missing feature."""
    step = plan.Step(
        order=0,
        action=action.WriteFile(
            target="/sys/fs/cgroup/shop/web/cpuset.cpus",
            value="2-6",
            policy="shared_pools",
            reason="the LS pool",
            group="shop/web",
        ),
        was="0-6",
    )
    missing = (absence.Unsupported("resctrl", "the processor has none"),)
    base = plan.Plan(
        steps=(step,),
        conditions=(
            decision.Condition(type="PoolTooSmall", status=False, reason="Enough", subject="node"),
        ),
        ledger=ledger.Ledger(
            claims=(
                ledger.Claim(
                    owner=ledger.Owner.RESERVED,
                    cpus=cpuset.CPUSet.span(0, 1),
                    holder="node",
                    policy="reserved_cpus",
                    reason="configured",
                ),
            ),
            pools=(
                ledger.Pool(kind="LS", cpus=cpuset.CPUSet.span(2, 3), socket=0, node=0),
                ledger.Pool(kind="LS", cpus=cpuset.CPUSet.span(4, 6), socket=0, node=1),
                ledger.Pool(kind="BE", cpus=cpuset.CPUSet.span(4, 6), socket=0, node=1),
            ),
        ),
        unsupported=missing,
        explanations={"reserved_cpus": {"wanted": "0-1"}, "shared_pools": {}},
    )
    return dataclasses.replace(base, **changes)


def view(
    workloads: tuple[pod.Pod, ...] | None = None,
    *,
    at: float = 100.0,
    usage: Mapping[str, float | None] | None = None,
    made: plan.Plan | None = None,
    shape: topology.Topology | None = None,
    **changes: Any,
) -> published.ReportView:
    """A view of a node called ``n1``; further keywords replace its fields."""
    if workloads is None:
        workloads = (workload("web"), workload("batch", qos.Qos.BE))
    seen = snapshot.Snapshot(
        at=at,
        wall=WALL,
        boot_id="boot-1",
        machine_id="machine-1",
        node=snapshot.NodeInfo(name="n1"),
        topology=MACHINE if shape is None else shape,
        layout=cgroup.Layout(),
        groups=groups(workloads),
        pods=workloads,
        sources=(snapshot.Source(name="configuration", ok=True, last_good=at - 0.5, local=True),),
        unsupported=(absence.Unsupported("resctrl", "the processor has none"),),
    )
    if usage is None:
        usage = {first.key: 1.5 for first in workloads[:1]}
    shown = made_plan() if made is None else made
    base = published.ReportView(
        epoch=EPOCH,
        revision=1,
        mode="enforce",
        ready=True,
        snapshot=seen,
        plan=shown,
        results=(
            result.Result(
                target="/sys/fs/cgroup/shop/web/cpuset.cpus", verdict=result.Verdict.DONE
            ),
        ),
        usage=usage,
        checks=(published.Check(name="policies", ok=True), published.Check(name="writes", ok=True)),
        counters=published.AgentCounters(ticks=42, writes=7, failures={"shared_pools": 2}),
    )
    return dataclasses.replace(base, **changes)


MACHINE = machine()
