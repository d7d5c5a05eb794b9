"""The guard: a policy that hurts latency-sensitive work is undone and only watched from then on.

Covers: when a policy is on trial, the verdict, acquittal, the condition with its evidence.
Does not cover: what pain is (``adaptive.pain``), undoing (the planner puts back what no enforcing
policy names).

Rules:
1. On trial is a policy that has just changed what can hurt: any file of a group with latency-
   sensitive work in or below it, or one of another group that now grants more than before. Limits
   that are only tightened on best-effort work hurt nobody, however loudly others complain then.
2. The pain of the ``window`` before the first such change is compared with that of the ``window``
   after it, which begins ``settle`` seconds later. More than ``worse`` times as much, and more than
   ``least`` in any case, is a regression. Without samples before, there is no verdict.
3. The verdict is *latched*: the policy decides in shadow, its files are put back, a condition names
   before and after.
4. Where pain is not clearly less in the ``window`` after that, the policy was not its cause: it is
   acquitted, enforces again, and is not tried for ``peace`` seconds. Otherwise the latch holds
   until the agent starts anew.
5. Several on trial at once are judged one after the other, the last to act first: while one is
   latched and not yet proved, no other is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from koordlet.model import decision, plan
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """The numbers of the guard; times in seconds, pain in units of what is tolerated."""

    window: float = 10.0
    settle: float = 1.0
    worse: float = 2.0
    least: float = 2.0
    relief: float = 0.6
    peace: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One policy on trial, or latched."""

    #: When it acted first, and the mean pain before.
    since: float
    before: float
    acted: float
    #: ``None``: no verdict yet.
    latched: float | None = None
    after: float = 0.0
    #: The files were put back and it helped: the latch holds.
    proved: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What the guard remembers."""

    #: Time and pain of the last moments, oldest first.
    samples: tuple[tuple[float, float], ...] = ()
    trials: Mapping[str, Trial] = field(default_factory=dict)
    #: Policy to the end of its peace.
    peace: Mapping[str, float] = field(default_factory=dict)

    @property
    def latched(self) -> frozenset[str]:
        """The policies that may only show what they would do."""
        return frozenset(stem for stem, one in self.trials.items() if one.latched is not None)


def modes(configured: Mapping[str, plan.Mode], state: State) -> Mapping[str, plan.Mode]:
    """The modes in force."""
    held = (stem for stem in state.latched if configured.get(stem) is not plan.Mode.OFF)
    return {**configured, **dict.fromkeys(held, plan.Mode.SHADOW)}


def step(state: State, at: float, pain: float | None, acted: Iterable[str], law: Law) -> State:
    """What is remembered after one pass: its pain, and the policies that changed what can hurt."""
    samples = state.samples
    if pain is not None:
        oldest = at - 3 * law.window
        samples = (*(one for one in samples if one[0] > oldest), (at, pain))
    trials = dict(state.trials)
    peace = {stem: until for stem, until in state.peace.items() if until > at}
    for stem in acted:
        if stem in trials:
            trials[stem] = replace(trials[stem], acted=at)
        elif stem not in peace:
            before = _mean(state.samples, at - law.window, at, law)
            if before is not None:
                trials[stem] = Trial(since=at, before=before, acted=at)
    known = State(samples=samples, trials=trials, peace=peace)
    for stem in sorted(trials, key=lambda stem: -trials[stem].acted):
        known = _judged(stem, known, at, law)
    return known


def _judged(stem: str, state: State, at: float, law: Law) -> State:
    """The memory with one policy's verdict in it, where that is due."""
    one = state.trials[stem]
    if one.latched is not None:
        if one.proved or at < one.latched + law.settle + law.window:
            return state
        now = _mean(state.samples, one.latched + law.settle, at, law)
        if now is not None and now <= law.relief * one.after:
            return _with(state, stem, replace(one, proved=True))
        acquitted = _with(state, stem, None)
        return replace(acquitted, peace={**state.peace, stem: at + law.peace})
    if at < one.since + law.settle + law.window or _pending(state.trials):
        return state
    after = _mean(state.samples, at - law.window, at, law)
    if after is None or after <= max(law.least, law.worse * one.before):
        return _with(state, stem, None)
    return _with(state, stem, replace(one, latched=at, after=after))


def _with(state: State, stem: str, one: Trial | None) -> State:
    rest = {name: trial for name, trial in state.trials.items() if name != stem}
    return replace(state, trials=rest if one is None else {**rest, stem: one})


def _pending(trials: Mapping[str, Trial]) -> bool:
    return any(one.latched is not None and not one.proved for one in trials.values())


def _mean(
    samples: Iterable[tuple[float, float]], after: float, until: float, law: Law
) -> float | None:
    """Mean pain in a time; ``None`` with fewer than one sample in two seconds."""
    found = [pain for at, pain in samples if after < at <= until]
    return sum(found) / len(found) if 2 * len(found) >= law.window else None


def conditions(state: State) -> tuple[decision.Condition, ...]:
    """What somebody should know of."""
    return tuple(
        decision.Condition(
            type="PolicyRolledBack",
            status=True,
            reason="Guard",
            subject=stem,
            message=(
                f"latency-sensitive work waited {one.after:.1f} times what is tolerated after it"
                f" acted, {one.before:.1f} times before; its changes are put back and it only shows"
                f" what it would do{'' if one.proved else ', until that is seen to help'}"
            ),
        )
        for stem, one in sorted(state.trials.items())
        if one.latched is not None
    )
