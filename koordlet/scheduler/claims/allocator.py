"""The search for devices that satisfy a pod's claims on one node.

Covers: depth first over claims, requests, wishes and devices; the first complete choice is taken.
Does not cover: the objects that are written of it (``results``), which nodes are asked, scores.

A device is usable for a request if, in this order:

1. no claim has it and the search has not chosen it, unless it is shared or the request has admin
   access, which may take what other claims have; no request has two shares of one device;
2. the selectors of class and request select it;
3. the request bears its taints;
4. counters of its pool and, of a shared device, its capacities are enough;
5. the claim's constraints admit it.

Several devices of one request are combinations in the order of devices, never permutations: a
solution that has them in another order has them in this order, too. Where a device led to nothing,
its equals are passed over: exchanging the two in any solution would have made one of the former.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from koordlet.model.record import dataclass
from koordlet.scheduler.claims import choices, devices_in_use, pools, search_time
from koordlet.scheduler.claims.demand import AllocationError, ClaimDemand, RequestDemand
from koordlet.scheduler.objects import resource_claims

#: Why a node has no solution.
NO_SOLUTION = "cannot allocate all claims"
INVALID_POOLS = "invalid resource pools were encountered"
#: Devices that are tried before the time is asked again.
_STEPS = 256


@dataclass(frozen=True, slots=True)
class Solution:
    """Devices for all claims of a pod, or why a node has none."""

    devices: tuple[choices.ChosenDevice, ...] = ()
    #: Empty where there is a solution.
    why_not: str = ""


def search(
    claims: Sequence[ClaimDemand],
    node: pools.NodePools,
    in_use: devices_in_use.DevicesInUse,
    time: search_time.SearchTime,
) -> Solution:
    """The first solution on a node.

    ``AllocationError``: the pod cannot be served at all, or the time was over.
    """
    if (wanted := _single(claims)) is not None:
        return _first(claims, wanted, node, in_use, time)
    run = _Search(claims, node, in_use, time)
    if run.solve():
        return Solution(tuple(run.choices.made))
    return Solution(why_not=INVALID_POOLS if node.has_invalid else NO_SOLUTION)


def _single(claims: Sequence[ClaimDemand]) -> RequestDemand | None:
    """The request of a demand for one device and nothing else, as most are."""
    if len(claims) != 1 or len(claims[0].requests) != 1 or len(claims[0].requests[0]) != 1:
        return None
    wanted = claims[0].requests[0][0]
    alone = not wanted.takes_all and wanted.request.count == 1 and not wanted.constraints
    return wanted if alone else None


def _first(
    claims: Sequence[ClaimDemand],
    wanted: RequestDemand,
    node: pools.NodePools,
    in_use: devices_in_use.DevicesInUse,
    time: search_time.SearchTime,
) -> Solution:
    """The first device that is usable: what a search finds where nothing else is asked for."""
    choice_of = choices.Choices(claims, node, in_use, time).usable
    for place in range(len(node.devices)):
        choice = choice_of(0, wanted, place)
        if isinstance(choice, choices.ChosenDevice):
            return Solution((choice,))
    return Solution(why_not=INVALID_POOLS if node.has_invalid else NO_SOLUTION)


class _Level(Protocol):
    """One decision on the way to a solution; decisions stand on those before."""

    def advance(self) -> bool:
        """Undo what was decided here and decide the next; whether there was one."""

    def following(self) -> _Level | None:
        """The decision after this one; ``None``: everything is decided."""


class _Search:
    """The levels of a search share this: what is asked, what there is, what was chosen."""

    def __init__(
        self,
        claims: Sequence[ClaimDemand],
        node: pools.NodePools,
        in_use: devices_in_use.DevicesInUse,
        time: search_time.SearchTime,
    ) -> None:
        self.claims, self.node = claims, node
        self.choices = choices.Choices(claims, node, in_use, time)
        self._time = time
        self._steps = 0
        #: Of requests for all: places of the devices.
        self._all: dict[int, list[int]] = {}

    def solve(self) -> bool:
        """Whether there is a solution; the choices have it."""
        for wanted in self.claims:
            self._check_number(wanted)
        first = self.level(0, 0)
        levels = [first] if first is not None else []
        while levels:
            if not levels[-1].advance():
                levels.pop()
                continue
            following = levels[-1].following()
            if following is None:
                return True
            levels.append(following)
        return first is None

    def level(self, claim: int, request: int) -> _Level | None:
        """The first decision of a request; ``None`` behind the last one."""
        while claim < len(self.claims) and request >= len(self.claims[claim].requests):
            claim, request = claim + 1, 0
        if claim == len(self.claims):
            return None
        wishes = self.claims[claim].requests[request]
        return _Wishes(self, claim, request) if len(wishes) > 1 else self.picks(claim, request, 0)

    def picks(self, claim: int, request: int, wish: int) -> _Level:
        """The first decision about devices of one wish."""
        wanted = self.claims[claim].requests[request][wish]
        if wanted.takes_all:
            return _EveryDevice(self, claim, request, wanted)
        return _OneDevice(self, claim, request, wanted, ())

    def usable(
        self, claim: int, wanted: RequestDemand, place: int
    ) -> choices.ChosenDevice | choices.DeviceObstacle:
        """The choice of a device but for the constraints; it counts as a step."""
        self._steps += 1
        if not self._steps % _STEPS:
            self._time.check()
        return self.choices.usable(claim, wanted, place)

    def exceeds(self, claim: int, number: int) -> bool:
        """Whether a claim would have more devices than its status can hold."""
        return self.choices.counts[claim] + number > resource_claims.MOST_DEVICES

    def number(self, wanted: RequestDemand) -> int:
        """How many devices a request takes."""
        return len(self.all_of(wanted)) if wanted.takes_all else wanted.request.count

    def all_of(self, wanted: RequestDemand) -> list[int]:
        """Places of all devices that a request for all takes."""
        known = self._all.get(id(wanted))
        if known is None:
            known = self._all[id(wanted)] = list(self._everything(wanted))
        return known

    def _check_number(self, wanted: ClaimDemand) -> None:
        number = sum(min(map(self.number, wishes)) for wishes in wanted.requests)
        if number > resource_claims.MOST_DEVICES:
            raise AllocationError(
                f"claim {wanted.claim.key}: number of requested devices {number}"
                f" exceeds the claim limit of {resource_claims.MOST_DEVICES}"
            )

    def _everything(self, wanted: RequestDemand) -> Iterator[int]:
        where = f"claim {wanted.claim}, request {wanted.request.name}"
        for pool in self.node.pools:
            if pool.state is not pools.PoolState.SOUND:
                raise AllocationError(
                    f"{where}: asks for all devices, but resource pool {pool.name}"
                    f" is currently {pool.state.value}"
                )
        for place, device in enumerate(self.node.devices):
            if (
                self.choices.selects(wanted, device)
                and self.choices.share(wanted, device) is not None
            ):
                yield place


class _Wishes:
    """Which of several wishes of a request shall be served."""

    def __init__(self, run: _Search, claim: int, request: int) -> None:
        self._run, self._claim, self._request = run, claim, request
        self._wish = -1

    def advance(self) -> bool:
        wishes = self._run.claims[self._claim].requests[self._request]
        for wish in range(self._wish + 1, len(wishes)):
            self._wish = wish
            if not self._run.exceeds(self._claim, self._run.number(wishes[wish])):
                return True
        return False

    def following(self) -> _Level | None:
        return self._run.picks(self._claim, self._request, self._wish)


class _OneDevice:
    """The next device of a request for some; those before it are chosen already."""

    def __init__(
        self,
        run: _Search,
        claim: int,
        request: int,
        wanted: RequestDemand,
        before: tuple[int, ...],
    ) -> None:
        self._run, self._claim, self._request = run, claim, request
        self._wanted, self._before = wanted, before
        # Also of a shared device one request has one share.
        self._next = before[-1] + 1 if before else 0
        self._is_chosen = False
        self._failed: set[object] = set()

    def advance(self) -> bool:
        run, chosen = self._run, self._run.choices
        if self._is_chosen:
            self._is_chosen = False
            signature = chosen.signature(chosen.undo().place)
            if signature is not None:
                self._failed.add(signature)
        elif run.exceeds(self._claim, self._missing()):
            return False
        for place in range(self._next, len(run.node.devices)):
            choice = run.usable(self._claim, self._wanted, place)
            if isinstance(choice, choices.DeviceObstacle):
                continue
            if self._failed and chosen.signature(place) in self._failed:
                continue
            if chosen.admitted(choice):
                chosen.add(choice)
                self._next, self._is_chosen = place + 1, True
                return True
        return False

    def following(self) -> _Level | None:
        if self._missing() == 1:
            return self._run.level(self._claim, self._request + 1)
        before = (*self._before, self._next - 1)
        return _OneDevice(self._run, self._claim, self._request, self._wanted, before)

    def _missing(self) -> int:
        return self._wanted.request.count - len(self._before)


class _EveryDevice:
    """All devices of a request for all, or none."""

    def __init__(self, run: _Search, claim: int, request: int, wanted: RequestDemand) -> None:
        self._run, self._claim, self._request = run, claim, request
        self._wanted = wanted
        self._chosen = 0
        self._is_tried = False

    def advance(self) -> bool:
        run, places = self._run, self._run.all_of(self._wanted)
        if not self._is_tried and places and not run.exceeds(self._claim, len(places)):
            self._is_tried = True
            if all(map(self._choose, places)):
                return True
        self._is_tried = True
        for _ in range(self._chosen):
            run.choices.undo()
        self._chosen = 0
        return False

    def following(self) -> _Level | None:
        return self._run.level(self._claim, self._request + 1)

    def _choose(self, place: int) -> bool:
        run, wanted = self._run, self._wanted
        choice = run.usable(self._claim, wanted, place)
        if isinstance(choice, choices.DeviceObstacle):
            return False
        if not run.choices.admitted(choice):
            raise AllocationError(
                f"claim {wanted.claim}, request {wanted.request.name}: cannot add device"
                f" {'/'.join(choice.device.id)} because a claim constraint would not be satisfied"
            )
        run.choices.add(choice)
        self._chosen += 1
        return True
