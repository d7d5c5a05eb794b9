"""What a descheduler keeps of its rounds: the last one, since when nothing moves, and why.

Covers: the document of the last round, the metrics of rounds. Does not cover: playing them
(``loop.descheduler``).

Rules:
1. A descheduler is idle while some strategy wants something in vain, and none moves anything. What
   is only shown, or would go in a dry run, is not in vain, and moves nobody.
2. The reason of idleness is a word: what refused most pods of the last round, and before that
   what ended a strategy: the pods that it kept were not counted. ``NoNodeFits`` where nobody was
   refused, because no pod that may leave has another node.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from koordlet.model import moment
from koordlet.scheduler.descheduling import summary
from koordlet.scheduler.descheduling.round import RoundResult
from koordlet.scheduler.disruption.answers import Clock
from koordlet.scheduler.loop.metrics import Gauges, SchedulerMetrics

NO_NODE_FITS, ROUND_LIMIT = "NoNodeFits", "RoundLimit"


class RoundBook:
    """The rounds of one descheduler."""

    def __init__(self, measures: SchedulerMetrics) -> None:
        self._measures = measures
        #: The last round, when it ended, how long it took.
        self.last: RoundResult | None = None
        self._ended, self._seconds = 0.0, 0.0
        #: By the steady clock, since when rounds want something and move nothing; and why.
        self._idle_since: float | None = None
        self._why = ""

    def end(self, result: RoundResult, seconds: float, now: Clock) -> None:
        """A round is over."""
        self.last, self._ended, self._seconds = result, now.wall, seconds
        done = (*result.evicted, *result.ranked, *result.avoided)
        moves = not all(proposal.shadow for proposal in done)
        if moves or not any(run.stuck for run in result.runs):
            self._idle_since, self._why = None, ""
        else:
            self._idle_since = now.steady if self._idle_since is None else self._idle_since
            self._why = self._reason(result)
        self._measures.rounds.observe(seconds)
        for run in result.runs:
            self._measures.strategy_ran(run.strategy, run.profile, run.seconds)
        for decision in result.decisions:
            proposal = decision.proposal
            if proposal.stays:
                continue  # it was not to go
            self._measures.decided(
                decision.answer.value, proposal.strategy, proposal.profile,
                proposal.resident.pod.namespace, proposal.node,
            )  # fmt: skip

    @staticmethod
    def _reason(result: RoundResult) -> str:
        """Rule 2."""
        ending = [decision for decision in result.decisions if decision.answer.ends]
        words = Counter(
            ROUND_LIMIT if decision.refusal is None else decision.refusal.reason
            for decision in ending or result.decisions
        )
        return words.most_common(1)[0][0] if words else NO_NODE_FITS

    def _idle(self, now: Clock) -> float:
        return 0.0 if self._idle_since is None else now.steady - self._idle_since

    def document(self, now: Clock) -> dict[str, Any]:
        """The last round, and how it stands since."""
        shown = summary.document(self.last or RoundResult())
        ended = None if self.last is None else moment.spell(self._ended)
        idle = {"idleSeconds": round(self._idle(now), 1), "idleReason": self._why}
        return {"ended": ended, "seconds": round(self._seconds, 3), **idle, **shown}

    def gauges(self, now: Clock) -> Gauges:
        """How long nothing has moved though something should; 0 where all is well."""
        labels = (("reason", self._why),)
        return {("koordlet_descheduler_idle_seconds", labels): self._idle(now)}
