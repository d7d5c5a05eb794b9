"""What a search has chosen so far on one node, and whether a device may be chosen next.

Covers: the rules of a single device, counting and undoing a choice, which devices are equal.
Does not cover: the order of choices (``allocator``), whether constraints of other claims hold.

Admin access may have a device that another claim has whole. Counters and capacities have to be
enough for it, too: for kube-scheduler it counts while it is chosen, and not any more when a claim
has it (``devices_in_use``).
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

from koordlet.model.record import dataclass
from koordlet.scheduler.claims import (
    constraints,
    consumable_capacity,
    counters,
    devices_in_use,
    pools,
    search_time,
    tolerations,
)
from koordlet.scheduler.claims.demand import AllocationError, ClaimDemand, RequestDemand


@dataclass(frozen=True, slots=True)
class ChosenDevice:
    """A device for a request."""

    #: The place of the claim in the pod.
    claim: int
    request: RequestDemand
    device: pools.PoolDevice
    #: The place of the device on the node.
    place: int
    #: Of a shared device: what of each capacity, by name.
    consumed: Mapping[str, Fraction] | None = None


class DeviceObstacle(enum.Enum):
    """Why a device may not be chosen, in the order of the rules."""

    IN_USE = "in use"
    NOT_SELECTED = "not selected"
    TAINTED = "tainted"
    COUNTERS = "short of counters"
    CAPACITY = "short of capacity"


class Choices:
    """Devices by claim, last in first out."""

    def __init__(
        self,
        claims: Sequence[ClaimDemand],
        node: pools.NodePools,
        in_use: devices_in_use.DevicesInUse,
        time: search_time.SearchTime,
    ) -> None:
        self.made: list[ChosenDevice] = []
        #: By claim the number of its devices.
        self.counts = [0] * len(claims)
        self._claims, self._node, self._in_use, self._time = claims, node, in_use, time
        #: By claim the devices that it has, but for shares.
        self._of_claim: list[set[pools.DeviceId]] = [set() for _ in claims]
        #: By device how many claims have it: with admin access one has what another one has.
        self._whole: Counter[pools.DeviceId] = Counter()
        self._shares: dict[pools.DeviceId, list[Mapping[str, Fraction]]] = {}
        self._room = counters.CounterRoom(in_use)
        self._values = [
            [constraints.ChosenValues(each) for each in wanted.claim.constraints]
            for wanted in claims
        ]
        self._signatures: dict[int, object] = {}

    def usable(
        self, claim: int, wanted: RequestDemand, place: int
    ) -> ChosenDevice | DeviceObstacle:
        """The choice of a device, or why it may not be chosen now; constraints are not asked."""
        device = self._node.devices[place]
        obstacle = self._obstacle(claim, wanted, place)
        if obstacle is not None:
            return obstacle
        shared = device.device.allow_multiple_allocations
        if not shared and not wanted.request.capacity:
            return ChosenDevice(claim, wanted, device, place)
        share = self.share(wanted, device)
        if share is None:
            return DeviceObstacle.CAPACITY
        return ChosenDevice(claim, wanted, device, place, share if shared else None)

    def _obstacle(self, claim: int, wanted: RequestDemand, place: int) -> DeviceObstacle | None:
        """All rules but that of capacities, which says how much a device gives, too."""
        device, request = self._node.devices[place], wanted.request
        in_use = self._whole[device.id] > 0 or self._in_use.excludes(device)
        if device.id in self._of_claim[claim] or (in_use and not request.admin_access):
            return DeviceObstacle.IN_USE
        if not self.selects(wanted, device):
            return DeviceObstacle.NOT_SELECTED
        taints = device.device.taints
        if taints and not tolerations.tolerated(taints, request.tolerations):
            return DeviceObstacle.TAINTED
        counted = device.consumes and self._is_first(device)
        if counted and not self._room.fits(self._node.owners[place], device):
            return DeviceObstacle.COUNTERS
        return None

    def selects(self, wanted: RequestDemand, device: pools.PoolDevice) -> bool:
        """Whether class and request select a device, while there is time to evaluate that."""
        return wanted.selects(device, self._time.check)

    def share(
        self, wanted: RequestDemand, device: pools.PoolDevice
    ) -> Mapping[str, Fraction] | None:
        """What a request takes of a device's capacities; ``None``: more than there is."""
        taken = consumable_capacity.share(device.device, wanted.request.capacity)
        if taken is None or not device.device.allow_multiple_allocations:
            return taken
        total = dict(taken)
        for other in (self._in_use.consumed(device.id), *self._shares.get(device.id, ())):
            for name, amount in other.items():
                total[name] = total.get(name, Fraction(0)) + amount
        fits = consumable_capacity.fits(device.device, total)
        return taken if fits else None

    def admitted(self, choice: ChosenDevice) -> bool:
        """Whether the claim's constraints let it be chosen."""
        values = self._values[choice.claim]
        return all(values[each].admits(choice.device) for each in choice.request.constraints)

    def add(self, choice: ChosenDevice) -> None:
        """Choose what is usable and admitted."""
        device = choice.device
        if device.consumes and self._is_first(device):
            self._room.take(self._node.owners[choice.place], device)
        if choice.consumed is None:
            self._whole[device.id] += 1
            self._of_claim[choice.claim].add(device.id)
        else:
            self._shares.setdefault(device.id, []).append(choice.consumed)
        for each in choice.request.constraints:
            self._values[choice.claim][each].add(device)
        self.counts[choice.claim] += 1
        self.made.append(choice)

    def undo(self) -> ChosenDevice:
        """Take back the last choice."""
        choice = self.made.pop()
        device = choice.device
        self.counts[choice.claim] -= 1
        for each in choice.request.constraints:
            self._values[choice.claim][each].remove()
        if choice.consumed is None:
            self._of_claim[choice.claim].discard(device.id)
            self._whole[device.id] -= 1
        else:
            self._shares[device.id].pop()
        if device.consumes and self._is_first(device):
            self._room.give_back(self._node.owners[choice.place], device)
        return choice

    def signature(self, place: int) -> object | None:
        """Equal for devices that may stand for each other; ``None``: nothing is known equal."""
        if place not in self._signatures:
            self._signatures[place] = self._signature(self._node.devices[place])
        return self._signatures[place]

    def _signature(self, device: pools.PoolDevice) -> object | None:
        if device.device.allow_multiple_allocations or self._in_use.excludes(device):
            return None
        requests = [
            wish for wanted in self._claims for wishes in wanted.requests for wish in wishes
        ]
        # What somebody else has is not the same to a request with admin access.
        if any(wish.request.admin_access for wish in requests):
            return None
        try:
            serves = tuple(self._serves(wish, device) for wish in requests)
        except AllocationError:
            return None
        names = {each.name for values in self._values for each in values}
        return (
            serves,
            tuple(constraints.attribute(device, name) for name in sorted(names)),
            (device.id[:2], frozenset(device.consumes.items())) if device.consumes else None,
        )

    def _serves(self, wanted: RequestDemand, device: pools.PoolDevice) -> bool:
        return (
            self.selects(wanted, device)
            and tolerations.tolerated(device.device.taints, wanted.request.tolerations)
            and self.share(wanted, device) is not None
        )

    def _is_first(self, device: pools.PoolDevice) -> bool:
        """Whether nobody has a share of a device yet, so that its counters are not consumed."""
        return not self._shares.get(device.id) and device.id not in self._in_use.shares
