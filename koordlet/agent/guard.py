"""The guard's place in the line: what hurts under which load, who may be tried, what is taken back.

Covers: pain and use out of a pass, steps of triable policies, decisions without a step that hurt.
Does not cover: verdicts (``policy.framework.guard``), who is triable
(``policy.framework.registry``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from koordlet.history import series
from koordlet.model import action, meter, result, snapshot
from koordlet.policy.best_effort import own_waiting, usage
from koordlet.policy.framework import chain, guard, registry

#: Seconds lost for each second of CPU, beyond what work waits for itself, that are one pain.
_TOLERANCE = 0.15


class Guard:
    """Watches one line. Switched off, it knows nothing and takes nothing back."""

    def __init__(self, rows: Iterable[registry.Row], law: guard.Params | None = None) -> None:
        self.state = guard.State()
        self.on = True
        self._triable = frozenset(row.stem for row in rows if not row.protects)
        self._law = law or guard.Params()

    def allowed(self, said: chain.Round) -> chain.Round:
        """What the policies decided, without the steps that are taken back; with the conditions."""
        if not self.on or not self.state.rolled_back:
            return said
        outcomes = tuple(self._allowed(one) for one in said.outcomes)
        return replace(said, outcomes=outcomes, conditions=guard.conditions(self.state))

    def _allowed(self, outcome: chain.Outcome) -> chain.Outcome:
        taken_back = self.state.rolled_back.get(outcome.stem)
        if taken_back is None or outcome.decision is None:
            return outcome
        actions = tuple(before(outcome.decision.actions, taken_back.was))
        return replace(outcome, decision=replace(outcome.decision, actions=actions))

    def passed(
        self,
        now: snapshot.Snapshot,
        past: series.History,
        results: Iterable[result.Result],
    ) -> None:
        """One pass was done."""
        if self.on:
            acted = steps(results, self._triable)
            self.state = guard.step(self.state, felt(now, past), acted, self._law)


def before(
    actions: Iterable[action.Action], was: Mapping[str, str | None]
) -> Iterable[action.Action]:
    """The same, with the text of before in the files of a step that is taken back.

    What had no text then, such as memory that the kernel was asked for, is not done again.
    """
    for one in actions:
        if one.target not in was:
            yield one
            continue
        text = was[one.target]
        if isinstance(one, action.WriteFile) and text is not None:
            yield replace(one, value=text, reason=f"{one.reason}; taken back: it hurt others")


def steps(
    results: Iterable[result.Result], triable: frozenset[str]
) -> dict[str, dict[str, str | None]]:
    """The triable policies that changed something: each target, and its text of before."""
    found: dict[str, dict[str, str | None]] = {}
    for one in results:
        if one.verdict is not result.Verdict.DONE or one.step is None or one.step.undo:
            continue
        did = one.step.action
        if did.policy in triable:
            found.setdefault(did.policy, {}).setdefault(did.target, one.step.was)
    return found


def felt(now: snapshot.Snapshot, past: series.History) -> guard.Sample:
    """Pain and load of this moment; without pain where they are not known, or cannot be."""
    confined = own_waiting.confined(now.pods, now.groups, now.topology.online)
    world = (now.topology.online, *confined)
    unknown = guard.Sample(at=now.at, wall=now.wall, world=world)
    use = usage.measure(now, past)
    waiting = None if now.strain is None else now.strain.waiting
    groups = [one.group for one in confined]
    cores = past.groups.lasts(groups, meter.CPU)
    if not groups or waiting is None or use.ls is None or use.be is None or None in cores:
        return unknown
    used = [one or 0.0 for one in cores]
    own = own_waiting.among((part, one.cpus) for part, one in zip(used, confined, strict=True))
    if math.isinf(own):
        # Whoever fills all CPUs that it may use waits, whatever others do.
        return unknown
    stalls = past.groups.lasts(groups, meter.PRESSURE_MEMORY.some[3])
    lost = max(0.0, waiting - own) + sum(filter(None, stalls)) / max(0.01, math.fsum(used))
    others = max(0, use.system or 0)
    return replace(
        unknown,
        latency_excess=lost / _TOLERANCE,
        used=(use.ls / 1000, use.be / 1000, others / 1000),
    )
