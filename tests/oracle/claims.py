"""Devices of resource claims by trying everything: pools and choices straight from the JSON.

Nothing is undone, pruned or remembered: each combination is made whole and then judged.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from koordlet.model import quantity

Body = dict[str, Any]
#: Claim, request, wish; a device with its slice.
Ask = tuple[int, str, Body]
Pick = tuple[Ask, Body, Body]
Matches = Callable[[str, Body], bool]


class Refused(Exception):  # noqa: N818
    """The pod's attempt ends with an error."""


def qualify(name: str, driver: str) -> str:
    """A name with its domain."""
    return name if "/" in name else f"{driver}/{name}"


def selected(body: Body, node: str, labels: dict[str, str]) -> bool:
    """Whether a slice or a device is for a node; of selectors ``matchExpressions`` with In."""
    if body.get("nodeName"):
        return str(body["nodeName"]) == node
    if body.get("allNodes"):
        return True
    terms = body.get("nodeSelector", {}).get("nodeSelectorTerms", [])
    return any(
        all(labels.get(want["key"]) in want["values"] for want in term["matchExpressions"])
        for term in terms
    )


def relevant(piece: Body, node: str, labels: dict[str, str]) -> bool:
    """Whether a slice matters to a node."""
    spec = piece["spec"]
    if spec.get("sharedCounters"):
        return True
    if spec.get("perDeviceNodeSelection"):
        return any(selected(device, node, labels) for device in spec["devices"])
    return selected(spec, node, labels)


def pools(slices: Sequence[Body], node: str, labels: dict[str, str]) -> list[Body]:
    """The pools of a node: slices, state, all that is known of them."""
    keys = sorted({(s["spec"]["driver"], s["spec"]["pool"]["name"]) for s in slices})
    seen = []
    for key in keys:
        own = [s for s in slices if (s["spec"]["driver"], s["spec"]["pool"]["name"]) == key]
        near = [s for s in own if relevant(s, node, labels)]
        if not near:
            continue
        newest = max(s["spec"]["pool"]["generation"] for s in near)
        near = [s for s in near if s["spec"]["pool"]["generation"] == newest]
        near.sort(key=lambda s: s["metadata"]["name"])
        count, whole = near[0]["spec"]["pool"]["resourceSliceCount"], near
        if len(near) != count:
            if any(s["spec"]["pool"]["generation"] > newest for s in own):
                continue
            whole = [s for s in own if s["spec"]["pool"]["generation"] == newest]
        seen.append({"key": key, "near": near, "whole": whole, "state": state(near, whole, count)})
    late = [pool for pool in seen if has_conditions(pool)]
    return [pool for pool in seen if pool not in late] + late


def has_conditions(pool: Body) -> bool:
    """Whether a device that gives itself has binding conditions."""
    return pool["state"] == "sound" and any(
        device.get("bindingConditions")
        for piece in pool["near"]
        for device in piece["spec"].get("devices", [])
    )


def state(near: Sequence[Body], whole: Sequence[Body], count: int) -> str:
    """Sound, incomplete or invalid."""
    if len(whole) != count:
        return "incomplete"
    names = [d["name"] for s in near for d in s["spec"].get("devices", [])]
    sets = [c for s in near for c in s["spec"].get("sharedCounters", [])]
    known = {(c["name"], counter) for c in sets for counter in c["counters"]}
    used = {
        (use["counterSet"], counter)
        for s in whole
        for d in s["spec"].get("devices", [])
        for use in d.get("consumesCounters", [])
        for counter in use["counters"]
    }
    twice = len(names) > len(set(names)) or len(sets) > len({c["name"] for c in sets})
    return "invalid" if twice or not used <= known else "sound"


def offered(pool: Body, node: str, labels: dict[str, str]) -> Iterator[tuple[Body, Body]]:
    """Devices of a sound pool with their slices."""
    for piece in pool["near"] if pool["state"] == "sound" else ():
        for device in piece["spec"].get("devices", []):
            alone = piece["spec"].get("perDeviceNodeSelection")
            if not alone or selected(device, node, labels):
                yield device, piece


class Oracle:
    """One node, one pod."""

    def __init__(
        self,
        slices: Sequence[Body],
        claims: Sequence[Body],
        results: Sequence[Body],
        *,
        node: str,
        labels: dict[str, str],
        matches: Matches,
    ) -> None:
        self.pools = pools(slices, node, labels)
        self.devices = [each for pool in self.pools for each in offered(pool, node, labels)]
        self.claims = claims
        self.held = [result for result in results if not result.get("adminAccess")]
        self.matches = matches

    def solve(self) -> list[list[tuple[str, str, str]]] | None:
        """By claim request, pool and device of the first solution."""
        wishes = [
            [
                [(place, f"{request['name']}/{wish['name']}", wish) for wish in choices]
                if (choices := request.get("firstAvailable"))
                else [(place, request["name"], request["exactly"])]
                for request in claim["spec"]["devices"]["requests"]
            ]
            for place, claim in enumerate(self.claims)
        ]
        for claim in wishes:
            if sum(min(self.number(ask) for ask in asks) for asks in claim) > 32:
                raise Refused("exceeds the claim limit")
        flat = [asks for claim in wishes for asks in claim]
        for picked in self.combinations(flat, []):
            return [
                [
                    (name, piece["spec"]["pool"]["name"], device["name"])
                    for (place, name, _), device, piece in picked
                    if place == claim
                ]
                for claim in range(len(self.claims))
            ]
        return None

    def combinations(self, asks: list[list[Ask]], before: list[Pick]) -> Iterator[list[Pick]]:
        """All solutions in the order of the search."""
        if not asks:
            yield before
            return
        for ask in asks[0]:
            for places in self.sets(ask):
                picked = before + [(ask, *self.devices[place]) for place in places]
                if self.holds(picked):
                    yield from self.combinations(asks[1:], picked)

    def sets(self, ask: Ask) -> Iterable[tuple[int, ...]]:
        """Devices that serve one wish, but for what others have."""
        if ask[2].get("allocationMode") == "All":
            every = self.every(ask)
            return [tuple(every)] if every else []
        fit = [n for n, (device, _) in enumerate(self.devices) if self.fits(ask, device)]
        return itertools.combinations(fit, ask[2].get("count", 1))

    def number(self, ask: Ask) -> int:
        """As many devices as a wish takes."""
        all_of_them = ask[2].get("allocationMode") == "All"
        return len(self.every(ask)) if all_of_them else int(ask[2].get("count", 1))

    def every(self, ask: Ask) -> list[int]:
        """All that a wish for all means."""
        if any(pool["state"] != "sound" for pool in self.pools):
            raise Refused("is currently")
        return [
            place
            for place, (device, piece) in enumerate(self.devices)
            if self.matches(ask[2]["deviceClassName"], device)
            and self.amounts(ask, device) is not None
            and (
                not device.get("allowMultipleAllocations")
                or self.capacities([(ask, device, piece)])
            )
        ]

    def fits(self, ask: Ask, device: Body) -> bool:
        """Selectors, taints, and amounts of the device alone."""
        borne = all(
            taint["effect"] == "None" or taint["key"] in {t["key"] for t in bears}
            for bears in [ask[2].get("tolerations", [])]
            for taint in device.get("taints", [])
        )
        matched = self.matches(ask[2]["deviceClassName"], device)
        return borne and matched and self.amounts(ask, device) is not None

    def holds(self, picked: list[Pick]) -> bool:
        """Whether several picks may stand together."""
        tainted = [pick for pick in picked if not self.fits(*pick[:2])]
        return not tainted and all(
            (
                self.numbers(picked),
                self.once(picked),
                self.constraints(picked),
                self.counters(picked),
                self.capacities(picked),
            )
        )

    def numbers(self, picked: list[Pick]) -> bool:
        """At most 32 for a claim."""
        return all(
            sum(ask[0] == claim for ask, *_ in picked) <= 32 for claim in range(len(self.claims))
        )

    def once(self, picked: list[Pick]) -> bool:
        """No whole device twice, none that others have; admin access minds its claim only."""
        held = {
            (result["driver"], result["pool"], result["device"], "shareID" in result)
            for result in self.held
        }
        for at, (ask, device, piece) in enumerate(picked):
            same = [p for p in picked[:at] if p[1] is device]
            admin, shared = ask[2].get("adminAccess"), device.get("allowMultipleAllocations")
            identity = (*(piece["spec"]["driver"], piece["spec"]["pool"]["name"]), device["name"])
            if not admin and (*identity, False) in held:
                return False
            if not admin and (*identity, True) in held and not shared:
                return False
            for earlier, *_ in same:
                if not shared and (earlier[0] == ask[0] or not admin):
                    return False
        return True

    def constraints(self, picked: list[Pick]) -> bool:
        """Same or different values; of requests for all, a violation is an error."""
        for place, claim in enumerate(self.claims):
            for constraint in claim["spec"]["devices"].get("constraints", []):
                named = constraint.get("requests", [])
                values = []
                for ask, device, piece in picked:
                    covered = not named or ask[1] in named or ask[1].split("/")[0] in named
                    if ask[0] == place and covered:
                        name = constraint.get("matchAttribute") or constraint["distinctAttribute"]
                        values.append(value(device, name, piece["spec"]["driver"]))
                distinct = len({str(v) for v in values})
                if None in values or (
                    distinct > 1 if "matchAttribute" in constraint else distinct < len(values)
                ):
                    return False
        return True

    def counters(self, picked: list[Pick]) -> bool:
        """What is declared, less what is allocated and chosen."""
        for pool in self.pools:
            devices = {d["name"]: d for s in pool["whole"] for d in s["spec"].get("devices", [])}
            old = {
                result["device"]
                for result in self.held
                if (result["driver"], result["pool"]) == pool["key"]
            }
            near = [
                device
                for _, device, piece in picked
                if (piece["spec"]["driver"], piece["spec"]["pool"]["name"]) == pool["key"]
            ]
            # A whole device consumes as often as it is chosen, a shared one once.
            shares = {each["name"] for each in near if each.get("allowMultipleAllocations")}
            new = [each["name"] for each in near if each["name"] not in shares]
            new += shares - old
            sets = [c for s in pool["near"] for c in s["spec"].get("sharedCounters", [])]
            for shared in sets:
                for counter, declared in shared["counters"].items():
                    place = (shared["name"], counter)
                    asked = sum(uses(devices[name], place) for name in new)
                    gone = sum(uses(devices[name], place) for name in old if name in devices)
                    # Whoever consumes nothing does not mind a counter that is overdrawn.
                    if asked and gone + asked > quantity.exact(declared["value"]):
                        return False
        return True

    def capacities(self, picked: list[Pick]) -> bool:
        """Shares of each device are at most the device."""
        for _, device, piece in picked:
            driver = piece["spec"]["driver"]
            if not device.get("allowMultipleAllocations"):
                continue
            amounts = [self.amounts(*pick[:2]) for pick in picked if pick[1] is device]
            amounts += [
                {
                    name: quantity.exact(much)
                    for name, much in result.get("consumedCapacity", {}).items()
                }
                for result in self.held
                if (result["driver"], result["pool"], result["device"])
                == (driver, piece["spec"]["pool"]["name"], device["name"])
            ]
            for name, capacity in device.get("capacity", {}).items():
                total = sum((each or {}).get(name, 0) for each in amounts)
                if total > quantity.exact(capacity["value"]):
                    return False
        return True

    def amounts(self, ask: Ask, device: Body) -> dict[str, Fraction] | None:
        """What a wish takes of each capacity."""
        wanted = {
            name: quantity.exact(much)
            for name, much in ask[2].get("capacity", {}).get("requests", {}).items()
        }
        capacities = device.get("capacity", {})
        if not set(wanted) <= set(capacities):
            return None
        taken = {}
        for name, capacity in capacities.items():
            whole, policy = quantity.exact(capacity["value"]), capacity.get("requestPolicy", {})
            if not device.get("allowMultipleAllocations"):
                if wanted.get(name, 0) > whole:
                    return None
                continue
            amount = wanted.get(name)
            if amount is None and "default" in policy:
                amount = quantity.exact(policy["default"])
            elif amount is None:
                amount = whole if rounded(whole, policy) == whole else None
            else:
                amount = rounded(amount, policy)
            if amount is None or amount > whole:
                return None
            taken[name] = amount
        return taken


def rounded(amount: Fraction, policy: Body) -> Fraction | None:
    """Up to what a policy allows."""
    if "validValues" in policy:
        enough = [v for v in map(quantity.exact, policy["validValues"]) if v >= amount]
        return min(enough, default=None)
    bounds = {k: quantity.exact(v) for k, v in policy.get("validRange", {}).items()}
    least = bounds.get("min", Fraction(0))
    amount = max(amount, least)
    if "step" in bounds:
        amount = least + math.ceil((amount - least) / bounds["step"]) * bounds["step"]
    return None if "max" in bounds and amount > bounds["max"] else amount


def uses(device: Body, place: tuple[str, str]) -> Fraction:
    """What a device consumes of one counter."""
    return sum(
        (
            quantity.exact(use["counters"][place[1]]["value"])
            for use in device.get("consumesCounters", [])
            if use["counterSet"] == place[0] and place[1] in use["counters"]
        ),
        start=Fraction(0),
    )


def value(device: Body, name: str, driver: str) -> Body | None:
    """An attribute with its type; without its domain where that is the driver."""
    attributes = device.get("attributes", {})
    bare = name.removeprefix(f"{driver}/")
    made: Body | None = attributes.get(name, attributes.get(bare))
    return made
