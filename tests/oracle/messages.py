"""Why a pod waits, in the words of kube-scheduler."""

from __future__ import annotations

import collections
from typing import NamedTuple

from tests.oracle.world import World


class Verdict(NamedTuple):
    """Reasons against a node, none where the pod may run there.

    ``helpful``: preemption could change them.
    """

    reasons: list[str]
    helpful: bool


def histogram(world: World, reasons: list[str]) -> str:
    """How many nodes give each reason, sorted as text."""
    counts = collections.Counter(reasons)
    counted = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{len(world.nodes)} nodes are available: {counted}."
