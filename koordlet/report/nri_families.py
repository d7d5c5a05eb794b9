"""Metric families of the container runtime: the connection, and what became of answers. Pure.

Covers: their names and words. Does not cover: counting (``koordlet.agent.nri.adapter``).
"""

from __future__ import annotations

from collections.abc import Callable

from koordlet.report import families, view


def _of(key: str) -> Callable[[view.ReportView], families.Rows]:
    def rows(now: view.ReportView) -> families.Rows:
        if key in now.runtime:
            yield (), now.runtime[key]

    return rows


def _outcomes(now: view.ReportView) -> families.Rows:
    for outcome in ("verified", "repaired", "wrong"):
        if outcome in now.runtime:
            yield (outcome,), now.runtime[outcome]


_COUNTERS = {
    "connections": "NRI connections established with the container runtime.",
    "events": "NRI events received from the container runtime.",
    "late": "NRI events answered without adjustment because the deadline passed.",
    "errors": "Failed NRI answers and malformed NRI messages.",
    "updates": "Container updates sent to the container runtime.",
    "adjusted": "Containers adjusted before they started.",
    "kept": "Container updates in which koordlet kept its CPUs instead of the requested ones.",
    "failed": "Adjusted containers that failed to start.",
}

FAMILIES = (
    families.Family(
        name="koordlet_nri_connected",
        help="1 while koordlet is connected to the container runtime through NRI.",
        rows=_of("connected"),
        form="%d",
    ),
    families.Family(
        name="koordlet_nri_adjusting",
        help="1 if koordlet adjusts containers at creation, 0 after too many of them failed to"
        " start.",
        rows=_of("adjusting"),
        form="%d",
    ),
    families.Family(
        name="koordlet_nri_checked",
        help="Containers whose CPUs koordlet checked before their first instruction, by outcome.",
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
