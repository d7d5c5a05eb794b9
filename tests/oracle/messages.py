"""Why a pod waits, in the words of kube-scheduler."""

from __future__ import annotations

import collections

from tests.oracle.world import World


def histogram(world: World, reasons: list[str]) -> str:
    """How many nodes give each reason, sorted as text."""
    counts = collections.Counter(reasons)
    told = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{len(world.nodes)} nodes are available: {told}."
