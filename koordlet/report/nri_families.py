"""Metric families of the container runtime: the connection, and what became of answers. Pure.

Covers: their names and words. Does not cover: counting (``koordlet.agent.nri.adapter``).
"""

from __future__ import annotations

from collections.abc import Callable

from koordlet.report import families, view


def _of(key: str) -> Callable[[view.View], families.Rows]:
    def rows(now: view.View) -> families.Rows:
        if key in now.runtime:
            yield (), now.runtime[key]

    return rows


def _outcomes(now: view.View) -> families.Rows:
    for outcome in ("verified", "repaired", "wrong"):
        if outcome in now.runtime:
            yield (outcome,), now.runtime[outcome]


_COUNTERS = {
    "connections": "Connections to the container runtime that came up.",
    "events": "Events that the container runtime told.",
    "late": "Events answered with no change because the agent took too long.",
    "errors": "Answers that failed, and messages that made no sense.",
    "updates": "Changes of a container that the runtime was told.",
    "adjusted": "Containers that were given something before they began.",
    "kept": "Updates that got the decided CPUs instead of those asked for.",
    "failed": "Adjusted containers that never started and count against us.",
}

FAMILIES = (
    families.Family(
        name="koordlet_nri_connected",
        help="1 while the container runtime tells us of containers.",
        rows=_of("connected"),
        form="%d",
    ),
    families.Family(
        name="koordlet_nri_adjusting",
        help="0 where adjusted containers did not start, until the operator resets it.",
        rows=_of("adjusting"),
        form="%d",
    ),
    families.Family(
        name="koordlet_nri_checked",
        help="Containers whose CPUs were read before their first instruction, by what was found.",
        type=families.COUNTER,
        labels=("outcome",),
        bound="3 outcomes",
        rows=_outcomes,
        form="%d",
    ),
    *(
        families.Family(
            name=f"koordlet_nri_{key}",
            help=text,
            type=families.COUNTER,
            rows=_of(key),
            form="%d",
        )
        for key, text in _COUNTERS.items()
    ),
)
