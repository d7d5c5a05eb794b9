"""What a pod asks for: container, init, sidecar, pod-level and overhead amounts made one.

Covers: the computation of Kubernetes 1.36 for incoming and for placed pods (in-place resize).
Does not cover: where amounts are kept (``scheduler.cluster.columns``).

Amounts are exact: CPU in thousandths, all else in units, each quantity rounded up by itself.
Three answers, because the peer gives three: ``real`` decides whether a pod fits; ``nonzero`` is
what it adds to its node for scoring (100m and 200 MiB for containers that say nothing);
``incoming`` is what the scorer of fit takes for it before it is placed: as ``nonzero``, but
blind for the amounts of the pod as a whole.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import field

from koordlet.model import quantity
from koordlet.model.record import dataclass
from koordlet.scheduler.objects import wire
from koordlet.scheduler.objects.wire import BadObjectError, Body

CPU, MEMORY, STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"

#: A request beyond this fits nowhere; 128 of them still add up within 64 bits.
MOST_REQUEST = 2**56
#: 100 times an allocatable amount stays within 64 bits.
MOST_ALLOCATABLE = 2**55

_DEFAULTS = {CPU: 100, MEMORY: 200 << 20}

Amounts = dict[str, int]


@dataclass(frozen=True, slots=True)
class Requests:
    """The three answers; names without an amount ask for nothing."""

    real: Mapping[str, int]
    nonzero: Mapping[str, int]
    incoming: Mapping[str, int]
    #: What it may use at most, added up as ``real`` is; for estimates of its load.
    limits: Mapping[str, int] = field(default_factory=dict)


def amounts(body: Body, key: str, most: int) -> Amounts:
    """A resource list; absurdly large is cut, negative or unreadable is an error."""
    found: Amounts = {}
    for name, spelled in wire.mapping(body, key).items():
        if isinstance(spelled, bool) or not isinstance(spelled, str | int | float):
            raise BadObjectError(f"{key}.{name} is not a quantity: {wire.show(spelled)}")
        try:
            value = quantity.milli(spelled) if name == CPU else quantity.units(spelled)
        except ValueError as error:
            raise BadObjectError(f"{key}.{name}: {error}") from error
        if value < 0:
            raise BadObjectError(f"{key}.{name} is negative: {wire.show(spelled)}")
        found[sys.intern(str(name))] = min(value, most)
    return found


def of_pod(spec: Body, status: Body) -> Requests:
    """What a pod asks for; ``status`` only for a pod that has a node."""
    resized = _resized(status)
    plain = [_container(container, resized) for container in wire.bodies(spec, "containers")]
    init = [
        (_container(container, resized if _sidecar(container) else {}), _sidecar(container))
        for container in wire.bodies(spec, "initContainers")
    ]
    overhead = amounts(spec, "overhead", MOST_REQUEST)
    filled = [_filled(container) for container in plain]
    filled_init = [(_filled(one), sidecar) for one, sidecar in init]
    summed, counted = _aggregate(plain, init), _aggregate(filled, filled_init)
    whole = _whole(spec, status, summed)
    return Requests(
        real=_plus({**summed, **whole}, overhead),
        nonzero=_plus({**counted, **whole}, overhead),
        incoming=_plus(counted, overhead),
        limits=_limits(spec, overhead),
    )


def _whole(spec: Body, status: Body, summed: Amounts) -> Amounts:
    """The requests of the pod as a whole, which replace the sums of its containers.

    Beside limits of the pod the API server fills in the sums, or else the limits.
    """
    asked = amounts(wire.mapping(spec, "resources"), "requests", MOST_REQUEST)
    if limits := _most(spec):
        plain = {name: value for name, value in summed.items() if not name.startswith("hugepages-")}
        asked = {**limits, **plain, **asked}
    if asked:
        asked = _in_force(asked, _status(status, infeasible=_infeasible(status)))
    return {name: value for name, value in asked.items() if _at_pod_level(name)}


def _limits(spec: Body, overhead: Amounts) -> Amounts:
    """Overhead is on top of a limit, and makes none."""
    total = _aggregate(
        [_most(container) for container in wire.bodies(spec, "containers")],
        [
            (_most(container), _sidecar(container))
            for container in wire.bodies(spec, "initContainers")
        ],
    )
    whole = {name: value for name, value in _most(spec).items() if _at_pod_level(name)}
    total = {name: value for name, value in {**total, **whole}.items() if value}
    return _plus(total, {name: value for name, value in overhead.items() if name in total})


def _most(body: Body) -> Amounts:
    return amounts(wire.mapping(body, "resources"), "limits", MOST_REQUEST)


def _sidecar(container: Body) -> bool:
    return container.get("restartPolicy") == "Always"


def _at_pod_level(name: str) -> bool:
    return name in {CPU, MEMORY} or name.startswith("hugepages-")


def _container(container: Body, resized: Mapping[str, tuple[Amounts, Amounts, bool]]) -> Amounts:
    asked = amounts(wire.mapping(container, "resources"), "requests", MOST_REQUEST)
    limits = amounts(wire.mapping(container, "resources"), "limits", MOST_REQUEST)
    # The API server does this; a file may come from before it.
    asked = {**limits, **asked}
    return _in_force(asked, resized.get(str(container.get("name"))))


def _in_force(asked: Amounts, known: tuple[Amounts, Amounts, bool] | None) -> Amounts:
    """What counts of a request that is being changed, or cannot be."""
    if known is None:
        return asked
    actuated, allocated, infeasible = known
    given = _larger(actuated, allocated)
    return given if infeasible else _larger(asked, given)


def _resized(status: Body) -> dict[str, tuple[Amounts, Amounts, bool]]:
    """By container: amounts in force, amounts allocated, and whether the new ones are refused."""
    infeasible = _infeasible(status)
    several = {
        str(container.get("name")): _status(container, infeasible=infeasible)
        for key in ("containerStatuses", "initContainerStatuses")
        for container in wire.bodies(status, key)
    }
    return {name: known for name, known in several.items() if known is not None}


def _infeasible(status: Body) -> bool:
    return any(
        condition.get("type") == "PodResizePending" and condition.get("reason") == "Infeasible"
        for condition in wire.bodies(status, "conditions")
    )


def _status(body: Body, *, infeasible: bool) -> tuple[Amounts, Amounts, bool] | None:
    """What the status of a container, or of the pod, says; ``None``: nothing."""
    actuated = amounts(wire.mapping(body, "resources"), "requests", MOST_REQUEST)
    allocated = amounts(body, "allocatedResources", MOST_REQUEST)
    return (actuated, allocated, infeasible) if actuated or allocated else None


def _filled(asked: Amounts) -> Amounts:
    return {**_DEFAULTS, **asked}


def _aggregate(plain: list[Amounts], init: list[tuple[Amounts, bool]]) -> Amounts:
    """Containers together, or the largest moment of starting up, each resource by itself."""
    total: Amounts = {}
    for container in plain:
        total = _plus(total, container)
    sidecars: Amounts = {}
    largest: Amounts = {}
    for one, sidecar in init:
        if sidecar:
            total = _plus(total, one)
            sidecars = _plus(sidecars, one)
            largest = _larger(largest, sidecars)
        else:
            largest = _larger(largest, _plus(sidecars, one))
    return _larger(total, largest)


def _plus(one: Mapping[str, int], other: Mapping[str, int]) -> Amounts:
    return {
        name: min(one.get(name, 0) + other.get(name, 0), MOST_REQUEST) for name in {**one, **other}
    }


def _larger(one: Mapping[str, int], other: Mapping[str, int]) -> Amounts:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}
