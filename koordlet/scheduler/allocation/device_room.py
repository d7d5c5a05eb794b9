"""The free devices of a node: who has what, what reservations hold and hand over.

Covers: one node: free amounts, devices in use, virtual functions, which devices serve a request.
Does not cover: what is asked for (``device_requests``), the choice (``device_choice``), which
reservation a pod draws on (``scheduler.reservation.fit``).

Rules:
1. What is free follows from the Device and the pods on the node, and there is no other account. A
   reserve pod holds what was chosen for it, as far as the device has it now, less what its owners
   have. The devices of a running pod stay as they were allocated.
2. A pod that draws on a reservation finds that rest free. No device ever gives more than it has.
3. A pod that requests devices and names none (a broken annotation, another scheduler) counts as
   placed after all others, with as much as is left where its request does not fit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field

from koordlet.model.record import dataclass
from koordlet.scheduler.allocation import device_requests
from koordlet.scheduler.allocation.device_requests import DeviceRequest
from koordlet.scheduler.allocation.devices import (
    MEMORY,
    RATIO,
    Device,
    DeviceFunction,
    Devices,
    Slice,
)
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.reservation.info import ReservationInfo
from koordlet.scheduler.reservation.spec import AllocatePolicy

Key = tuple[str, int]
Left = dict[Key, dict[str, int]]
#: By which resources devices are compared.
SCORED: Mapping[str, int] = {
    **dict.fromkeys((RATIO, MEMORY), 1),
    **dict.fromkeys(("koordinator.sh/rdma", "koordinator.sh/fpga"), 1),
}


@dataclass(frozen=True, slots=True)
class DeviceRefusal:
    """Why devices cannot be had, and whether removing pods could not help."""

    reasons: tuple[str, ...]
    final: bool


@dataclass(frozen=True, slots=True)
class DevicePreference:
    """The preference among several devices: weights, emptier or fuller."""

    weights: Mapping[str, int] = field(default_factory=lambda: SCORED)
    #: The fullest instead of the emptiest.
    most: bool = False


@dataclass(frozen=True, slots=True)
class DrawContext:
    """The reservations and pods whose devices count as free for a pod."""

    #: The reservation that he draws on.
    draws: ReservationInfo | None = None
    #: He may use what any reservation holds.
    ignores: bool = False
    #: Those whose devices become his.
    heirs_of: Collection[Pod] = ()


NOBODY = DrawContext()
TASTE = DevicePreference()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A device that has enough left for one share of a request."""

    device: Device
    #: The share, with memory in both of its units.
    asked: Mapping[str, int]
    left: Mapping[str, int]

    def score(self, each: Mapping[str, int], taste: DevicePreference) -> int:
        """How good it is for such a request, from 0 to 100."""
        return _score(self.device.room, self.left, each, taste)


class DeviceRoom:
    """The free amounts of each healthy device."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        self._known: dict[Key, Device] = {
            (device.kind, device.minor): device for device in devices.several
        }
        self.left: Left = {
            key: dict(device.room) for key, device in self._known.items() if device.healthy
        }
        #: Devices of which somebody has something, also where they are broken or gone.
        self.used: set[Key] = set()
        #: Virtual functions that somebody has, with their devices.
        self.functions: set[tuple[Key, str]] = set()

    @classmethod
    def of(
        cls, devices: Devices, columns: Columns, row: int, apart: DrawContext = NOBODY
    ) -> DeviceRoom:
        """The room that the pods on a node leave."""
        room = cls(devices)
        loose: list[DeviceRequest] = []
        for named, wants in _parts(columns, row, devices, apart):
            for part in named:
                room.take(part)
            loose += wants
        for want in loose:
            for each in room._guessed(want):
                room.take(Slice(want.kind, each.device.minor, each.device.id, each.asked))
        return room

    def take(self, part: Slice) -> None:
        """Take a slice away; a device that is gone or broken has nothing left anyway."""
        key = part.kind, part.minor
        if any(part.amounts.values()):
            self.used.add(key)
        self.functions.update((key, function.bus) for function in part.functions)
        if key not in self.left:
            return
        left, device = self.left[key], self._known[key]
        for name, much in device.filled(part.amounts).items():
            left[name] = left.get(name, 0) - much

    def candidates(self, want: DeviceRequest, within: Left | None = None) -> list[Candidate]:
        """The devices that have enough left, of this part of it, by minor."""
        able: list[Candidate] = []
        #: By how much memory a device has: that decides what the other unit of it means.
        filled: dict[int, dict[str, int]] = {}
        for device in self._devices.of(want.kind):
            key, whole = (device.kind, device.minor), device.room.get(MEMORY, 0)
            left = self.left.get(key)
            inside = left if within is None else within.get(key)
            if left is None or inside is None:
                continue
            asked = filled.get(whole)
            if asked is None:
                asked = filled[whole] = device.filled(want.each)
            if _suffices(left, asked) and (inside is left or _suffices(inside, asked)):
                able.append(Candidate(device, asked, left))
        return able

    def _guessed(self, want: DeviceRequest) -> list[Candidate]:
        """The devices that a pod which names none may have: the emptiest, as far as there are."""
        ranked = sorted(self.candidates(want), key=lambda each: -each.score(want.each, TASTE))
        return ranked[: want.count]

    def share(self, want: DeviceRequest, taste: DevicePreference) -> int:
        """How empty or how full a node's healthy devices would be, from 0 to 100."""
        several = [device for device in self._devices.of(want.kind) if device.healthy]
        room = {name: sum(device.room.get(name, 0) for device in several) for name in want.each}
        # Of a device that shrank more is given than there is: that is taken off no other.
        left = {
            name: sum(
                max(0, self.left[device.kind, device.minor].get(name, 0)) for device in several
            )
            for name in want.each
        }
        return _score(room, left, {n: want.count * much for n, much in want.each.items()}, taste)


def rest(info: ReservationInfo, devices: Devices) -> Left:
    """What its owners have left of a reservation's devices."""
    known = {(device.kind, device.minor): device for device in devices.several}
    left: Left = {}
    reserved = info.spec.allocatable
    for slice_ in info.reserve_pod.devices if info.reserve_pod is not None else ():
        device = known.get((slice_.kind, slice_.minor))
        amounts = slice_.amounts if device is None else device.kept(slice_.amounts, reserved)
        part = left.setdefault((slice_.kind, slice_.minor), {})
        for name, much in amounts.items():
            part[name] = part.get(name, 0) + much
    for owner in info.owners.values():
        for slice_ in owner.devices:
            part = left.get((slice_.kind, slice_.minor), {})
            device = known.get((slice_.kind, slice_.minor))
            taken = dict(slice_.amounts) if device is None else device.filled(slice_.amounts)
            for name in part.keys() & taken.keys():
                part[name] = max(0, part[name] - taken[name])
    return left


def kept_functions(info: ReservationInfo) -> dict[Key, dict[str, DeviceFunction]]:
    """The virtual functions that a reservation has and none of its owners, by bus address."""
    kept: dict[Key, dict[str, DeviceFunction]] = {}
    for slice_ in info.reserve_pod.devices if info.reserve_pod is not None else ():
        if slice_.functions:
            known = kept.setdefault((slice_.kind, slice_.minor), {})
            known.update((function.bus, function) for function in slice_.functions)
    for slice_ in (slice_ for owner in info.owners.values() for slice_ in owner.devices):
        for function in slice_.functions:
            kept.get((slice_.kind, slice_.minor), {}).pop(function.bus, None)
    return kept


def restricts(info: ReservationInfo, kind: str) -> bool:
    """Whether owners get devices of this type from their reservation alone."""
    named = any(device_requests.kind_of(name) == kind for name in info.spec.restricted)
    return info.spec.policy is AllocatePolicy.RESTRICTED and named


def _suffices(left: Mapping[str, int], asked: Mapping[str, int]) -> bool:
    for name, much in asked.items():  # noqa: SIM110 -- asked of every device, and twice as fast
        if much > left.get(name, 0):
            return False
    return True


def _score(
    room: Mapping[str, int],
    left: Mapping[str, int],
    asked: Mapping[str, int],
    taste: DevicePreference,
) -> int:
    """The score of a device: how empty or how full it would be, from 0 to 100."""
    total = weights = 0
    for name, weight in taste.weights.items():
        whole = room.get(name, 0)
        if name in asked and whole > 0:
            share = 100 * (left.get(name, 0) - asked[name]) // whole
            total += weight * (100 - share if taste.most else share)
            weights += weight
    return total // weights if weights else 0


def _parts(
    columns: Columns, row: int, devices: Devices, apart: DrawContext
) -> Iterator[tuple[list[Slice], list[DeviceRequest]]]:
    """What each other pod has: devices by name, and amounts without a device."""
    for pod in columns.pods[row].values():
        if not pod.devices and device_requests.NAMES.isdisjoint(pod.pod_class.requests.real):
            continue
        info = columns.kept_reservation(pod)
        if info is None or info.reserve_pod is not pod:
            if pod in apart.heirs_of:
                continue
            named, wants = list(pod.devices), device_requests.rough(pod.pod_class.requests.real)
        elif info is apart.draws or (apart.ignores and not info.operating):
            continue
        else:
            left, functions = rest(info, devices), kept_functions(info)
            named = [
                Slice(*key, "", part, tuple(functions.get(key, {}).values()))
                for key, part in left.items()
            ]
            try:
                wants = device_requests.of(info.held())
            except BadObjectError:
                # Where what it holds now is no round number, all of it.
                wants = device_requests.rough(info.spec.allocatable)
        kinds = {part.kind for part in pod.devices}
        yield named, [want for want in wants if want.kind not in kinds]
