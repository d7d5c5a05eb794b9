"""Formulas for the batch and mid amounts of one resource, from the node's sums. Pure.

Covers: the peer's three policies of batch, both its modes of mid, the caps of a strategy.
Does not cover: the sums themselves, when they count (``batch_resources``).
"""

from __future__ import annotations

from koordlet.model import resources, strategies
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
    found = max(sums.base - margin - system - taken, 0)
    for percent in (cap, most):
        if percent is not None:
            found = min(found, sums.base * percent // 100)
    return found, f"{sums.base} - margin {margin} - system {system} - high priority {taken} ({how})"


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
