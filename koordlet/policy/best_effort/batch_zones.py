"""Shares of a node's batch and mid resources per NUMA node. Pure.

Covers: the peer's rule of even parts, workloads that a scheduler placed, third parties.
Does not cover: the formulas of one resource, and what they are made of (``batch_resources``).

Rules, as the peer has them:
1. What the node has, reserves and uses beside workloads counts in even parts, rounded up.
2. A workload counts where its ``resource-status`` says, in proportion; one without, evenly.
3. Third parties that were given batch or mid resources before are taken off the node's amounts;
   what was before is said as well, for their own sums.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from koordlet.model import pod as pods
from koordlet.model import qos, quantity, resources

ALLOCATIONS = "node.koordinator.sh/thirdPartyAllocations"
#: Bands that may be allocated by others, to their resources of CPU and memory.
_BANDS = {
    qos.Band.BATCH: {
        resources.CPU: resources.BATCH_CPU,
        resources.MEMORY: resources.BATCH_MEMORY,
    },
    qos.Band.MID: {resources.CPU: resources.MID_CPU, resources.MEMORY: resources.MID_MEMORY},
}


def part(amount: int, among: int) -> int:
    """An even part, rounded up."""
    return -(-amount // among)


def share(pod: pods.Pod, name: str, node: int, among: int) -> float:
    """The part of a workload that is on a NUMA node."""
    placed = pod.wishes.grant.numa if pod.wishes.grant is not None else ()
    amounts = {each.node: each.resources.get(name, 0) for each in placed}
    total = sum(amounts.values())
    return amounts.get(node, 0) / total if total > 0 else 1 / among


def steady(
    zones: Mapping[int, Mapping[str, int]],
    before: Mapping[int, Mapping[str, int]],
    tolerance: float,
) -> Mapping[int, Mapping[str, int]]:
    """The zones published before, unless an amount moved beyond the tolerance."""
    if zones.keys() != before.keys():
        return zones
    for node, amounts in zones.items():
        old = before[node]
        if amounts.keys() != old.keys():
            return zones
        if any(abs(value - old[name]) > tolerance * old[name] for name, value in amounts.items()):
            return zones
    return before


def less_third_parties(amounts: Mapping[str, int], annotation: str) -> tuple[dict[str, int], str]:
    """Amounts left after third parties, never negative; and why the annotation is ignored."""
    left = dict(amounts)
    if not annotation:
        return left, ""
    try:
        for allocation in json.loads(annotation)["allocations"]:
            band = qos.Band.labelled(str(allocation["priority"]))
            for name, text in allocation["resources"].items():
                target = _BANDS.get(band, {}).get(name, name) if band is not None else name
                if target in left:
                    milli = quantity.milli(str(text))
                    in_milli = target in (resources.BATCH_CPU, resources.MID_CPU) and name != target
                    taken = milli if in_milli else milli // 1000
                    left[target] = max(0, left[target] - taken)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return dict(amounts), f"annotation {ALLOCATIONS} ignored: {type(error).__name__} {error}"
    return left, ""
