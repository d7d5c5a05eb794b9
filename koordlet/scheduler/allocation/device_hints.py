"""What pods say about the devices that they ask for, beside how much: three annotations.

Covers: hints by type, types that are allocated together, groups of GPUs; what is wrong with them.
Does not cover: what they mean for the devices of a node (``device_choice``).

A word that we do not know is refused by name: passed over, a pod that must be alone on its PCIe
switch would be placed beside others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from koordlet.kubeapi import selectors, shapes
from koordlet.model.record import dataclass
from koordlet.scheduler.allocation import gpu_partitions, gpu_topology
from koordlet.scheduler.allocation.gpu_partitions import PartitionSpec
from koordlet.scheduler.objects import peer_keys, terms, wire
from koordlet.scheduler.objects.wire import BadObjectError, Body

APPLY_FOR_ALL, AS_COUNT = "ApplyForAll", "RequestsAsCount"
DEVICE_LEVEL, PCIE_LEVEL = "DeviceLevel", "PCIeLevel"
SAME_PCIE = "SamePCIe"
Selector = selectors.Compiled
_RESTRICTED, _BEST_EFFORT = "Restricted", "BestEffort"

_KEYS = frozenset({peer_keys.DEVICE_HINT, peer_keys.DEVICE_JOINT, peer_keys.GPU_PARTITION})
_HINT = dict.fromkeys(
    ("selector", "vfSelector", "allocateStrategy", "requiredTopologyScope", "exclusivePolicy")
)
_JOINT = dict.fromkeys(("deviceTypes", "requiredScope"))
_PARTITION = dict.fromkeys(("allocatePolicy", "ringBusBandwidth"))


@dataclass(frozen=True, slots=True)
class DeviceHint:
    """The hint about one type of devices."""

    #: By labels of the device; ``None``: any.
    selector: selectors.Compiled | None = None
    #: By labels of groups of virtual functions; ``None``: none is needed.
    functions: selectors.Compiled | None = None
    strategy: str = ""
    scope: str = ""
    exclusive: str = ""


NO_HINT = DeviceHint()


@dataclass(frozen=True, slots=True)
class JointAllocation:
    """Types of devices that are allocated together, the first of them first."""

    kinds: tuple[str, ...]
    same_pcie: bool


@dataclass(frozen=True, slots=True)
class DeviceWishes:
    """All that a pod says about its devices."""

    hints: Mapping[str, DeviceHint] = field(default_factory=dict)
    joint: JointAllocation | None = None
    #: It wants a group of the node's table, or nothing.
    partition: PartitionSpec | None = None


NONE = DeviceWishes()


def read(annotations: Mapping[str, str]) -> DeviceWishes:
    """The wishes of a pod; ``BadObjectError`` in the peers' words where one cannot be read."""
    if _KEYS.isdisjoint(annotations):
        return NONE
    hints = _body(annotations, peer_keys.DEVICE_HINT, "DeviceAllocateHint")
    joint = _body(annotations, peer_keys.DEVICE_JOINT, "DeviceJointAllocate", _JOINT)
    partition = _body(annotations, peer_keys.GPU_PARTITION, "GPUPartitionSpec", _PARTITION)
    return DeviceWishes(
        {} if hints is None else {kind: _hint(kind, body) for kind, body in hints.items()},
        None if joint is None else _joint(joint),
        None if partition is None else _partition(partition),
    )


def _body(annotations: Mapping[str, str], key: str, what: str, structure: Any = None) -> Any:
    """The object in an annotation; ``None`` without one."""
    text = annotations.get(key)
    if text is None:
        return None
    try:
        value = shapes.canonical(shapes.parse(text), structure)
    except ValueError as error:
        raise _invalid(what, str(error)[:80]) from error
    if value is not None and not isinstance(value, Mapping):
        raise _invalid(what, f"no JSON object: {wire.show(value)}")
    return value


def _invalid(what: str, why: object) -> BadObjectError:
    return BadObjectError(f"invalid {what} annotation, err: {why}")


def _word(body: Body, key: str, known: Iterable[str]) -> str:
    value = wire.text(body, key)
    if value and value not in known:
        raise BadObjectError(f"{key} {wire.show(value)} is unknown")
    return value


def _hint(kind: str, body: Any) -> DeviceHint:
    hint = shapes.canonical({} if body is None else body, _HINT)
    if not isinstance(hint, Mapping):
        raise _invalid("DeviceAllocateHint", f"{kind} is no JSON object: {wire.show(hint)}")
    try:
        strategy = _word(hint, "allocateStrategy", (APPLY_FOR_ALL, AS_COUNT))
        scope = _word(hint, "requiredTopologyScope", gpu_topology.SCOPES)
        exclusive = _word(hint, "exclusivePolicy", (DEVICE_LEVEL, PCIE_LEVEL))
    except BadObjectError as error:
        raise _invalid("DeviceAllocateHint", f"{kind}: {error}") from error
    return DeviceHint(
        _selector(hint, "selector", kind),
        _selector(hint, "vfSelector", kind),
        *(strategy, scope, exclusive),
    )


def _selector(hint: Body, key: str, kind: str) -> selectors.Compiled | None:
    try:
        compiled: selectors.Compiled | None = terms.selector(hint, key)
    except BadObjectError as error:
        what = "VFSelector" if key == "vfSelector" else "Selector"
        raise BadObjectError(
            f"invalid {what} of DeviceHint, deviceType: {kind}, err: {error}"
        ) from error
    return compiled


def _joint(body: Body) -> JointAllocation:
    try:
        scope = _word(body, "requiredScope", (SAME_PCIE,))
        kinds = tuple(dict.fromkeys(wire.strings(body, "deviceTypes")))
        return JointAllocation(kinds, scope == SAME_PCIE)
    except BadObjectError as error:
        raise _invalid("DeviceJointAllocate", error) from error


def _partition(body: Body) -> PartitionSpec:
    try:
        policy = _word(body, "allocatePolicy", (_RESTRICTED, _BEST_EFFORT))
        return PartitionSpec(policy == _RESTRICTED, gpu_partitions.bandwidth(body))
    except BadObjectError as error:
        raise _invalid("GPUPartitionSpec", error) from error
