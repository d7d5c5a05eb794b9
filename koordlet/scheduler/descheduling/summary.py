"""What came of a round, as JSON: each strategy, the moves, the refusals, why there is nothing else.

Covers: the document. Does not cover: printing it (``cli.descheduling``), playing the round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from koordlet.scheduler.descheduling.limits import EvictionAnswer
from koordlet.scheduler.descheduling.round import EvictionProposal, RoundResult
from koordlet.scheduler.descheduling.strategy_run import StrategyRun


def document(result: RoundResult) -> dict[str, Any]:
    """A round as JSON."""
    refused = [
        {**_move(decision.proposal), "why": decision.why}
        for decision in result.decisions
        if not decision.answer.evicted
    ]
    return {
        "strategies": [_run(run, refused) for run in result.runs],
        "moves": [_move(proposal) for proposal in result.evicted],
        "ranked": [
            {**_move(proposal), "deletionCost": proposal.deletion_cost}
            for proposal in result.ranked
        ],
        "avoided": [
            {
                **_move(proposal),
                "avoidSeconds": proposal.avoid_seconds,
                "removes": [each.pod.key for each in proposal.removes or ()],
            }
            for proposal in result.avoided
        ],
        "refused": refused,
        "notes": _notes(result.notes),
        "failures": _notes(result.failures),
    }


def _run(run: StrategyRun, refused: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One strategy; its refusals are counted by the word that begins them."""
    key = run.profile, run.strategy
    words = Counter(
        each["why"].partition(":")[0]
        for each in refused
        if (each["profile"], each["strategy"]) == key
    )
    if run.unfit:
        words[EvictionAnswer.UNFIT.value] += run.unfit
    return {
        "profile": run.profile,
        "strategy": run.strategy,
        "seconds": round(run.seconds, 3),
        "sources": run.sources,
        "wanted": run.intents,
        "moved": run.moved,
        "refused": dict(words.most_common()),
    }


def _move(proposal: EvictionProposal) -> dict[str, Any]:
    return {
        "pod": proposal.resident.pod.key,
        "node": proposal.node,
        "target": proposal.target,
        "profile": proposal.profile,
        "strategy": proposal.strategy,
        "reason": proposal.reason,
        "shadow": proposal.shadow,
    }


def _notes(several: Sequence[tuple[str, str, str]]) -> list[dict[str, str]]:
    return [
        {"profile": profile, "strategy": strategy, "message": message}
        for profile, strategy, message in several
    ]
