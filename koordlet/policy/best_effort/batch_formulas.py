"""Formulas for the batch and mid amounts of one resource, of a node or of its NUMA nodes. Pure.

Covers: the peer's three policies of batch, both its modes of mid, the caps of a strategy; parts of
NUMA nodes, workloads that a scheduler placed, third parties.
Does not cover: the sums themselves, when they count (``batch_resources``).

Rules of NUMA nodes, as the peer has them where all NUMA nodes are alike:
1. What the node has, reserves and uses beside workloads counts in parts, rounded up, in proportion
   to the CPUs and the memory of each NUMA node: one without CPUs has no batch CPU. (The peer takes
   what each has, too, but reserves and uses as much on one without any.)
2. A workload counts where its ``resource-status`` says, in proportion; one without as in rule 1.
3. Third parties that were given batch or mid resources before are taken off the node's amounts;
   what was before is said as well, for their own sums.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from koordlet.model import pod as pods
from koordlet.model import qos, quantity, resources, snapshot, strategies
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Sums of one node resource, in thousandths of a core or in bytes."""

    base: int
    reserved: int
    #: Measured use of the whole node, and of the system with its high-priority applications.
    node: int
    system: int
    #: Of high-priority pods.
    used: int
    requested: int
    either: int
    #: Of prod pods alone.
    prod_requested: int
    #: What prod pods will not need of what they asked for.
    reclaimable: int


def offered(
    sums: Sums, name: str, strategy: strategies.Colocation, most: int | None
) -> tuple[int, str]:
    """The batch amount of one resource, and its reason."""
    is_cpu = name == resources.CPU
    if is_cpu:
        reclaim, how = strategy.cpu_reclaim_threshold_percent, strategy.cpu_calculate_policy
        cap = strategy.batch_cpu_threshold_percent
    else:
        reclaim, how = strategy.memory_reclaim_threshold_percent, strategy.memory_calculate_policy
        cap = strategy.batch_memory_threshold_percent
    margin = sums.base * (100 - (100 if reclaim is None else reclaim)) // 100
    system = max(sums.system, sums.reserved)
    if how == "request" and not is_cpu:
        system, taken = sums.reserved, sums.requested
    else:
        taken = sums.either if how == "maxUsageRequest" else sums.used
    amount = max(sums.base - margin - system - taken, 0)
    for percent in (cap, most):
        if percent is not None:
            amount = min(amount, sums.base * percent // 100)
    return (
        amount,
        f"{sums.base} - margin {margin} - system {system} - high priority {taken} ({how})",
    )


def mid(sums: Sums, name: str, strategy: strategies.Colocation) -> tuple[int, str]:
    """The mid amount of one resource: unused prod requests, or a fixed part."""
    is_cpu = name == resources.CPU
    percent = (
        strategy.mid_cpu_threshold_percent if is_cpu else strategy.mid_memory_threshold_percent
    )
    most = sums.base * (100 if percent is None else percent) // 100
    if strategy.mid_reclaim_mode == "static":
        fixed = (
            strategy.mid_static_cpu_reserved_percent
            if is_cpu
            else strategy.mid_static_memory_reserved_percent
        )
        amount = sums.base * (fixed or 0) // 100
        return min(amount, most), f"static {amount}, at most {most}"
    unallocated = max(sums.base - max(sums.system, sums.reserved) - sums.prod_requested, 0)
    share = unallocated * (strategy.mid_unallocated_percent or 0) // 100
    unused = min(sums.reclaimable, max(sums.base - sums.node, 0))
    return min(unused + share, most), f"reclaimable {unused} + unallocated {share}, at most {most}"


# NUMA nodes, third parties --------------------------------------------------------------------

ALLOCATIONS = "node.koordinator.sh/thirdPartyAllocations"


class ZonePart(NamedTuple):
    """What one NUMA node has of a resource, and what all have, in any unit."""

    own: int = 1
    whole: int = 1

    def of(self, amount: int) -> int:
        """The part of an amount, rounded up."""
        return -(-amount * self.own // self.whole)


def parts(now: snapshot.Snapshot, name: str) -> dict[int, ZonePart]:
    """The part of each NUMA node; even ones where nobody knows what they have."""
    machine, outside = now.topology, now.outside
    if name == resources.CPU:
        own = {
            node.node: sum(cpu.node == node.node and cpu.cpu not in outside for cpu in machine.cpus)
            for node in machine.nodes
        }
    else:
        own = {node.node: node.memory_bytes or 0 for node in machine.nodes}
    whole = sum(own.values())
    if not whole:
        return dict.fromkeys(own, ZonePart(1, len(own)))
    return {node: ZonePart(amount, whole) for node, amount in own.items()}


def share(pod: pods.Pod, name: str, node: int, part: ZonePart) -> float:
    """The part of a workload that is on a NUMA node."""
    amounts = {share.node: share.resources.get(name, 0) for share in pod.wishes.shares}
    total = sum(amounts.values())
    return amounts.get(node, 0) / total if total > 0 else part.own / part.whole


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
            own = {} if band is None else resources.BY_BAND.get(band, {})
            for name, text in allocation["resources"].items():
                target = own.get(name, name)
                if target in left:
                    milli = quantity.milli(str(text))
                    in_milli = target in (resources.BATCH_CPU, resources.MID_CPU) and name != target
                    taken = milli if in_milli else milli // 1000
                    left[target] = max(0, left[target] - taken)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return dict(amounts), f"annotation {ALLOCATIONS} ignored: {type(error).__name__} {error}"
    return left, ""
