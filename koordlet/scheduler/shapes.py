"""Generated clusters: the shapes of the upstream scheduler's own benchmark.

Covers: the named workloads as Kubernetes objects, of any size. Does not cover: churn over time;
where upstream creates and deletes objects meanwhile, the objects are here from the start.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from koordlet.model import errors

Made = dict[str, Any]

_IMAGE = "registry.k8s.io/pause:3.10.1"
_HOST, _ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _pod(cpu: str = "100m", memory: str = "500Mi", **spec: Any) -> Made:
    amounts = {"cpu": cpu, "memory": memory}
    container = {
        "name": "pause",
        "image": _IMAGE,
        "ports": [{"containerPort": 80}],
        "resources": {"limits": amounts, "requests": amounts},
    }
    return {"metadata": {}, "spec": {"containers": [container], **spec}}


def _labelled(pod: Made, **labels: str) -> Made:
    pod["metadata"]["labels"] = labels
    return pod


def _near(color: str, kind: str, key: str, *, required: bool) -> Made:
    term = {
        "labelSelector": {"matchLabels": {"color": color}},
        "topologyKey": key,
        "namespaces": ["sched-1", "sched-0"],
    }
    wanted: Made = {_REQUIRED: [term]}
    if not required:
        wanted = {_PREFERRED: [{"weight": 1, "podAffinityTerm": term}]}
    return _labelled(_pod(affinity={kind: wanted}), color=color)


def _spread(when: str) -> Made:
    constraint = {
        "maxSkew": 5,
        "topologyKey": _ZONE,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"color": "blue"}},
    }
    return _labelled(_pod(topologySpreadConstraints=[constraint]), color="blue")


def _in_zone() -> Made:
    needs = [{"key": _ZONE, "operator": "In", "values": ["zone1", "zone2"]}]
    return _pod(
        affinity={"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": needs}]}}}
    )


#: Name to the zones of its nodes, and the templates that its pods take in turn.
_SHAPES: dict[str, tuple[tuple[str, ...], Callable[[], list[Made]]]] = {
    "SchedulingBasic": ((), lambda: [_pod()]),
    "SchedulingPodAntiAffinity": (
        (),
        lambda: [_near("green", "podAntiAffinity", _HOST, required=True)],
    ),
    "SchedulingPodMatchingAntiAffinity": (
        (),
        lambda: [
            _near("green", "podAntiAffinity", _HOST, required=True),
            *(_labelled(_pod(), color="green") for _ in range(5)),
        ],
    ),
    "SchedulingPodAffinity": (
        ("zone1",),
        lambda: [_near("blue", "podAffinity", _ZONE, required=True)],
    ),
    "SchedulingPreferredPodAffinity": (
        (),
        lambda: [_near("red", "podAffinity", _HOST, required=False)],
    ),
    "SchedulingPreferredPodAntiAffinity": (
        (),
        lambda: [_near("yellow", "podAntiAffinity", _HOST, required=False)],
    ),
    "SchedulingNodeAffinity": (("zone1",), lambda: [_in_zone()]),
    "MixedSchedulingBasePod": (
        ("zone1",),
        lambda: [
            _pod(),
            _near("blue", "podAffinity", _ZONE, required=True),
            _near("green", "podAntiAffinity", _HOST, required=True),
            _near("red", "podAffinity", _HOST, required=False),
            _near("yellow", "podAntiAffinity", _HOST, required=False),
        ],
    ),
    "TopologySpreading": (("moon-1", "moon-2", "moon-3"), lambda: [_spread("DoNotSchedule")]),
    "PreferredTopologySpreading": (
        ("moon-1", "moon-2", "moon-3"),
        lambda: [_spread("ScheduleAnyway")],
    ),
    "DefaultTopologySpreading": (
        ("moon-1", "moon-2", "moon-3"),
        lambda: [_labelled(_pod(), app="scheduler-perf")],
    ),
    "PreemptionBasic": ((), lambda: [_pod("3000m", priority=10)]),
    "Unschedulable": ((), lambda: [*(_pod() for _ in range(9)), _pod("9", priority=10)]),
    "SchedulingWithMixedChurn": (
        (),
        lambda: [*(_pod() for _ in range(9)), _pod("9", priority=10)],
    ),
    "SchedulingSecrets": (
        (),
        lambda: [_pod(volumes=[{"name": "secret", "secret": {"secretName": "secret"}}])],
    ),
    "SchedulingDaemonset": ((), lambda: [_pod("0", "0")]),
    "SchedulingWhileGated": (
        (),
        lambda: [_pod("0", "0"), _pod(schedulingGates=[{"name": "test.k8s.io/hold"}])],
    ),
}

NAMES = tuple(_SHAPES)


def generate(name: str, nodes: int, pods: int) -> Iterator[Made]:
    """The objects of a workload."""
    if name not in _SHAPES:
        raise errors.ConfigError(
            "no such workload", culprit=name[:80], fix=f"one of {', '.join(NAMES)}"
        )
    zones, templates = _SHAPES[name]
    for namespace in ("sched-0", "sched-1"):
        yield {"kind": "Namespace", "metadata": {"name": namespace}}
    for number in range(nodes):
        yield _node(number, zones)
    if name == "DefaultTopologySpreading":
        yield {
            "kind": "Service",
            "metadata": {"name": "service", "namespace": "sched-1"},
            "spec": {"selector": {"app": "scheduler-perf"}},
        }
    if name == "PreemptionBasic":
        low = _pod("900m", terminationGracePeriodSeconds=0, priority=0)
        for number in range(4 * nodes):
            yield _named(low, f"low-{number}", node=f"node-{number % nodes}")
    made = templates()
    for number in range(pods):
        yield _named(made[number % len(made)], f"pod-{number}")


def _named(template: Made, name: str, node: str = "") -> Made:
    pod = copy.copy(template)
    pod["kind"] = "Pod"
    pod["metadata"] = {**template["metadata"], "name": name, "namespace": "sched-1"}
    if node:
        pod["spec"] = {**template["spec"], "nodeName": node}
    return pod


def _node(number: int, zones: tuple[str, ...]) -> Made:
    name = f"node-{number}"
    labels = {_HOST: name}
    if zones:
        labels[_ZONE] = zones[number % len(zones)]
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"pods": "110", "cpu": "4", "memory": "32Gi"}},
    }
