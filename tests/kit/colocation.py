"""Moments with best-effort work beside latency-sensitive work, and what everybody used.

Covers: a kubelet's tree with pods of both kinds, declared workloads, histories with given use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from koordlet.history import series
from koordlet.model import (
    cgroup,
    cpuset,
    grouppath,
    ledger,
    meter,
    nodeslo,
    pod,
    qos,
    snapshot,
    strategies,
    topology,
)
from tests.kit import counting, moments

Qos = qos.Qos
KubeQos = qos.KubeQos

_ALL = frozenset({"cpuset", "cpu", "cpuacct"})
V1 = cgroup.Layout(
    hierarchies=tuple(
        cgroup.Hierarchy(mount=f"/c/{name}", unified=False, controllers=frozenset({name}))
        for name in sorted(_ALL)
    )
)
V2 = cgroup.Layout(hierarchies=(cgroup.Hierarchy(mount="/c", unified=True, controllers=_ALL),))

TREE = grouppath.Tree(root="kubepods")
TIER = TREE.tier(KubeQos.BEST_EFFORT)


def kube(name: str, kind: KubeQos, raw: Qos | None = None, **more: Any) -> pod.Pod:
    """A pod of the kubelet's, with one container."""
    group = TREE.pod(kind, name)
    return moments.workload(
        name,
        raw or qos.DEFAULT_OF_KUBE[kind],
        uid=name,
        raw_qos=raw,
        kube_qos=kind,
        group=group,
        kubelet_owned=True,
        containers=(pod.Container(name="c", id="1" * 64, group=f"{group}/{'1' * 64}"),),
        **more,
    )


def declared(name: str, kind: Qos, **more: Any) -> pod.Pod:
    """A workload of a machine without a cluster."""
    return moments.workload(name, kind, raw_qos=kind, **more)


def moment(
    shape: topology.Topology,
    pods: Sequence[pod.Pod],
    *,
    layout: cgroup.Layout = V1,
    threshold: strategies.Threshold | None = None,
    claims: Mapping[ledger.Owner, str] | None = None,
    at: float = 100.0,
) -> snapshot.Snapshot:
    """One moment at which every group above, of and below the pods may use every online CPU."""
    paths: dict[str, None] = {"": None}
    for workload in pods:
        for path in (workload.group, *(box.group for box in workload.containers)):
            if path is not None:
                paths |= dict.fromkeys((path, *cgroup.ancestors(path)))
    unified = layout is V2
    groups = [moments.group(path, str(shape.online), unified=unified) for path in paths]
    held = ledger.Ledger(
        claims=tuple(
            ledger.Claim(
                owner=owner,
                cpus=cpuset.CPUSet.parse(cpus),
                holder="x",
                policy="shared_pools",
                reason="test",
            )
            for owner, cpus in (claims or {}).items()
        )
    )
    slo = None
    if threshold is not None:
        slo = replace(
            nodeslo.DEFAULTS,
            source="NodeSLO",
            threshold=strategies.overlay(nodeslo.DEFAULTS.threshold, threshold),
        )
    now = moments.moment(shape, pods, groups=groups, layout=layout, held=held)
    return replace(now, slo=slo, at=at)


def history(
    node: float | None,
    groups: Mapping[str, float] | None = None,
    *,
    at: float = 100.0,
    seconds: int = 1,
) -> series.History:
    """What was used in the seconds before a moment, in cores; ``None`` was never read."""
    past = series.History()
    for second in range(seconds + 1):
        readings = {}
        if node is not None:
            readings["node"] = counting.reading(
                at - seconds + second, {meter.CPU: [50.0 + second * node]}, names=("",)
            )
        if groups is not None:
            readings["groups"] = counting.reading(
                at - seconds + second,
                {meter.CPU: [50.0 + second * each for each in groups.values()]},
                names=tuple(groups),
            )
        past.take(readings)
    return past
