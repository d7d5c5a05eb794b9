"""What a search has chosen so far on one node, and whether a device may be chosen next.

Covers: the rules of a single device, counting and undoing a choice, constraints of a claim over the
attributes of its devices, counters of pools, which devices are equal.
Does not cover: the order of choices (``allocator``), whether constraints of other claims hold.

Admin access may have a device that another claim has whole. Counters and capacities have to be
enough for it, too: for kube-scheduler it counts while it is chosen, and not any more when a claim
has it (``devices_in_use``).

Attributes are compared with their types: 1, true and "1" differ, and so do two spellings of a
version. A value of a type that is not served is equal to none, and distinct from none: alone it
passes.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

from koordlet.model.record import dataclass
from koordlet.scheduler.claims import consumable_capacity, devices_in_use, pools, tolerations
from koordlet.scheduler.claims.demand import AllocationError, ClaimDemand, RequestDemand
from koordlet.scheduler.objects import resource_claims, resource_slices


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


Value = tuple[type, resource_slices.Attribute]


def attribute(device: pools.PoolDevice, name: str) -> Value | None:
    """An attribute by its qualified name; ``None``: it has none."""
    attributes = device.device.attributes
    value = attributes.get(name)
    if value is None:
        domain, _, bare = name.partition("/")
        # Names without a domain are in the driver's own.
        value = attributes.get(bare) if domain == device.id[0] and bare else None
    return None if value is None else (type(value), value)


class ChosenValues:
    """A constraint, and the values of the devices that it has let pass."""

    def __init__(self, constraint: resource_claims.ClaimConstraint) -> None:
        self._distinct = not constraint.match_attribute
        self.name = constraint.match_attribute or constraint.distinct_attribute
        self._values: list[Value] = []

    def admits(self, device: pools.PoolDevice) -> bool:
        """Whether a device may be added."""
        value = attribute(device, self.name)
        if value is None or not self._values:
            return value is not None
        if value[0] is resource_slices.UnreadAttribute:
            return False
        return value not in self._values if self._distinct else value == self._values[0]

    def add(self, device: pools.PoolDevice) -> None:
        """A device that it admits is chosen."""
        value = attribute(device, self.name)
        if value is None:
            raise ValueError(f"{device.id} has no attribute {self.name}")
        self._values.append(value)

    def remove(self) -> None:
        """The device that was added last is chosen no more."""
        self._values.pop()


class CounterRoom:
    """What is left of the counters of a node's pools; each is read when a device of it asks."""

    def __init__(self, in_use: devices_in_use.DevicesInUse) -> None:
        self._in_use = in_use
        self._left: dict[pools.PoolKey, dict[tuple[str, str], Fraction]] = {}

    def fits(self, pool: pools.PoolView, device: pools.PoolDevice) -> bool:
        """Whether everything that a device consumes is there."""
        left = self._of(pool)
        return all(amount <= left[counter] for counter, amount in device.consumes.items())

    def take(self, pool: pools.PoolView, device: pools.PoolDevice) -> None:
        """A device is chosen."""
        left = self._of(pool)
        for counter, amount in device.consumes.items():
            left[counter] -= amount

    def give_back(self, pool: pools.PoolView, device: pools.PoolDevice) -> None:
        """A device is chosen no more."""
        left = self._of(pool)
        for counter, amount in device.consumes.items():
            left[counter] += amount

    def _of(self, pool: pools.PoolView) -> dict[tuple[str, str], Fraction]:
        left = self._left.get(pool.key)
        if left is None:
            left = self._left[pool.key] = self._in_use.free_counters(pool)
        return left


class Choices:
    """Devices by claim, last in first out."""

    def __init__(
        self,
        claims: Sequence[ClaimDemand],
        node: pools.NodePools,
        in_use: devices_in_use.DevicesInUse,
    ) -> None:
        self.made: list[ChosenDevice] = []
        #: By claim the number of its devices.
        self.counts = [0] * len(claims)
        self._claims, self._node, self._in_use = claims, node, in_use
        #: By claim the devices that it has, but for shares.
        self._of_claim: list[set[pools.DeviceId]] = [set() for _ in claims]
        #: By device how many claims have it: with admin access one has what another one has.
        self._whole: Counter[pools.DeviceId] = Counter()
        self._shares: dict[pools.DeviceId, list[Mapping[str, Fraction]]] = {}
        self._room = CounterRoom(in_use)
        self._values = [
            [ChosenValues(each) for each in wanted.claim.constraints] for wanted in claims
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
        if not wanted.selects(device):
            return DeviceObstacle.NOT_SELECTED
        taints = device.device.taints
        if taints and not tolerations.tolerated(taints, request.tolerations):
            return DeviceObstacle.TAINTED
        counted = device.consumes and self._is_first(device)
        if counted and not self._room.fits(self._node.owners[place], device):
            return DeviceObstacle.COUNTERS
        return None

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
            tuple(attribute(device, name) for name in sorted(names)),
            (device.id[:2], frozenset(device.consumes.items())) if device.consumes else None,
        )

    def _serves(self, wanted: RequestDemand, device: pools.PoolDevice) -> bool:
        return (
            wanted.selects(device)
            and tolerations.tolerated(device.device.taints, wanted.request.tolerations)
            and self.share(wanted, device) is not None
        )

    def _is_first(self, device: pools.PoolDevice) -> bool:
        """Whether nobody has a share of a device yet, so that its counters are not consumed."""
        return not self._shares.get(device.id) and device.id not in self._in_use.shares
