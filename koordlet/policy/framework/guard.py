"""The guard: rolls back a step of an optimising policy that made others wait.

Covers: steps on trial, the control, the verdict and when it ends, the condition with its evidence.
Does not cover: measuring and who may be tried (``agent.guard``).

What protects is never on trial: a limit of best-effort work, a reserved or an exclusive CPU goes
back because its own policy, the operator or a final stop says so, not because somebody measured
something.

Rules:
1. A trial begins with a step of a policy that is triable, where it is known how the ``window``
   before it was. Files that the policy changes until the verdict belong to the step.
2. The verdict comes after a ``window`` that begins ``settle`` seconds after the step. It is a
   regression where the latency excess of both halves is more than ``worse`` times that before, and
   more than ``least``.
3. There is no verdict without a control: what latency-sensitive work, best-effort work and
   everybody else used must be ``alike`` in both windows, and the same workloads be there on the
   same CPUs. Whoever is asked for more waits more, and that is nobody's fault.
4. A step that is taken back goes to the state before it and no further: each of its files has the
   text of then, what has no such state is not done again. All else that the policy decides stands.
5. After ``term`` seconds, or when workloads or their CPUs change, the policy is free again, and may
   be tried anew.
6. Of several steps on trial the last is judged first; then the others have no control any more.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import field, replace

from koordlet.model import decision, moment
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """The numbers of the guard; times in seconds, latency excess in units of what is tolerated."""

    window: float = 10.0
    settle: float = 1.0
    worse: float = 2.0
    least: float = 2.0
    #: Part of the larger use, and cores, by which two uses may differ and be the same load.
    alike: float = 0.1
    noise: float = 0.05
    term: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One moment; ``latency_excess`` and ``used`` are known together or not at all."""

    at: float
    #: Unix time, for people.
    wall: float = 0.0
    latency_excess: float | None = None
    #: Cores of latency-sensitive work, of best-effort work and of everybody else.
    used: tuple[float, float, float] = (0.0, 0.0, 0.0)
    #: Whatever makes two moments incomparable when it differs: who is there, on which CPUs.
    world: Hashable = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A step, and the text of each of its files before it; ``None``: there was none."""

    since: float
    last: float
    was: Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    """A step that is rolled back for a time."""

    until: float
    was: Mapping[str, str | None]
    #: The evidence, for people.
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """State of the guard."""

    world: Hashable = None
    #: The last moments of which something is known, oldest first; all of one world.
    samples: tuple[Sample, ...] = ()
    trials: Mapping[str, Trial] = field(default_factory=dict)
    rolled_back: Mapping[str, Rollback] = field(default_factory=dict)


def step(
    state: State, newest: Sample, acted: Mapping[str, Mapping[str, str | None]], params: Params
) -> State:
    """The state after one pass; ``acted`` has the files of each triable policy that acted."""
    if newest.world != state.world:
        state = State(world=newest.world)
    held = {
        stem: rollback for stem, rollback in state.rolled_back.items() if rollback.until > newest.at
    }
    before, trials = state.samples, dict(state.trials)
    for stem, was in acted.items():
        known = trials.get(stem)
        if known is not None:
            trials[stem] = replace(known, last=newest.at, was={**was, **known.was})
        elif stem not in held and _within(before, newest.at - params.window, newest.at, params):
            trials[stem] = Trial(since=newest.at, last=newest.at, was=was)
    oldest = newest.at - 3 * params.window
    samples = tuple(sample for sample in before if sample.at > oldest)
    if newest.latency_excess is not None:
        samples = (*samples, newest)
    due = [
        stem for stem in trials if newest.at >= trials[stem].since + params.settle + params.window
    ]
    for stem in sorted(due, key=lambda stem: -trials[stem].last):
        tried = trials.pop(stem)
        why = _regression(samples, tried, newest, params)
        if why:
            ends = moment.spell(newest.wall + params.term)
            why = f"{why}; rolled back until {ends}"
            held[stem] = Rollback(until=newest.at + params.term, was=tried.was, why=why)
            trials = {}
            break
    return State(world=state.world, samples=samples, trials=trials, rolled_back=held)


def _regression(samples: Iterable[Sample], tried: Trial, newest: Sample, params: Params) -> str:
    """The regression under the same load, in words; empty where there is none or it is unknown."""
    samples = tuple(samples)
    middle = newest.at - params.window / 2
    before = _within(samples, tried.since - params.window, tried.since, params)
    after = _within(samples, newest.at - params.window, newest.at, params)
    halves = [
        [sample for sample in after if (sample.at > middle) is late] for late in (False, True)
    ]
    if not before or not all(halves) or not _same_load(before, after, params):
        return ""
    was, now = _mean(before), min(_mean(half) for half in halves)
    if now <= max(params.least, params.worse * was):
        return ""
    ls, be, others = _load(after)
    return (
        f"latency-sensitive work waited {now:.1f} times the tolerance after it acted, {was:.1f}"
        f" times before, at the same load (latency-sensitive work {ls:.2f} cores, best-effort work"
        f" {be:.2f}, others {others:.2f})"
    )


def _within(samples: Iterable[Sample], after: float, until: float, params: Params) -> list[Sample]:
    """Samples of a period; empty with fewer than one sample in two seconds."""
    within = [sample for sample in samples if after < sample.at <= until]
    return within if 2 * len(within) >= params.window else []


def _mean(samples: list[Sample]) -> float:
    return sum(sample.latency_excess or 0.0 for sample in samples) / len(samples)


def _load(samples: list[Sample]) -> list[float]:
    return [
        math.fsum(each) / len(samples)
        for each in zip(*(sample.used for sample in samples), strict=True)
    ]


def _same_load(before: list[Sample], after: list[Sample], params: Params) -> bool:
    """The control: rule 3."""
    return all(
        abs(use - other) <= params.noise + params.alike * max(use, other)
        for use, other in zip(_load(before), _load(after), strict=True)
    )


def conditions(state: State) -> tuple[decision.Condition, ...]:
    """Conditions of rolled-back policies."""
    return tuple(
        decision.Condition(
            type="PolicyRolledBack", status=True, reason="Guard", subject=stem, message=rollback.why
        )
        for stem, rollback in sorted(state.rolled_back.items())
    )
