"""The devices of a node, and the shares that pods have of them.

Covers: a Device object, where its devices are, the annotation ``device-allocated``, amounts of a
node's devices in all.
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
from koordlet.scheduler.allocation import gpu_partitions, gpu_topology
from koordlet.scheduler.allocation.gpu_partitions import PartitionTable
from koordlet.scheduler.allocation.gpu_topology import TopologyScope
from koordlet.scheduler.objects import json_annotations, peer_keys, requests, wire
from koordlet.scheduler.objects.wire import BadObjectError, Body

GPU, RDMA, FPGA = "gpu", "rdma", "fpga"
CORE = "koordinator.sh/gpu-core"
MEMORY = "koordinator.sh/gpu-memory"
RATIO = "koordinator.sh/gpu-memory-ratio"
PERCENT = "koordinator.sh/gpu"
SHARED = "koordinator.sh/gpu.shared"
#: Of one vendor, beside or instead of cores.
NPU_CORE, NPU_CPU, NPU_DVPP = "huawei.com/npu-core", "huawei.com/npu-cpu", "huawei.com/npu-dvpp"
_TOPOLOGY = dict.fromkeys(("nodeID", "pcieID"))
_GROUP = {"labels": None, "vfs": [dict.fromkeys(("minor", "busID"))]}
#: Minors are 32-bit integers.
_MOST_MINORS = 2**31
#: NUMA nodes of one machine.
_MOST_NODES = 1024
#: Of one annotation or object; more is nonsense.
_MOST_DEVICES = 4096

_SLICE = {
    **dict.fromkeys(("minor", "id", "resources")),
    "extension": {"vfs": [dict.fromkeys(("minor", "busID"))], "gpuSharedResourceTemplate": None},
}

Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class DeviceFunction:
    """A part of a network device that a pod has for itself."""

    bus: str
    minor: int


@dataclass(frozen=True, slots=True)
class FunctionGroup:
    """Virtual functions of one device that have labels in common."""

    labels: Mapping[str, str]
    functions: tuple[DeviceFunction, ...]


@dataclass(frozen=True, slots=True)
class DevicePosition:
    """Where a device is."""

    #: The NUMA node; -1: none in particular.
    numa: int
    pcie: str


@dataclass(frozen=True, slots=True)
class Device:
    """One device of a node."""

    kind: str
    minor: int
    id: str
    healthy: bool
    room: Amounts
    labels: Mapping[str, str] = field(default_factory=dict)
    #: ``None``: nobody says.
    position: DevicePosition | None = None
    groups: tuple[FunctionGroup, ...] = ()

    def filled(self, asked: Amounts) -> dict[str, int]:
        """The same with memory in both of its units, where the device tells of its memory."""
        amounts = dict(asked)
        whole = self.room.get(MEMORY, 0)
        if whole and MEMORY in asked and RATIO not in asked:
            amounts[RATIO] = asked[MEMORY] * 100 // whole
        elif whole and RATIO in asked and MEMORY not in asked:
            amounts[MEMORY] = asked[RATIO] * whole // 100
        return amounts

    def holds(self, asked: Amounts) -> bool:
        """Whether it has as much, were nobody else there."""
        return all(much <= self.room.get(name, 0) for name, much in self.filled(asked).items())

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
    functions: tuple[DeviceFunction, ...] = ()
    #: The name of the template of a shared GPU that it follows.
    template: str = ""


@dataclass(frozen=True, slots=True)
class Devices:
    """All devices of a node, by type and minor."""

    several: tuple[Device, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    #: The groups in which its GPUs are linked; ``None``: it tells none.
    partitions: PartitionTable | None = None
    #: How its GPUs hang together; ``None`` unless it is known of all of them.
    tree: TopologyScope | None = None

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
    several = tuple(by_key[key] for key in sorted(by_key))
    partitions = wire.mapping(meta, "annotations").get(peer_keys.GPU_PARTITIONS)
    return name, Devices(several, _labels(meta), gpu_partitions.read(partitions), _tree(several))


def _tree(several: Iterable[Device]) -> TopologyScope | None:
    gpus = [device for device in several if device.kind == GPU]
    known = [(gpu.minor, at.numa, at.pcie) for gpu in gpus if (at := gpu.position) is not None]
    return gpu_topology.tree(known) if len(known) == len(gpus) else None


def _device(body: Body) -> Device | None:
    kind, minor = body.get("type"), body.get("minor")
    if not isinstance(kind, str) or not isinstance(minor, int) or not _is_minor(minor):
        return None
    try:
        room = requests.amounts(body, "resources", requests.MOST_ALLOCATABLE)
    except BadObjectError:
        room = {}
    healthy = body.get("health") is True
    return Device(
        *(kind, minor, str(body.get("id") or ""), healthy, room),
        *(_labels(body), _position(body), _groups(body)),
    )


def _labels(body: Body) -> dict[str, str]:
    try:
        return wire.labels(body)
    except BadObjectError:
        return {}


def _position(body: Body) -> DevicePosition | None:
    told = shapes.canonical(body.get("topology"), _TOPOLOGY)
    if not isinstance(told, Mapping):
        return None
    numa = told.get("nodeID", 0)
    known = isinstance(numa, int) and not isinstance(numa, bool) and -1 <= numa < _MOST_NODES
    return DevicePosition(numa, str(told.get("pcieID") or "")) if known else None


def _groups(body: Body) -> tuple[FunctionGroup, ...]:
    told = body.get("vfGroups")
    rows = shapes.canonical(told, [_GROUP]) if isinstance(told, list) else ()
    return tuple(
        FunctionGroup(_labels(row), _functions(row)) for row in rows if isinstance(row, Mapping)
    )


def _functions(body: Body) -> tuple[DeviceFunction, ...]:
    """The virtual functions in a list, without those that nobody can name."""
    try:
        rows = wire.bodies(body, "vfs")
    except BadObjectError:
        return ()
    return tuple(
        DeviceFunction(row["busID"], minor)
        for row in rows
        if isinstance(row.get("busID"), str) and row["busID"]
        if isinstance(minor := row.get("minor", 0), int)
    )


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
    more = wire.mapping(body, "extension")
    template = wire.text(more, "gpuSharedResourceTemplate")
    return Slice(kind, minor, str(body.get("id") or ""), amounts, _functions(more), template)


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
        if extension := _extension(part):
            body["extension"] = extension
        by_kind.setdefault(part.kind, []).append(body)
    return by_kind


def _extension(part: Slice) -> dict[str, object]:
    functions = [{"busID": each.bus, "minor": each.minor} for each in part.functions]
    return {
        **({"vfs": functions} if functions else {}),
        **({"gpuSharedResourceTemplate": part.template} if part.template else {}),
    }


def brief(spelled: Mapping[str, Iterable[Mapping[str, object]]]) -> str:
    """Such an annotation in a few words: types and minors."""
    return " ".join(
        f"{kind}={','.join(str(row['minor']) for row in rows)}" for kind, rows in spelled.items()
    )
