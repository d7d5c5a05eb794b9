"""Generated clusters: the workloads of the upstream scheduler's own benchmark, by their names.

Covers: which objects make a workload, in any size. Does not cover: single objects (``templates``),
churn over time: where upstream creates and deletes objects meanwhile, they are here from the start.

Where a workload measures claims to devices, which this scheduler does not serve, its pods are here
as well, and stay pending with the message that says so.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping

from koordlet.model import errors
from koordlet.model.record import dataclass
from koordlet.scheduler.sim import templates
from koordlet.scheduler.sim.templates import HOST, ZONE, Made

_ONE, _MOON = ("zone1",), ("moon-1", "moon-2", "moon-3")
_AWAY, _NEAR = "podAntiAffinity", "podAffinity"
_DEVICES = "example.com/gpu"
#: So many of a kind in a workload that mixes kinds.
_MANY = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A generated workload."""

    #: Templates that its pods take in turn.
    pods: Callable[[], list[Made]]
    zones: tuple[str, ...] = ()
    #: Other objects that it needs.
    beside: tuple[Made, ...] = ()
    #: Changes the node of a number.
    node: Callable[[int, Made], None] = lambda _number, _node: None
    #: Pods of low priority that fill each node before.
    full: bool = False
    #: What the volume of each pod is.
    volume: Callable[[int], Made] | None = None


def _served(_number: int, node: Made) -> None:
    node["status"]["allocatable"] |= {_DEVICES: "8"}


def _tainted(number: int, node: Made) -> None:
    if number % 5 == 0:
        node["spec"]["taints"] = [{"key": "foo", "value": "", "effect": "NoSchedule"}]


def _featured(_number: int, node: Made) -> None:
    node["status"]["declaredFeatures"] = [f"Feature{one}" for one in range(20)]


def _cordoned(number: int, node: Made) -> None:
    if number % 2:
        node["spec"]["unschedulable"] = True


def _churned() -> list[Made]:
    """Ordinary pods, and now and then one that is too large for any node."""
    return [
        *(templates.pod() for _ in range(_MANY)),
        templates.pod("9", priority=10),
    ]


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


def _claims() -> Shape:
    return Shape(pods=lambda: [templates.claiming()])


def _devices(node: Callable[[int, Made], None] = _served) -> Shape:
    return Shape(pods=lambda: [templates.extended(_DEVICES)], node=node)


def _team(kind: str, key: str, zones: tuple[str, ...] = (), *, required: bool) -> Shape:
    return Shape(
        pods=lambda: [templates.devoted("green", kind, key, required=required)], zones=zones
    )


_SERVICE: Made = {
    "kind": "Service",
    "metadata": {"name": "service", "namespace": "sched-1"},
    "spec": {"selector": {"app": "scheduler-perf"}},
}

_SHAPES: Mapping[str, Shape] = {
    # affinity
    "SchedulingPodAntiAffinity": Shape(
        pods=lambda: [templates.near("green", _AWAY, HOST, required=True)]
    ),
    "SchedulingPodMatchingAntiAffinity": Shape(
        pods=lambda: [
            templates.near("green", _AWAY, HOST, required=True),
            *(templates.labelled(templates.pod(), color="green") for _ in range(5)),
        ]
    ),
    "SchedulingPodAffinity": Shape(
        zones=_ONE, pods=lambda: [templates.near("blue", _NEAR, ZONE, required=True)]
    ),
    "SchedulingPreferredPodAffinity": Shape(
        pods=lambda: [templates.near("red", _NEAR, HOST, required=False)]
    ),
    "SchedulingPreferredPodAntiAffinity": Shape(
        pods=lambda: [templates.near("yellow", _AWAY, HOST, required=False)]
    ),
    "SchedulingNodeAffinity": Shape(zones=_ONE, pods=lambda: [templates.in_zone()]),
    "MixedSchedulingBasePod": Shape(
        zones=_ONE,
        pods=lambda: [
            templates.pod(),
            templates.near("blue", _NEAR, ZONE, required=True),
            templates.near("green", _AWAY, HOST, required=True),
            templates.near("red", _NEAR, HOST, required=False),
            templates.near("yellow", _AWAY, HOST, required=False),
        ],
    ),
    "SchedulingRequiredPodAntiAffinityWithNSSelector": _team(_AWAY, HOST, required=True),
    "SchedulingPreferredAntiAffinityWithNSSelector": _team(_AWAY, HOST, required=False),
    "SchedulingRequiredPodAffinityWithNSSelector": _team(_NEAR, ZONE, _ONE, required=True),
    "SchedulingPreferredAffinityWithNSSelector": _team(_NEAR, HOST, required=False),
    "SchedulingGatedPodsWithPodAffinityImpactForThroughput": Shape(
        pods=lambda: [
            templates.gated(templates.near("green", _NEAR, HOST, required=True)),
            templates.labelled(templates.light(), color="green"),
        ]
    ),
    # misc
    "SchedulingBasic": Shape(pods=lambda: [templates.pod()]),
    "SchedulingDaemonset": Shape(pods=lambda: [templates.pod("0", "0")]),
    "PreemptionBasic": Shape(full=True, pods=lambda: [templates.pod("3000m", priority=10)]),
    "PreemptionAsync": Shape(
        full=True,
        pods=lambda: [
            *(templates.pod() for _ in range(_MANY)),
            templates.pod("3000m", priority=10),
        ],
    ),
    "Unschedulable": Shape(pods=_churned),
    "SchedulingWithMixedChurn": Shape(pods=_churned, beside=(_SERVICE,)),
    "SchedulingWhileGated": Shape(
        pods=lambda: [templates.light(), templates.gated(templates.light())]
    ),
    "SchedulingDeletedPodsWithFinalizers": Shape(pods=lambda: [templates.light()]),
    "SchedulingWithExtendedResource": _devices(),
    "NodeDeclaredFeaturesEnabled": Shape(node=_featured, pods=lambda: [templates.together()]),
    # topology spreading
    "TopologySpreading": Shape(zones=_MOON, pods=lambda: [templates.spread("DoNotSchedule")]),
    "PreferredTopologySpreading": Shape(
        zones=_MOON, pods=lambda: [templates.spread("ScheduleAnyway")]
    ),
    "DefaultTopologySpreading": Shape(
        zones=_MOON,
        beside=(_SERVICE,),
        pods=lambda: [templates.labelled(templates.pod(), app="scheduler-perf")],
    ),
    "SchedulingWithNodeInclusionPolicy": Shape(
        node=_tainted,
        pods=lambda: [
            templates.spread("DoNotSchedule", topologyKey=HOST, maxSkew=1, nodeTaintsPolicy="Honor")
        ],
    ),
    # volumes
    "SchedulingSecrets": Shape(
        pods=lambda: [
            templates.pod(volumes=[{"name": "secret", "secret": {"secretName": "secret"}}])
        ]
    ),
    "SchedulingInTreePVs": Shape(volume=templates.ebs, pods=lambda: [templates.pod()]),
    "SchedulingMigratedInTreePVs": Shape(volume=templates.ebs, pods=lambda: [templates.pod()]),
    "SchedulingCSIPVs": Shape(volume=templates.csi, pods=lambda: [templates.pod()]),
    "PreemptionPVs": Shape(
        full=True,
        volume=templates.ebs,
        pods=lambda: [templates.pod("3000m", priority=10)],
    ),
    # events
    "EventHandlingPodDelete": Shape(zones=_MOON, pods=_waiting),
    "EventHandlingPodUpdate": Shape(node=_cordoned, pods=_waiting),
    "EventHandlingPodAdd": Shape(
        pods=lambda: [
            templates.near("blue", _NEAR, HOST, required=True),
            templates.labelled(templates.pod(), color="blue"),
        ]
    ),
    "EventHandlingNodeAdd": Shape(zones=_ONE, pods=lambda: [templates.in_zone(), *_waiting()]),
    "EventHandlingNodeUpdate": Shape(node=_cordoned, pods=_waiting),
    # claims to devices
    **{
        name: _claims()
        for name in (
            "ConsumableCapacity",
            "DeviceTaintToleration",
            "FirstAvailable",
            "Partitionable",
            "PartitionableBacktracking",
            "PublishResourceSlices",
            "SchedulingWithResourceClaim",
            "SchedulingWithResourceClaimTemplate",
            "SteadyStateClusterResourceClaimTemplate",
        )
    },
    **{
        name: _devices()
        for name in (
            "ExtendedResource",
            "ExtendedResourceScoring",
            "ExtendedResource_25Classes",
            "ExtendedResource_50Classes",
            "ImplicitExtendedResource_25Classes",
        )
    },
}

NAMES = tuple(_SHAPES)
_NAMESPACES = ("sched-0", "sched-1")


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
    yield from shape.beside
    if shape.full:
        low = templates.pod("900m", terminationGracePeriodSeconds=0, priority=0)
        for number in range(4 * nodes):
            yield _named(low, f"low-{number}", node=f"node-{number % nodes}")
    made = shape.pods()
    for number in range(pods):
        pod = _named(made[number % len(made)], f"pod-{number}")
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
