"""Generated clusters: the workloads of the upstream scheduler's own benchmark, by their names.

Covers: which objects make a workload, in any size. Does not cover: single objects (``templates``),
churn over time: where upstream creates and deletes objects meanwhile, they are here from the start.

Workloads that measure claims to devices in different ways are one here: whole devices, one a claim.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from koordlet.model import errors
from koordlet.model.record import dataclass
from koordlet.scheduler.sim import gang_trace, templates
from koordlet.scheduler.sim.templates import HOST, ZONE, Made

_ONE, _MOON = ("zone1",), ("moon-1", "moon-2", "moon-3")
_AWAY, _NEAR = "podAntiAffinity", "podAffinity"
_DEVICES = "example.com/gpu"
_NAMESPACES = ("sched-0", "sched-1")
#: So many of a kind in a workload that mixes kinds.
_MANY = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A generated workload."""

    #: Templates that its pods take in turn.
    pods: tuple[Made, ...]
    zones: tuple[str, ...] = ()
    #: Other objects that it needs.
    beside: tuple[Made, ...] = ()
    #: Changes the node of a number.
    node: Callable[[int, Made], None] = lambda _number, _node: None
    #: Pods of low priority that fill each node before.
    full: bool = False
    #: What the volume of each pod is.
    volume: Callable[[int], Made] | None = None
    #: Devices that each node has for claims.
    devices: int = 0
    #: Its pods are those of ``gang_trace`` instead.
    gangs: bool = False


def _shape(*pods: Made, **more: Any) -> Shape:
    return Shape(pods=pods, **more)


def _tainted(number: int, node: Made) -> None:
    if number % 5 == 0:
        node["spec"]["taints"] = [{"key": "foo", "value": "", "effect": "NoSchedule"}]


def _featured(_number: int, node: Made) -> None:
    node["status"]["declaredFeatures"] = [f"Feature{number}" for number in range(20)]


def _cordoned(number: int, node: Made) -> None:
    if number % 2:
        node["spec"]["unschedulable"] = True


def _waiting() -> list[Made]:
    """One pod for each reason to wait."""
    port = templates.pod()
    port["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    return [
        templates.spread("DoNotSchedule", topologyKey=HOST, maxSkew=1),
        port,
        templates.pod("3"),
        templates.near("blue", _AWAY, HOST, required=True),
        templates.gated(templates.light()),
    ]


_SERVICE: Made = {
    "kind": "Service",
    "metadata": {"name": "service", "namespace": "sched-1"},
    "spec": {"selector": {"app": "scheduler-perf"}},
}
_PLAIN, _LIGHT = templates.pod(), templates.light()
#: Ordinary pods, and now and then one that is too large for any node.
_CHURNED = (*[_PLAIN] * _MANY, templates.pod("9", priority=10))
_LARGE = templates.pod("3000m", priority=10)
_GREEN_AWAY = templates.near("green", _AWAY, HOST, required=True)
_BLUE_NEAR = templates.near("blue", _NEAR, ZONE, required=True)
_RED_NEAR = templates.near("red", _NEAR, HOST, required=False)
_YELLOW_AWAY = templates.near("yellow", _AWAY, HOST, required=False)
_TEAM = functools.partial(templates.devoted, "green")

_SHAPES: Mapping[str, Shape] = {
    # affinity
    "SchedulingPodAntiAffinity": _shape(_GREEN_AWAY),
    "SchedulingPodMatchingAntiAffinity": _shape(
        _GREEN_AWAY, *[templates.labelled(templates.pod(), color="green")] * 5
    ),
    "SchedulingPodAffinity": _shape(_BLUE_NEAR, zones=_ONE),
    "SchedulingPreferredPodAffinity": _shape(_RED_NEAR),
    "SchedulingPreferredPodAntiAffinity": _shape(_YELLOW_AWAY),
    "SchedulingNodeAffinity": _shape(templates.in_zone(), zones=_ONE),
    "MixedSchedulingBasePod": _shape(
        *(_PLAIN, _BLUE_NEAR, _GREEN_AWAY, _RED_NEAR, _YELLOW_AWAY), zones=_ONE
    ),
    "SchedulingRequiredPodAntiAffinityWithNSSelector": _shape(_TEAM(_AWAY, HOST, required=True)),
    "SchedulingPreferredAntiAffinityWithNSSelector": _shape(_TEAM(_AWAY, HOST, required=False)),
    "SchedulingRequiredPodAffinityWithNSSelector": _shape(
        _TEAM(_NEAR, ZONE, required=True), zones=_ONE
    ),
    "SchedulingPreferredAffinityWithNSSelector": _shape(_TEAM(_NEAR, HOST, required=False)),
    "SchedulingGatedPodsWithPodAffinityImpactForThroughput": _shape(
        templates.gated(templates.near("green", _NEAR, HOST, required=True)),
        templates.labelled(templates.light(), color="green"),
    ),
    # misc
    "SchedulingBasic": _shape(_PLAIN),
    "SchedulingDaemonset": _shape(templates.pod("0", "0")),
    "PreemptionBasic": _shape(_LARGE, full=True),
    "PreemptionAsync": _shape(*[_PLAIN] * _MANY, _LARGE, full=True),
    "Unschedulable": _shape(*_CHURNED),
    "SchedulingWithMixedChurn": _shape(*_CHURNED, beside=(_SERVICE,)),
    "SchedulingWhileGated": _shape(_LIGHT, templates.gated(templates.light())),
    "SchedulingDeletedPodsWithFinalizers": _shape(_LIGHT),
    "NodeDeclaredFeaturesEnabled": _shape(templates.together(), node=_featured),
    # topology spreading
    "TopologySpreading": _shape(templates.spread("DoNotSchedule"), zones=_MOON),
    "PreferredTopologySpreading": _shape(templates.spread("ScheduleAnyway"), zones=_MOON),
    "DefaultTopologySpreading": _shape(
        templates.labelled(templates.pod(), app="scheduler-perf"), zones=_MOON, beside=(_SERVICE,)
    ),
    "SchedulingWithNodeInclusionPolicy": _shape(
        templates.spread("DoNotSchedule", topologyKey=HOST, maxSkew=1, nodeTaintsPolicy="Honor"),
        node=_tainted,
    ),
    # volumes
    "SchedulingSecrets": _shape(
        templates.pod(volumes=[{"name": "secret", "secret": {"secretName": "secret"}}])
    ),
    "SchedulingInTreePVs": _shape(_PLAIN, volume=templates.ebs),
    "SchedulingMigratedInTreePVs": _shape(_PLAIN, volume=templates.ebs),
    "SchedulingCSIPVs": _shape(_PLAIN, volume=templates.csi),
    "PreemptionPVs": _shape(_LARGE, full=True, volume=templates.ebs),
    # events
    "EventHandlingPodDelete": _shape(*_waiting(), zones=_MOON),
    "EventHandlingPodUpdate": _shape(*_waiting(), node=_cordoned),
    "EventHandlingPodAdd": _shape(
        templates.near("blue", _NEAR, HOST, required=True),
        templates.labelled(templates.pod(), color="blue"),
    ),
    "EventHandlingNodeAdd": _shape(templates.in_zone(), *_waiting(), zones=_ONE),
    "EventHandlingNodeUpdate": _shape(*_waiting(), node=_cordoned),
    # ours: upstream has none of mixed sizes
    "SchedulingGangs": _shape(gangs=True),
    # claims to devices, and devices as extended resources
    **dict.fromkeys(
        (
            "ConsumableCapacity", "DeviceTaintToleration", "FirstAvailable", "Partitionable",
            "PartitionableBacktracking", "PublishResourceSlices", "SchedulingWithResourceClaim",
            "SchedulingWithResourceClaimTemplate", "SteadyStateClusterResourceClaimTemplate",
        ),
        _shape(templates.claiming(), beside=templates.claimable(_NAMESPACES[1]), devices=8),
    ),
    **dict.fromkeys(
        (
            "SchedulingWithExtendedResource", "ExtendedResource", "ExtendedResourceScoring",
            "ExtendedResource_25Classes", "ExtendedResource_50Classes",
            "ImplicitExtendedResource_25Classes",
        ),
        _shape(templates.extended(_DEVICES), beside=(templates.device_class(_DEVICES),), devices=8),
    ),
}  # fmt: skip

NAMES = tuple(_SHAPES)


def generate(name: str, nodes: int, pods: int) -> Iterator[Made]:
    """The objects of a workload."""
    if name not in _SHAPES:
        raise errors.ConfigError(
            "no such workload", culprit=name[:80], fix=f"one of {', '.join(NAMES)}"
        )
    shape = _SHAPES[name]
    for namespace in _NAMESPACES:
        yield {"kind": "Namespace", "metadata": {"name": namespace, "labels": {"team": "devops"}}}
    for number in range(nodes):
        node = templates.node(number, shape.zones)
        shape.node(number, node)
        yield node
        if shape.devices:
            yield templates.devices(number, shape.devices)
    yield from shape.beside
    if shape.full:
        low = templates.pod("900m", terminationGracePeriodSeconds=0, priority=0)
        for number in range(4 * nodes):
            yield _named(low, f"low-{number}", node=f"node-{number % nodes}")
    if shape.gangs:
        yield from gang_trace.pods_and_groups(pods, _NAMESPACES[1])
        return
    for number in range(pods):
        pod = _named(shape.pods[number % len(shape.pods)], f"pod-{number}")
        if shape.volume is not None:
            yield from templates.storage(number, shape.volume(number))
            claim = {"claimName": f"pvc-{number}"}
            mounted = [{"name": "vol", "persistentVolumeClaim": claim}]
            pod["spec"] = {**pod["spec"], "volumes": mounted}
        yield pod


def _named(template: Made, name: str, node: str = "") -> Made:
    pod = copy.copy(template)
    pod["kind"] = "Pod"
    pod["metadata"] = {**template["metadata"], "name": name, "namespace": "sched-1"}
    if node:
        pod["spec"] = {**template["spec"], "nodeName": node}
    return pod
