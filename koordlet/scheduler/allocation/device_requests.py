"""The device requests of a pod: how many of a type, and how much of each.

Covers: the peers' names and which of them go together, hints that change the number. Does not
cover: which devices serve that (``device_choice``), the other hints (``device_hints``).

Rules:
1. ``koordinator.sh/gpu``, ``rdma`` and ``fpga`` are per cent of one device up to 100; more than
   that is so many whole devices, and a multiple of 100. ``nvidia.com/gpu`` and the like are cards.
2. ``gpu-core`` goes with ``gpu-memory`` or ``gpu-memory-ratio``, which also stand alone; cards are
   counted by the ratio, or by ``gpu.shared``. Cores of an NPU go with the ratio, or with its CPUs
   and memory for a share of one.
3. An amount that is no number of GPUs is divided among them, rounded down.
4. A hint makes of an amount of ``rdma`` or ``fpga`` up to 100 that much of each device, or the
   number of devices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from koordlet.model.record import dataclass
from koordlet.scheduler.allocation import device_hints
from koordlet.scheduler.allocation.devices import (
    CORE,
    FPGA,
    GPU,
    MEMORY,
    NPU_CORE,
    NPU_CPU,
    NPU_DVPP,
    PERCENT,
    RATIO,
    RDMA,
    SHARED,
)
from koordlet.scheduler.objects.wire import BadObjectError

_CARDS = ("nvidia.com/gpu", "amd.com/gpu", "dcu.com/gpu")
_NPU = frozenset({NPU_CORE, NPU_CPU, NPU_DVPP})
_GPU = frozenset({*_CARDS, PERCENT, CORE, MEMORY, RATIO, SHARED, *_NPU})
_SINGLE = {"koordinator.sh/rdma": RDMA, "koordinator.sh/fpga": FPGA}
#: Every name that means devices.
NAMES = _GPU | _SINGLE.keys()
_TOGETHER = {
    frozenset(names)
    for names in ((MEMORY,), (RATIO,), (CORE, MEMORY), (CORE, RATIO), (NPU_CORE, RATIO))
}
#: These are shares of one card, and are asked for with ``gpu.shared``.
_NPU_SHARES = {
    frozenset(names)
    for names in ((NPU_CORE, NPU_CPU, MEMORY), (NPU_CORE, NPU_CPU, NPU_DVPP, MEMORY))
}


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """A number of devices of a type, and amounts of each."""

    kind: str
    count: int
    each: Mapping[str, int]
    #: As many as the node has, whatever ``count`` says.
    every: bool = False

    @property
    def shared(self) -> bool:
        """Whether it is a share of a GPU, which others may have the rest of."""
        return self.each.get(RATIO, 0) < 100


@dataclass(frozen=True, slots=True)
class DeviceAsk:
    """All that a pod asks for in devices."""

    requests: tuple[DeviceRequest, ...]
    wishes: device_hints.DeviceWishes = device_hints.NONE
    #: The names of the templates that it matches, by vendor and model; ``None``: it needs none.
    templates: Mapping[str, tuple[str, ...]] | None = None

    @property
    def joint(self) -> tuple[str, ...]:
        """The types that are allocated together, the first of them first; empty: none are."""
        joint = self.wishes.joint
        if joint is None or len(self.requests) < 2:
            return ()
        asked = {request.kind for request in self.requests if not request.every}
        return tuple(kind for kind in joint.kinds if kind in asked)

    def hint(self, kind: str) -> device_hints.DeviceHint:
        """The hint about a type."""
        return self.wishes.hints.get(kind, device_hints.NO_HINT)


NOTHING = DeviceAsk(())


def kind_of(name: str) -> str:
    """The type of device that a resource belongs to; empty: none."""
    return GPU if name in _GPU else _SINGLE.get(name, "")


def of(real: Mapping[str, int]) -> tuple[DeviceRequest, ...]:
    """The device requests; ``BadObjectError`` where names or amounts contradict each other."""
    if NAMES.isdisjoint(real):
        return ()
    asked = {name: real[name] for name in sorted(NAMES & real.keys()) if real[name] > 0}
    wants = [_gpus({name: amount for name, amount in asked.items() if name in _GPU})]
    wants += [_single(name, asked[name]) for name in _SINGLE if name in asked]
    return tuple(request for request in wants if request is not None)


def ask(real: Mapping[str, int], annotations: Mapping[str, str]) -> DeviceAsk:
    """What a pod asks for; ``BadObjectError`` where requests or hints cannot be served by any."""
    if NAMES.isdisjoint(real):
        return NOTHING
    requests, wishes = of(real), device_hints.read(annotations)
    if not wishes.hints:
        return DeviceAsk(requests, wishes)
    return DeviceAsk(tuple(_hinted(request, wishes.hints) for request in requests), wishes)


def rough_ask(real: Mapping[str, int], annotations: Mapping[str, str]) -> DeviceAsk:
    """The same, without what cannot be read."""
    try:
        return ask(real, annotations)
    except BadObjectError:
        return DeviceAsk(rough(real))


def _hinted(request: DeviceRequest, hints: Mapping[str, device_hints.DeviceHint]) -> DeviceRequest:
    hint = hints.get(request.kind, device_hints.NO_HINT)
    if request.kind == GPU or request.count > 1:
        return request
    if hint.strategy == device_hints.APPLY_FOR_ALL:
        return replace(request, every=True)
    if hint.strategy != device_hints.AS_COUNT:
        return request
    [(name, amount)] = request.each.items()
    much = 100 if hint.exclusive == device_hints.DEVICE_LEVEL else 1
    return DeviceRequest(request.kind, amount, {name: much})


def rough(real: Mapping[str, int]) -> tuple[DeviceRequest, ...]:
    """The device requests of a placed pod; what cannot be read counts as nothing."""
    try:
        return of(real)
    except BadObjectError:
        return ()


def _single(name: str, amount: int) -> DeviceRequest:
    count = _counted(name, amount)
    return DeviceRequest(_SINGLE[name], count, {name: amount // count})


def _counted(name: str, amount: int) -> int:
    """The number of devices that a percentage amounts to."""
    if amount > 100 and amount % 100:
        raise BadObjectError(f"invalid resource unit {name}: {amount}")
    return max(1, amount // 100)


def _gpus(asked: Mapping[str, int]) -> DeviceRequest | None:
    if not asked:
        return None
    if len(asked) == 1:
        [(name, amount)] = asked.items()
        if name in _CARDS:
            return DeviceRequest(GPU, amount, {CORE: 100, RATIO: 100})
        if name == PERCENT:
            count = _counted(name, amount)
            return DeviceRequest(GPU, count, {CORE: amount // count, RATIO: amount // count})
    rest = {name: amount for name, amount in asked.items() if name != SHARED}
    shared = asked.get(SHARED, 0)
    if frozenset(rest) in _NPU_SHARES and shared == 1 and rest.get(NPU_DVPP, 0) <= 100:
        return DeviceRequest(GPU, 1, rest)
    if frozenset(rest) not in _TOGETHER or (shared and NPU_CORE in rest):
        raise _unfit(asked)
    per_cent = [rest[name] for name in (CORE, RATIO) if name in rest]
    if shared:
        if any(share % shared or share // shared > 100 for share in per_cent):
            raise _unfit(asked)
        count = shared
    else:
        if any(share > 100 and share % 100 for share in per_cent):
            raise _unfit(asked)
        count = max(1, rest.get(RATIO, 0) // 100)
    each = {name: max(1, amount // count) for name, amount in rest.items()}
    return DeviceRequest(GPU, count, each)


def _unfit(asked: Mapping[str, int]) -> BadObjectError:
    return BadObjectError(f"invalid resource device requests: [{' '.join(sorted(asked))}]")
