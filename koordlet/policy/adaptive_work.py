"""What neighbours cost where no run queue shows it: cycles per instruction, in ``adaptive``'s pain.

Covers: how much more cycles latency-sensitive work needs than it usually does, for how long that is
felt, and when it is nobody's fault. Pure.
Does not cover: counting (``host.performance``), waiting, the loop (``adaptive_controller``).

A neighbour that takes the cache or the memory's bandwidth makes nobody wait for a CPU: threads run,
and get less done. Cycles per instruction (CPI) say so, one window of some seconds a minute. So they
are another sense than waiting, slower by two orders, and what is felt is shaped for that:

1. **Usual** is the lower quartile of half an hour, of each container by itself: what it needs while
   it is left alone. While less than half of that is known, nothing is felt.
2. **Pain** is the excess over the usual in units of what is tolerated; of many containers the mean,
   weighted by cycles, and of that the part that best-effort work has in all CPU time.
3. **A window hurts once.** It says what was, not what is: above one it cuts at the pass that sees
   it first, and until the next window it only keeps the limit from growing (pain one). So a cut is
   judged by a window that began after it, and the limit grows only where a window did not hurt.
4. **It was not us.** A program that goes on to other work needs other cycles, too. Where pain is
   nearly as large after so many windows as before the first cut, it is not felt for half an hour;
   by then that work is the usual.
5. A window that is old says nothing, and neither does a machine that does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from koordlet.history import series
from koordlet.model import decision, meter, pod, snapshot
from koordlet.model.record import dataclass
from koordlet.policy import be_groups

#: Seconds of which the usual is made, and which part of the windows are better.
_HISTORY = 1800.0
_USUAL = 0.25
#: A window is felt for so long: two intervals and the window itself.
_OLD = 150.0
#: Windows after the first cut until it must have helped, and how much of the pain may be left.
_PROVE = 3
_HELPED = 0.8
_DEAF = 1800.0
#: Pain that keeps the limit from growing and cuts nothing.
_HOLDS = 1.0
#: Two times of a clock that are closer than this are one.
_SAME = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What was felt last, and what came of it. Monotonic seconds."""

    #: When the newest window ended, and the excess that it told of; ``None``: nothing is known.
    window_at: float | None = None
    excess: float = 0.0
    #: Pain before the first cut of a row, and windows since; ``None``: nothing to prove.
    trial_pain: float | None = None
    windows: int = 0
    deaf_until: float = -1.0


def look(now: snapshot.Snapshot, past: series.History, state: State) -> State:
    """The state with the newest window; sums are made once for each, because they cost."""
    age = past.work.age(meter.CPI, now.at)
    if age is None or age > _OLD:
        return replace(state, window_at=None, excess=0.0, trial_pain=None, windows=0)
    ended = now.at - age
    if state.window_at is not None and ended - state.window_at <= _SAME:
        return state
    return replace(state, window_at=ended, excess=excess(now, past))


def excess(now: snapshot.Snapshot, past: series.History) -> float:
    """How many more cycles than usual an instruction takes, as a part of the usual."""
    found = list(_of_each(now, past))
    weight = sum(cycles for cycles, _ in found)
    return sum(cycles * more for cycles, more in found) / weight if weight > 0 else 0.0


def _of_each(now: snapshot.Snapshot, past: series.History) -> Iterator[tuple[float, float]]:
    """Cycles of each latency-sensitive container of which the usual is known, and its excess."""
    for group in _watched(now.pods):
        cycles, newest = (past.work.last(group, one) for one in (meter.CYCLES, meter.CPI))
        window = past.work.window(group, meter.CPI, now.at, _HISTORY)
        if cycles is None or newest is None or window is None:
            continue
        usual = window.quantile(_USUAL)
        if usual > 0:
            yield cycles, max(0.0, newest / usual - 1)


def _watched(pods: Iterable[pod.Pod]) -> Iterator[str]:
    """As ``host.performance`` counts them: containers, and workloads that have none."""
    for one in pods:
        if not one.active or be_groups.is_best_effort(one):
            continue
        boxes = [box.group for box in one.containers if box.group is not None]
        yield from boxes or ([one.group] if one.group and not one.containers else [])


def feel(
    before: State, state: State, at: float, blame: float, tolerance: float
) -> tuple[float, State]:
    """The pain of this pass (rules 3 and 4), after a ``look``. ``tolerance`` 0: none."""
    if state.window_at is None or tolerance <= 0:
        return 0.0, state
    pain = state.excess * blame / tolerance
    new = state.window_at != before.window_at
    if new:
        state = _judged(pain, at, state)
    if at < state.deaf_until:
        return 0.0, state
    return (pain if new else min(pain, _HOLDS)), state


def _judged(pain: float, at: float, state: State) -> State:
    """A window more (rule 4)."""
    if state.trial_pain is None:
        return state
    if pain <= max(1.0, _HELPED * state.trial_pain):
        return replace(state, trial_pain=None, windows=0)
    if state.windows + 1 < _PROVE:
        return replace(state, windows=state.windows + 1)
    return replace(state, trial_pain=None, windows=0, deaf_until=at + _DEAF)


def cut(pain: float, state: State) -> State:
    """The limit was cut while this was felt: from now on it has to help."""
    if pain <= 1 or state.trial_pain is not None:
        return state
    return replace(state, trial_pain=pain, windows=0)


def signal(state: State, tolerance: float) -> tuple[decision.Signal, ...]:
    """What was felt last; nothing where nobody counts."""
    if state.window_at is None:
        return ()
    return (
        decision.Signal(
            name="cpu.cycles",
            observed=f"{state.excess:.0%} more than usual",
            threshold=f"{tolerance:.0%} more, by best-effort work's part of the CPU time",
            met=tolerance > 0 and state.excess > tolerance,
        ),
    )
