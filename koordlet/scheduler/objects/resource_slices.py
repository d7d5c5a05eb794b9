"""ResourceSlices (``resource.k8s.io/v1``): what drivers offer on nodes, as frozen values.

Covers: decoding; every field that an allocation reads. Does not cover: the API's limits
(``kubeapi.resource_validation``), which slices make a pool (``scheduler.claims.pools``).

Amounts are exact fractions: quantities of any spelling compare by value.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from fractions import Fraction

from koordlet.model.record import dataclass
from koordlet.scheduler.objects import terms, wire
from koordlet.scheduler.objects.wire import BadObjectError, Body


@dataclass(frozen=True, slots=True)
class AttributeVersion:
    """A semantic version; another spelling is another version."""

    text: str


@dataclass(frozen=True, slots=True)
class UnreadAttribute:
    """A value of a type that is not served (a list): no constraint is met by it."""

    fields: tuple[str, ...]


Attribute = bool | int | str | AttributeVersion | UnreadAttribute


@dataclass(frozen=True, slots=True)
class CapacityPolicy:
    """What a request may take of a capacity that many share."""

    default: Fraction | None = None
    #: Ascending; empty where a range or nothing is set.
    values: tuple[Fraction, ...] = ()
    least: Fraction | None = None
    most: Fraction | None = None
    step: Fraction | None = None


@dataclass(frozen=True, slots=True)
class DeviceCapacity:
    """An amount of a device, and how it is shared; no policy: a share is the whole of it."""

    value: Fraction
    policy: CapacityPolicy | None = None


@dataclass(frozen=True, slots=True)
class CounterSet:
    """Counters of a pool, or what a device consumes of them."""

    name: str
    counters: Mapping[str, Fraction]


@dataclass(frozen=True, slots=True)
class DeviceTaint:
    """What keeps claims off a device."""

    key: str
    value: str
    effect: str
    #: As it is written; empty where nobody says when.
    added: str = ""


@dataclass(frozen=True, slots=True)
class NodeSelection:
    """Nodes that reach a slice or a device; the first of these that is set decides."""

    node_name: str = ""
    all_nodes: bool = False
    selector: tuple[terms.NodeTerm, ...] = ()
    #: The terms as they are written, for the selector of an allocation.
    written: tuple[Body, ...] = ()

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether a node is meant."""
        if self.node_name:
            return self.node_name == name
        return self.all_nodes or any(terms.fulfils(term, name, labels) for term in self.selector)


@dataclass(frozen=True, slots=True)
class SliceDevice:
    """One device of a slice. Keys of attributes and capacities are as the driver writes them."""

    name: str
    attributes: Mapping[str, Attribute]
    capacity: Mapping[str, DeviceCapacity]
    consumes: tuple[CounterSet, ...] = ()
    #: With ``perDeviceNodeSelection`` alone.
    selection: NodeSelection = NodeSelection()
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False


@dataclass(frozen=True, slots=True)
class ResourceSlice:
    """Devices or counters of one pool of a driver."""

    name: str
    driver: str
    pool: str
    generation: int
    #: As many slices make this generation of the pool complete.
    slice_count: int
    selection: NodeSelection
    #: Whether each device says on its own which nodes reach it.
    per_device: bool
    devices: tuple[SliceDevice, ...]
    counter_sets: tuple[CounterSet, ...]


def decode(body: Body) -> ResourceSlice:
    """A slice from its JSON; ``BadObjectError`` has the path of the field that is no good."""
    name = wire.name(wire.mapping(body, "metadata"))
    return wire.part(body, "spec", lambda spec: _slice(name, spec))


def _slice(name: str, spec: Body) -> ResourceSlice:
    driver = wire.text(spec, "driver")
    pool = wire.mapping(spec, "pool")
    pool_name = wire.text(pool, "name")
    if not driver or not pool_name:
        raise BadObjectError(f"{'pool.name' if driver else 'driver'} is missing")
    return ResourceSlice(
        name=name,
        driver=sys.intern(driver),
        pool=sys.intern(pool_name),
        generation=wire.integer(pool, "generation"),
        slice_count=wire.integer(pool, "resourceSliceCount"),
        selection=_selection(spec),
        per_device=wire.flag(spec, "perDeviceNodeSelection"),
        devices=wire.each(spec, "devices", _device),
        counter_sets=wire.each(spec, "sharedCounters", lambda shared: _counters(shared, "name")),
    )


def _device(body: Body) -> SliceDevice:
    name = wire.text(body, "name")
    if not name:
        raise BadObjectError("name is missing")
    return SliceDevice(
        name=name,
        attributes=wire.entries(body, "attributes", _attribute),
        capacity=wire.entries(body, "capacity", _capacity),
        consumes=wire.each(body, "consumesCounters", lambda used: _counters(used, "counterSet")),
        selection=_selection(body),
        taints=wire.each(body, "taints", _taint),
        binds_to_node=wire.flag(body, "bindsToNode"),
        binding_conditions=wire.strings(body, "bindingConditions"),
        binding_failure_conditions=wire.strings(body, "bindingFailureConditions"),
        allow_multiple_allocations=wire.flag(body, "allowMultipleAllocations"),
    )


def _selection(body: Body) -> NodeSelection:
    node_name, all_nodes = wire.text(body, "nodeName"), wire.flag(body, "allNodes")
    if body.get("nodeSelector") is None:
        return NodeSelection(node_name, all_nodes)
    written = wire.bodies(wire.mapping(body, "nodeSelector"), "nodeSelectorTerms")
    return NodeSelection(node_name, all_nodes, tuple(map(terms.node_term, written)), tuple(written))


def _attribute(body: Body) -> Attribute:
    if body.get("string") is not None:
        return wire.text(body, "string")
    if body.get("int") is not None:
        return wire.integer(body, "int")
    if body.get("bool") is not None:
        return wire.flag(body, "bool")
    if body.get("version") is not None:
        return AttributeVersion(wire.text(body, "version"))
    return UnreadAttribute(tuple(sorted(map(str, body))))


def _capacity(body: Body) -> DeviceCapacity:
    value = wire.amount(body, "value")
    if value is None:
        raise BadObjectError("value is missing")
    if body.get("requestPolicy") is None:
        return DeviceCapacity(value)
    return DeviceCapacity(value, wire.part(body, "requestPolicy", _policy))


def _policy(body: Body) -> CapacityPolicy:
    listed = wire.sequence(body, "validValues")
    valid = [wire.amount({"validValues": value}, "validValues") for value in listed]
    bounds = wire.mapping(body, "validRange")
    return CapacityPolicy(
        default=wire.amount(body, "default"),
        values=tuple(sorted(value for value in valid if value is not None)),
        least=wire.amount(bounds, "min"),
        most=wire.amount(bounds, "max"),
        step=wire.amount(bounds, "step"),
    )


def _counters(body: Body, key: str) -> CounterSet:
    return CounterSet(wire.text(body, key), wire.entries(body, "counters", _counter))


def _counter(body: Body) -> Fraction:
    value = wire.amount(body, "value")
    if value is None:
        raise BadObjectError("value is missing")
    return value


def _taint(body: Body) -> DeviceTaint:
    key, value, effect = wire.texts(body, "key", "value", "effect")
    return DeviceTaint(key, value, effect, str(body.get("timeAdded") or ""))
