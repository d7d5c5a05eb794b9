"""One round of a descheduler over a dump: what would be moved, where to, and what stops the rest.

Covers: the round with the limiter's answers of this moment, every check of one pod. Does not cover:
the document of a round (``descheduling.summary``), printing (``cli.descheduling``).

A dump shows one moment. What a strategy wants to see several times in a row is taken to have been
so for long.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from koordlet.scheduler.descheduling import dump, explanation, summary
from koordlet.scheduler.descheduling.configuration import DeschedulerSettings
from koordlet.scheduler.descheduling.limits import RoundLimits
from koordlet.scheduler.descheduling.round import (
    DeschedulingRound,
    EvictionProposal,
    RoundProfile,
)
from koordlet.scheduler.descheduling.state import ClusterState, is_ready
from koordlet.scheduler.descheduling.strategies.better_affinity import BetterAffinity
from koordlet.scheduler.descheduling.strategies.low_node_load import LowNodeLoad
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.disruption.answers import Clock, Mover, Refusal, unshadowed
from koordlet.scheduler.disruption.limiter import ClusterHealth, Limiter
from koordlet.scheduler.disruption.settings import DisruptionSettings
from koordlet.scheduler.framework.profile import Profile
from koordlet.scheduler.objects.disruption import DisruptionBudgets

CAUSE = "Descheduled"
#: Strategies that want to see something several times before they act.
_PATIENT = (BetterAffinity, LowNodeLoad)
#: Rehearsals, one second each, for these.
_REHEARSALS = 20
#: Nobody goes: what a node's first pod shows is enough.
_NOBODY = RoundLimits(per_node=0)


class DeschedulingSimulation:
    """One configuration over one dump."""

    def __init__(
        self,
        bodies: Iterable[Mapping[str, Any]],
        settings: DeschedulerSettings,
        now: float,
        *,
        served: Mapping[str, Profile] | None = None,
        disruption: DisruptionSettings | None = None,
    ) -> None:
        self._settings = settings
        self._state, self.warnings = dump.state(bodies, now, served)
        budgets = DisruptionBudgets()
        for place, budget in enumerate(self._state.budgets):
            budgets.put(str(place), budget)
        self._limiter = Limiter(
            disruption or DisruptionSettings(),
            self._state.workloads,
            budgets,
            lambda: _health(self._state),
        )

    def run(self) -> dict[str, Any]:
        """The document of the round."""
        self._rehearse()
        played = self._round(self._settings.profiles, self._settings.limits)
        return summary.document(played.play(self._answer))

    def explain(self, key: str) -> dict[str, Any] | None:
        """Every check of one pod, profile by profile; ``None`` where there is no such pod."""
        pod = explanation.resident(self._state, key)
        if pod is None:
            return None
        refusal = self._ask(pod, "descheduler")
        return explanation.document(self._state, self._settings.profiles, pod, refusal)

    def _round(
        self, profiles: Sequence[RoundProfile], limits: RoundLimits, seconds: float = 0.0
    ) -> DeschedulingRound:
        now = self._state.now
        later = Clock(wall=now.wall, steady=now.steady + seconds)
        state = dataclasses.replace(self._state, now=later)
        return DeschedulingRound(profiles, limits, state, asks=self._refusal)

    def _rehearse(self) -> None:
        """Let strategies see the same state until none waits to see it once more.

        Those that remember nothing need not see it: a round over all of them costs as much again.
        """
        several = [
            dataclasses.replace(profile, strategies=waiting)
            for profile in self._settings.profiles
            if (waiting := [each for each in profile.strategies if isinstance(each, _PATIENT)])
        ]
        for second in range(_REHEARSALS if several else 0):
            result = self._round(several, _NOBODY, second - _REHEARSALS).play(self._answer)
            if not any("often enough in a row" in text for _, _, text in result.notes):
                return

    def _answer(self, proposal: EvictionProposal) -> None:
        if not proposal.stays:
            mover = Mover(name=f"descheduler/{proposal.strategy}", acts=True)
            self._limiter.begin(proposal.resident.pod, CAUSE, mover, self._state.now)

    def _refusal(self, proposal: EvictionProposal) -> Refusal | None:
        return self._ask(proposal.resident, f"descheduler/{proposal.strategy}")

    def _ask(self, resident: Resident, name: str) -> Refusal | None:
        mover = Mover(name=name, acts=True)
        return unshadowed(self._limiter.may_evict(resident.pod, CAUSE, mover, self._state.now))


def _health(state: ClusterState) -> ClusterHealth:
    nodes = [node for node in state.columns.nodes if node is not None]
    return ClusterHealth(nodes=len(nodes), not_ready=sum(not is_ready(node) for node in nodes))
