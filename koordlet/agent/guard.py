"""Takes back the steps of optimising policies after which latency-sensitive work waited longer.

Covers: waiting and load of a pass, steps of triable policies, decisions without a step that hurt.
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
from koordlet.policy.framework import chain, declaration, guard

#: Seconds waited for each second of CPU, beyond what work waits for itself, that count as 1.
_TOLERANCE = 0.15


class Guard:
    """Watches the passes of one agent. Switched off, it takes nothing back."""

    def __init__(
        self, rows: Iterable[declaration.Declared], law: guard.Params | None = None
    ) -> None:
        self.state = guard.State()
        self.on = True
        self._triable = frozenset(row.stem for row in rows if not row.protects)
        self._law = law or guard.Params()

    def switch(self, *, on: bool) -> None:
        """Begin or cease to watch."""
        self.on = on

    def allowed(self, round_: chain.Round) -> chain.Round:
        """Return the decisions without the steps that are taken back, and the conditions."""
        if not self.on or not self.state.rolled_back:
            return round_
        outcomes = tuple(self._allowed(outcome) for outcome in round_.outcomes)
        return replace(round_, outcomes=outcomes, conditions=guard.conditions(self.state))

    def _allowed(self, outcome: chain.Outcome) -> chain.Outcome:
        taken_back = self.state.rolled_back.get(outcome.stem)
        if taken_back is None or outcome.decision is None:
            return outcome
        actions = tuple(before(outcome.decision.actions, taken_back.was))
        return replace(outcome, decision=replace(outcome.decision, actions=actions))

    def record(
        self,
        now: snapshot.Snapshot,
        past: series.History,
        results: Iterable[result.Result],
    ) -> None:
        """Take the results of one pass."""
        if self.on:
            acted = steps(results, self._triable)
            self.state = guard.step(self.state, felt(now, past), acted, self._law)


def before(
    actions: Iterable[action.Action], was: Mapping[str, str | None]
) -> Iterable[action.Action]:
    """Replace the values of a step that is taken back by the earlier ones.

    An action without an earlier value, such as reclaiming memory, is dropped.
    """
    for did in actions:
        if did.target not in was:
            yield did
            continue
        text = was[did.target]
        if isinstance(did, action.WriteFile) and text is not None:
            yield replace(did, value=text, reason=f"{did.reason}; taken back: it hurt others")


def steps(
    results: Iterable[result.Result], triable: frozenset[str]
) -> dict[str, dict[str, str | None]]:
    """Collect what triable policies changed: by policy, each target and its earlier value."""
    changed: dict[str, dict[str, str | None]] = {}
    for outcome in results:
        if outcome.verdict is not result.Verdict.DONE or outcome.step is None or outcome.step.undo:
            continue
        did = outcome.step.action
        if did.policy in triable:
            changed.setdefault(did.policy, {}).setdefault(did.target, outcome.step.was)
    return changed


def felt(now: snapshot.Snapshot, past: series.History) -> guard.Sample:
    """Measure waiting and load at this moment; without waiting where it cannot be known."""
    confined = own_waiting.confined(now.pods, now.groups, now.topology.online)
    world = (now.topology.online, *confined)
    unknown = guard.Sample(at=now.at, wall=now.wall, world=world)
    use = usage.measure(now, past)
    waiting = None if now.strain is None else now.strain.waiting
    groups = own_waiting.names(confined)
    cores = past.groups.lasts(groups, meter.CPU)
    if not groups or waiting is None or use.ls is None or use.be is None or None in cores:
        return unknown
    used = [core or 0.0 for core in cores]
    own = own_waiting.own(confined, used)
    if math.isinf(own):
        # Work that fills all CPUs it may use waits, whatever other work does.
        return unknown
    stalls = past.groups.lasts(groups, meter.PRESSURE_MEMORY.some[3])
    lost = max(0.0, waiting - own) + sum(filter(None, stalls)) / max(0.01, math.fsum(used))
    others = max(0, use.system or 0)
    return replace(
        unknown,
        latency_excess=lost / _TOLERANCE,
        used=(use.ls / 1000, use.be / 1000, others / 1000),
    )
