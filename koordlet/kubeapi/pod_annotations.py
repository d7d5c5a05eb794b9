"""Annotations of pods that agent and scheduler both act on, read once for both.

Covers: how CPUs are to be chosen and which were, NUMA nodes, reservations, extended resources.
Does not cover: annotations that the agent alone acts on (``workloads.annotations``), devices.

Rules:
1. A decoder returns a value of ``model.wishes``; ``ValueError`` means that nothing of the text can
   be used. Fields that do not fit are left out, with a problem each: an unknown word for a policy
   is as if the field were missing.
2. Pure: the same text always says the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, TypeVar

from koordlet.kubeapi import shapes
from koordlet.model import resources, wishes
from koordlet.model.record import dataclass

_T = TypeVar("_T")
Decoder = Callable[[str, list[str]], _T]

RESOURCE_SPEC = "scheduling.koordinator.sh/resource-spec"
RESOURCE_STATUS = "scheduling.koordinator.sh/resource-status"
NUMA_SPEC = "scheduling.koordinator.sh/numa-topology-spec"
RESERVATION_ALLOCATED = "scheduling.koordinator.sh/reservation-allocated"
EXTENDED_RESOURCES = "node.koordinator.sh/extended-resource-spec"
#: Who evicts a pod, why and when, as JSON: of the scheduler's movers, and of agents, which add the
#: cause, as the API server calls every eviction the same.
EVICTION = "koordlet.io/eviction"
NODE_PRESSURE = "NodePressure"

_HIGHEST_NODE = 1023


def read(
    key: str, notes: Mapping[str, Any], decoder: Decoder[_T], problems: list[str]
) -> _T | None:
    """One annotation; ``None`` where it is missing or nothing of it can be used."""
    text = notes.get(key)
    if not isinstance(text, str):
        return None
    value: _T | None = None
    inner: list[str] = []
    try:
        value = decoder(text, inner)
    except ValueError as error:
        inner.append(str(error))
    problems.extend(f"annotation {key}: {problem}" for problem in inner)
    return value


def of(fields: Callable[[object, list[str]], _T]) -> Decoder[_T]:
    """The decoder of an annotation that is one JSON object."""
    return lambda text, problems: fields(shapes.parse(text), problems)


def record(record_class: Callable[..., _T], /, **fields: shapes.Field) -> Decoder[_T]:
    """The decoder of an annotation that is a record (``shapes.record``)."""
    return of(shapes.record(record_class, **fields))


def amounts(value: object, problems: list[str]) -> dict[str, int]:
    """A resource list."""
    return resources.read(shapes.mapping(value), problems, "resources")


_BIND = shapes.choice("", "Default", "FullPCPUs", "SpreadByPCPUs", "ConstrainedBurst")
_EXCLUSIVE = shapes.choice("", "None", "PCPULevel", "NUMANodeLevel")

#: ``resource-spec``: how the CPUs of a pod should be chosen.
binding = record(
    wishes.Binding,
    required=("requiredCPUBindPolicy", _BIND),
    preferred=("preferredCPUBindPolicy", _BIND),
    exclusive=("preferredCPUExclusivePolicy", _EXCLUSIVE),
)

_NUMA = shapes.choice("", "BestEffort", "Restricted", "SingleNUMANode")

#: ``numa-topology-spec``: on how many NUMA nodes a pod may lie.
numa = record(
    wishes.Numa,
    policy=("numaTopologyPolicy", _NUMA),
    exclusive=("singleNUMANodeExclusive", shapes.choice("", "Preferred", "Required")),
)

_NUMA_SHARE = shapes.record(
    wishes.NumaShare,
    node=("node", shapes.integer(0, _HIGHEST_NODE)),
    resources=("resources", amounts),
)

#: ``resource-status``: the CPUs and NUMA resources that a scheduler gave. An empty ``cpuset``
#: grants no CPUs, as if it were missing; one that does not parse costs the CPUs alone.
grant = record(
    wishes.Grant,
    cpus=("cpuset", shapes.cpus),
    numa=("numaNodeResources", shapes.listing(_NUMA_SHARE)),
)

#: ``reservation-allocated``: the reservation that a pod was placed in.
reservation_use = record(
    wishes.ReservationUse, name=("name", shapes.text), uid=("uid", shapes.text)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extended:
    """Extended resources of one container."""

    requests: resources.Amounts = field(default_factory=dict)
    limits: resources.Amounts = field(default_factory=dict)


_EXTENDED = shapes.record(Extended, requests=("requests", amounts), limits=("limits", amounts))


def _containers(*, containers: dict[str, Extended] | None = None) -> dict[str, Extended]:
    return containers or {}


#: ``extended-resource-spec``: container to its batch and mid resources. The webhook leaves them in
#: the containers too, where the API server lets it; the annotation fills in what the spec lacks.
extended = record(_containers, containers=("containers", shapes.table(_EXTENDED)))


def binding_of(notes: Mapping[str, str]) -> wishes.Binding:
    """The bind policies of a pod; what cannot be read is not said."""
    return read(RESOURCE_SPEC, notes, binding, []) or wishes.Binding()


def numa_of(notes: Mapping[str, str]) -> wishes.Numa:
    """The NUMA policies of a pod; what cannot be read is not said."""
    return read(NUMA_SPEC, notes, numa, []) or wishes.Numa()
