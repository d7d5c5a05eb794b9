"""The message of a pod that no node takes, as kube-scheduler words it.

Covers: the histogram of reasons. Does not cover: the reasons (the plugins).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

NO_NODES = "no nodes available to schedule pods"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"


def histogram(total: int, reasons: Iterable[str] | Mapping[str, int]) -> str:
    """``0/5 nodes are available: 1 …, 4 ….``; sorted as text, as the peer does.

    ``reasons``: one by one, or how often each.
    """
    counted = sorted(f"{count} {reason}" for reason, count in Counter(reasons).items())
    return refused(total, ", ".join(counted)) if counted else f"0/{total} nodes are available:"


def refused(total: int, reason: str) -> str:
    """The message for a pod that all nodes refuse for one reason."""
    return f"0/{total} nodes are available: {reason}."


def joined(message: str, *after: str) -> str:
    """The message of the nodes and those of plugins, joined as kube-scheduler does."""
    more = ", ".join(message for message in after if message)
    return f"{message} {more}" if more else message
