"""Cycles per instruction: the cost of neighbours that no run queue shows.

Covers: how many more cycles latency-sensitive work needs than it usually does, and saying so. Pure.
Does not cover: counting (``host.counters.performance``), waiting (``adaptive``).

A neighbour that takes the cache or the memory's bandwidth makes nobody wait for a CPU: threads run,
and get less done. Cycles per instruction (CPI) say so, one window of some seconds a minute.

1. **Usual** is the lower quartile of half an hour, of each container by itself: what it needs while
   it is left alone. While less than half of that is known, nothing is said.
2. Of many containers the excess over the usual is the mean, weighted by cycles.
3. A window that is old says nothing, and neither does a machine that does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from koordlet.history import series
from koordlet.model import decision, meter, snapshot
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.best_effort import groups

#: Seconds of which the usual is made, and which part of the windows are better.
_HISTORY = 1800.0
_USUAL = 0.25
#: A window is felt for so long: two intervals and the window itself.
_OLD = 150.0
#: Two times of a clock that are closer than this are one.
_SAME = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The newest measurement window, in monotonic seconds."""

    #: When it ended, and the excess that it told of; ``None``: nothing is known.
    window_at: float | None = None
    excess: float = 0.0


def look(now: snapshot.Snapshot, past: series.History, state: State) -> State:
    """The state with the newest window; sums are made once for each, because they cost."""
    age = past.work.age(meter.CPI, now.at)
    if age is None or age > _OLD:
        return State()
    ended = now.at - age
    if state.window_at is not None and ended - state.window_at <= _SAME:
        return state
    return State(window_at=ended, excess=excess(now, past))


def excess(now: snapshot.Snapshot, past: series.History) -> float:
    """Excess cycles per instruction over the usual, as a fraction."""
    found = list(_of_each(now, past))
    weight = sum(cycles for cycles, _ in found)
    return sum(cycles * more for cycles, more in found) / weight if weight > 0 else 0.0


def _of_each(now: snapshot.Snapshot, past: series.History) -> Iterator[tuple[float, float]]:
    """Cycles of each latency-sensitive container of which the usual is known, and its excess."""
    for group in _watched(now.pods):
        cycles, newest = (past.work.last(group, what) for what in (meter.CYCLES, meter.CPI))
        window = past.work.window(group, meter.CPI, now.at, _HISTORY)
        if cycles is None or newest is None or window is None:
            continue
        usual = window.quantile(_USUAL)
        if usual > 0:
            yield cycles, max(0.0, newest / usual - 1)


def _watched(pods: Iterable[pods.Pod]) -> Iterator[str]:
    """As ``host.counters.performance`` counts them: containers, and workloads that have none."""
    for pod in pods:
        if not pod.active or groups.is_best_effort(pod):
            continue
        boxes = [box.group for box in pod.containers if box.group is not None]
        yield from boxes or ([pod.group] if pod.group and not pod.containers else [])


def signal(state: State, tolerance: float) -> tuple[decision.Signal, ...]:
    """The signal of the newest window; none where the machine does not count cycles."""
    if state.window_at is None:
        return ()
    return (
        decision.Signal(
            name="cpu.cycles",
            observed=f"{state.excess:.0%} more than usual",
            threshold=f"{tolerance:.0%} more",
            met=_slowed(state, tolerance),
        ),
    )


def conditions(
    state: State, tolerance: float, be_milli: int | None
) -> tuple[decision.Condition, ...]:
    """The condition that latency-sensitive work runs slower than usual beside best-effort work."""
    if not be_milli or not _slowed(state, tolerance):
        return ()
    return (
        decision.Condition(
            type="LatencySensitiveSlowed",
            status=True,
            reason="CyclesPerInstruction",
            message=(
                f"latency-sensitive work needs {state.excess:.0%} more cycles per instruction"
                f" than usual (tolerance {tolerance:.0%}) while best-effort work uses"
                f" {be_milli / 1000:.1f} CPUs: a neighbour takes cache or memory bandwidth. Give"
                " best-effort work fewer cache ways and less bandwidth (policies.resctrl), or limit"
                " it with policies.adaptive.limits.maxPercent"
            ),
        ),
    )


def _slowed(state: State, tolerance: float) -> bool:
    return state.window_at is not None and 0 < tolerance < state.excess
