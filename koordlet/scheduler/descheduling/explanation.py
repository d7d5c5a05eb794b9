"""Why a pod may or may not be moved: every check of every profile, where it fits, the limiter.

Covers: the document, of a dump and of a cluster that is watched. Does not cover: printing it
(``cli.descheduling``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from koordlet.scheduler.descheduling.evictability import Evictability
from koordlet.scheduler.descheduling.landing import Landing
from koordlet.scheduler.descheduling.round import RoundProfile
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.disruption.answers import Refusal


def resident(state: ClusterState, key: str) -> Resident | None:
    """The pod of a name, on whichever node it is; ``None`` where there is none."""
    several = (
        resident
        for row in range(state.columns.size)
        if state.columns.nodes[row] is not None
        for resident in state.residents(row, ended=True)
    )
    return next((each for each in several if each.pod.key == key), None)


def document(
    state: ClusterState, profiles: Sequence[RoundProfile], pod: Resident, refusal: Refusal | None
) -> dict[str, Any]:
    """Every check; ``refusal``: what the limiter says."""
    usage, landing = state.usages.get(pod.pod.node), Landing(state)
    feasible = landing.feasible(pod).tolist()
    return {
        "pod": pod.pod.key,
        "node": pod.pod.node,
        "profiles": {
            profile.name: list(Evictability(profile.evictor, state).refusals(pod))
            for profile in profiles
        },
        "fits": [state.node(row).name for row in feasible if landing.accepts(pod, row)],
        "limiter": "" if refusal is None else f"{refusal.reason}: {refusal.message}",
        "usage": None
        if usage is None or usage.updated is None
        else {
            "source": "feed" if usage.fed else "NodeMetric",
            "ageSeconds": round(state.now.wall - usage.updated, 1),
        },
    }
