"""The devices of a node, and the shares that pods have of them.

Covers: a Device object, the annotation ``device-allocated``, amounts of a node's devices in all.
Does not cover: what a pod asks for (``device_requests``), what is free and who gets which
(``device_room``).

Whatever cannot be read of a device is as if it were not there. An annotation that cannot be read
names nothing: its pod is then one that has devices which nobody can name (``device_room``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field

from koordlet.kubeapi import shapes
from koordlet.model import quantity_text
from koordlet.model.record import dataclass
from koordlet.scheduler.objects import json_annotations, requests, wire
from koordlet.scheduler.objects.wire import BadObjectError, Body

GPU, RDMA, FPGA = "gpu", "rdma", "fpga"
CORE = "koordinator.sh/gpu-core"
MEMORY = "koordinator.sh/gpu-memory"
RATIO = "koordinator.sh/gpu-memory-ratio"
PERCENT = "koordinator.sh/gpu"
SHARED = "koordinator.sh/gpu.shared"
#: On a Device: multi-card pods get one of the groups that it lists, or nothing.
_PARTITIONS = "node.koordinator.sh/gpu-partition-policy"
#: Minors are 32-bit integers.
_MOST_MINORS = 2**31
#: Of one annotation or object; more is nonsense.
_MOST_DEVICES = 4096

_SLICE = dict.fromkeys(("minor", "id", "resources"))

Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Device:
    """One device of a node."""

    kind: str
    minor: int
    id: str
    healthy: bool
    room: Amounts

    def filled(self, asked: Amounts) -> dict[str, int]:
        """The same with memory in both of its units, where the device tells of its memory."""
        amounts = dict(asked)
        whole = self.room.get(MEMORY, 0)
        if whole and MEMORY in asked and RATIO not in asked:
            amounts[RATIO] = asked[MEMORY] * 100 // whole
        elif whole and RATIO in asked and MEMORY not in asked:
            amounts[MEMORY] = asked[RATIO] * whole // 100
        return amounts

    def kept(self, chosen: Amounts, asked: Collection[str]) -> dict[str, int]:
        """The part of an older choice that the device still has, in the names that were requested.

        One unit of memory was asked for and the other followed from the device: it follows again,
        since the device may be another by now. More than there is cannot be kept.
        """
        follows = RATIO if MEMORY in asked and RATIO not in asked else MEMORY
        own = dict(chosen)
        if self.room.get(MEMORY, 0) and {MEMORY, RATIO} <= own.keys():
            del own[follows]
        return {name: min(much, self.room.get(name, 0)) for name, much in self.filled(own).items()}


@dataclass(frozen=True, slots=True)
class Slice:
    """A pod's allocated share of one device."""

    kind: str
    minor: int
    id: str
    amounts: Amounts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Devices:
    """All devices of a node, by type and minor."""

    several: tuple[Device, ...]
    #: Its GPUs are given in listed groups only.
    partitioned: bool = False

    def of(self, kind: str) -> list[Device]:
        """The devices of one type."""
        return [device for device in self.several if device.kind == kind]

    def total(self) -> dict[str, int]:
        """The extended resources that Koordinator's manager would write for these devices.

        Unhealthy ones count as well: who has them is counted, too. Nobody is given one.
        """
        amounts: dict[str, int] = {}
        for device in self.several:
            for name, amount in device.room.items():
                amounts[name] = min(amounts.get(name, 0) + amount, requests.MOST_ALLOCATABLE)
        gpus = len(self.of(GPU))
        if gpus:
            amounts |= {PERCENT: amounts.get(CORE, 0), SHARED: 100 * gpus}
        return amounts


def decode(body: Body) -> tuple[str, Devices]:
    """The name of a node, and its devices; ``BadObjectError`` where it is no Device."""
    meta = wire.mapping(body, "metadata")
    name = wire.name(meta)
    by_key: dict[tuple[str, int], Device] = {}
    for device in wire.sequence(wire.mapping(body, "spec"), "devices")[:_MOST_DEVICES]:
        made = _device(device) if isinstance(device, Mapping) else None
        if made is not None:
            by_key.setdefault((made.kind, made.minor), made)
    partitioned = wire.mapping(meta, "labels").get(_PARTITIONS) == "Honor"
    return name, Devices(tuple(by_key[key] for key in sorted(by_key)), partitioned)


def _device(body: Body) -> Device | None:
    kind, minor = body.get("type"), body.get("minor")
    if not isinstance(kind, str) or not isinstance(minor, int) or not _is_minor(minor):
        return None
    try:
        room = requests.amounts(body, "resources", requests.MOST_ALLOCATABLE)
    except BadObjectError:
        room = {}
    healthy = body.get("health") is True
    return Device(kind, minor, str(body.get("id") or ""), healthy, room)


def _is_minor(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_MINORS


def read(spelled: object) -> tuple[Slice, ...]:
    """The slices that an annotation names; none where any of it cannot be read."""
    body = json_annotations.body(spelled)
    try:
        slices = [
            _slice(str(kind), shapes.canonical(row, _SLICE))
            for kind in body
            for row in wire.bodies(body, kind)
        ]
    except BadObjectError:
        return ()
    return tuple(slices) if len(slices) <= _MOST_DEVICES else ()


def _slice(kind: str, body: Body) -> Slice:
    minor = body.get("minor", 0)
    if not _is_minor(minor):
        raise BadObjectError(f"minor: {wire.show(minor)}")
    amounts = requests.amounts(body, "resources", requests.MOST_REQUEST)
    return Slice(kind, minor, str(body.get("id") or ""), amounts)


def spelled(parts: Iterable[Slice]) -> dict[str, list[dict[str, object]]]:
    """The annotation that Koordinator's agents read."""
    by_kind: dict[str, list[dict[str, object]]] = {}
    for part in parts:
        amounts = {
            name: quantity_text.binary(much) if name == MEMORY else str(much)
            for name, much in part.amounts.items()
        }
        body: dict[str, object] = {"minor": part.minor, "resources": amounts}
        if part.id:
            body["id"] = part.id
        by_kind.setdefault(part.kind, []).append(body)
    return by_kind
