"""Container admission: what the policies adjust before a container starts.

Covers: last snapshot + newcomer → the same decide as the clock's → what this container gets.
Does not cover: asking (``workloads.nri``), remembering (``Tick.admit``), doing it (the runtime).

The newcomer stands among the pods of the snapshot, so a CPU that it is given is held in the ledger
from then on, and the next container sees it. Each policy that has something to say about a single
container says it in its policy's ``admit``; the earlier policy wins, as for files.

Rules:
1. Only policies that enforce have a say.
2. A policy that fails costs its own part.
3. Only timeless policies decide again: a limit that moves in steps with the clock must not take one
   more step because a container starts.
4. What the pod's own sources say of it counts; the newcomer fills in what they do not know yet.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from koordlet.history import series
from koordlet.model import adjustment, decision, plan, snapshot
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.framework import chain, declaration


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The adjustment of a container, and the round of policies behind it."""

    adjustment: adjustment.Adjustment
    round: chain.Round
    #: What concerns this pod, such as a set that was refused.
    conditions: tuple[decision.Condition, ...] = ()
    #: Policy to the text of its exception.
    failures: Mapping[str, str] = dataclasses.field(default_factory=dict)


def among(pods: Sequence[pods.Pod], newcomer: pods.Pod) -> tuple[pods.Pod, ...]:
    """The pods with the newcomer, each UID once (rule 4)."""
    known = next((pod for pod in pods if pod.uid == newcomer.uid), None)
    if known is None:
        return (*pods, newcomer)
    filled = dataclasses.replace(known, group=known.group or newcomer.group)
    return tuple(filled if pod is known else pod for pod in pods)


def admit(
    policies: Sequence[declaration.Declared],
    now: snapshot.Snapshot,
    past: series.History,
    newcomer: pods.Pod,
    container: str,
    *,
    settings: Mapping[str, object],
    modes: Mapping[str, plan.Mode],
    states: Mapping[str, object],
    last: Mapping[str, decision.Decision[object]],
) -> Admission:
    """Decide the adjustment of a container. Pure: the caller keeps the round's states."""
    seen = dataclasses.replace(now, pods=among(now.pods, newcomer))
    decided = chain.decide(
        [policy for policy in policies if policy.timeless],
        seen,
        past,
        settings=settings,
        modes=modes,
        states=states,
        last=last,
    )
    pod = next(pod for pod in seen.pods if pod.uid == newcomer.uid)
    binding = dataclasses.replace(seen, ledger=decided.binding)
    decisions = {
        outcome.stem: outcome.decision
        for outcome in decided.outcomes
        if outcome.decision is not None
    }
    adjusted = adjustment.Adjustment()
    failures: dict[str, str] = {}
    for policy in policies:
        stem, mode = policy.stem, modes.get(policy.stem, policy.default_mode)
        if policy.admit is None or mode is not plan.Mode.ENFORCE:
            continue
        state = decisions[stem].next_state if stem in decisions else states.get(stem, policy.state)
        try:
            part = policy.admit(binding, settings.get(stem, policy.settings), state, pod, container)
        except Exception as error:  # noqa: BLE001 -- rule 2, as in the chain
            failures[stem] = f"{type(error).__name__}: {error}"
        else:
            adjusted = adjusted.over(part)
    conditions = (condition for made in decisions.values() for condition in made.conditions)
    return Admission(
        adjustment=adjusted,
        round=decided,
        conditions=tuple(condition for condition in conditions if condition.subject == pod.key),
        failures=failures,
    )
