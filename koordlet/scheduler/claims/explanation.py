"""Why a node cannot serve a pod's claims, in a line for each request that is short.

Covers: how many devices a request could have if it were alone, and what keeps it off the others.
Does not cover: whether the node can serve them (``allocator``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from koordlet.scheduler.claims import choices, devices_in_use, pools, search_time
from koordlet.scheduler.claims.demand import AllocationError, ClaimDemand, RequestDemand


def lines(
    claims: Sequence[ClaimDemand],
    node: pools.NodePools,
    in_use: devices_in_use.DevicesInUse,
    time: search_time.SearchTime,
) -> list[str]:
    """Of each claim the requests that the node is short for; else what they compete for."""
    unsound = [
        f"resource pool {pool.name} is {pool.state.value}"
        f"{f' ({pool.reason})' if pool.reason else ''}: its devices do not count"
        for pool in node.pools
        if pool.state is not pools.PoolState.SOUND
    ]
    single = choices.Choices(claims, node, in_use, time)
    short = [line for place in range(len(claims)) for line in _short(claims, place, node, single)]
    if short:
        return unsound + short
    keys = ", ".join(wanted.claim.key for wanted in claims)
    names = sorted({name for wanted in claims for name in _attributes(wanted)})
    rules = f" or agree on {', '.join(names)}" if names else ""
    alone = [wish for wanted in claims for wishes in wanted.requests for wish in wishes]
    why = f"claims {keys}: each request could be served alone, but not together{rules}"
    if len(alone) == 1:
        asked = f"request {alone[0].name}: asks for {_asked(alone[0])}"
        why = f"claim {keys}, {asked}, but no devices or shares have room together{rules}"
    return [*unsound, why]


def _asked(wanted: RequestDemand) -> str:
    return "all" if wanted.takes_all else str(wanted.request.count)


def _short(
    claims: Sequence[ClaimDemand], place: int, node: pools.NodePools, single: choices.Choices
) -> Iterator[str]:
    """A request with several wishes is short where each of them is."""
    for wishes in claims[place].requests:
        reasons = [_request(place, wish, node, single) for wish in wishes]
        if all(reasons):
            yield from reasons


def _request(
    place: int, wanted: RequestDemand, node: pools.NodePools, single: choices.Choices
) -> str:
    """Empty where the request could be served alone."""
    kept_off: Counter[str] = Counter()
    usable = shared = 0
    try:
        for each in range(len(node.devices)):
            choice = single.usable(place, wanted, each)
            if isinstance(choice, choices.DeviceObstacle):
                # A device that is in use would not help, either, where it is not selected.
                selected = single.selects(wanted, node.devices[each])
                rule = choice if selected else choices.DeviceObstacle.NOT_SELECTED
                kept_off[rule.value] += 1
            else:
                usable += 1
                shared += choice.consumed is not None
    except AllocationError as error:
        return str(error)
    if wanted.takes_all:
        if usable and not set(kept_off) - {choices.DeviceObstacle.NOT_SELECTED.value}:
            return ""
    elif usable >= wanted.request.count or shared:
        # How many shares there are is seen together only.
        return ""
    rules = "".join(f", {number} {rule}" for rule, number in sorted(kept_off.items()))
    return (
        f"claim {wanted.claim}, request {wanted.name}: asks for {_asked(wanted)},"
        f" {usable} of {len(node.devices)} devices usable{rules}"
    )


def _attributes(wanted: ClaimDemand) -> Iterator[str]:
    for constraint in wanted.claim.constraints:
        yield constraint.match_attribute or constraint.distinct_attribute
