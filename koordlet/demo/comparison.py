"""The demo's comparison: the same service and best-effort work without and with koordlet, in turn.

Covers: the phases, what was measured in each, ratios with their intervals.
Does not cover: the arithmetic of intervals (``intervals``), switching (``stage``), words
(``cli.narration``). Pure.

Rules:
1. A phase without koordlet and the next one with it are a round. The load is the same in all phases
   (``load``): its steps divide what is measured of a phase.
2. The first seconds of a phase count for nobody: a phase begins between two passes, the switch
   comes with the pass after the next one, and queues of the phase before run empty.
3. A request belongs to the phase in which it was due, whenever it was answered. One that was
   refused took longer than all others: it counts as the longest wait of a full queue.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import field

from koordlet.demo import intervals
from koordlet.model.record import dataclass

#: Seconds of a phase, and those at its beginning that are not measured.
PHASE, SETTLE = 6.0, 3.0
ROUNDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """CPUs in use at a time; ``None`` while unknown."""

    best_effort: float | None
    #: Of all latency-sensitive work, and of the whole machine.
    sensitive: float | None
    machine: float | None


@dataclass(slots=True, kw_only=True)
class Phase:
    """What one phase showed so far."""

    number: int
    #: Of the clock of views.
    start: float
    requests: list[intervals.Span] = field(default_factory=list)
    #: ``None``: nobody knows them.
    gaps: list[intervals.Span] | None = field(default_factory=list)
    #: CPU seconds of best-effort work, latency-sensitive work and all others, while known.
    seconds: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    known: float = 0.0

    @property
    def on(self) -> bool:
        """Whether koordlet acts in it."""
        return self.number % 2 == 1

    @property
    def refused(self) -> int:
        """Requests that found a full queue."""
        return sum(end == math.inf for _, end in self.requests)

    def watch_no_gaps(self) -> None:
        """Nobody can say which requests met a gap."""
        self.gaps = None

    def add(self, cpus: Iterable[float], seconds: float) -> None:
        """Count these CPUs in use for so long."""
        for number, used in enumerate(cpus):
            self.seconds[number] += used * seconds
        self.known += seconds

    def block(self) -> intervals.Block:
        """Its figures; work is in CPUs."""
        answered = [span for span in self.requests if span[1] < math.inf]
        took = intervals.clean(answered, self.gaps or ())
        clean = took + [took[-1]] * self.refused if took else []
        return intervals.Block(
            clean=clean,
            requests=len(self.requests),
            work=self.cpus(0),
        )

    def cpus(self, number: int) -> float:
        """CPUs of best-effort work, latency-sensitive work and all others."""
        return self.seconds[number] / self.known if self.known else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """All complete rounds; an arm's figures are for ``off`` and ``on``, in seconds and CPUs."""

    rounds: int
    p50: tuple[float, float]
    p99: tuple[float, float]
    best_effort: tuple[float, float]
    sensitive: tuple[float, float]
    others: tuple[float, float]
    refused: tuple[int, int]
    requests: tuple[int, int]
    #: With koordlet by without.
    latency: intervals.Interval
    share: intervals.Interval
    #: The part of the requests that met a gap of the host; ``None``: nobody knows.
    met: float | None


class Comparison:
    """The phases from a start on."""

    def __init__(self, start: float, rounds: int = ROUNDS) -> None:
        self._start = self._at = start
        self.phases = [
            Phase(number=number, start=start + PHASE * number) for number in range(2 * rounds)
        ]
        self._reported = 0

    def phase(self, at: float) -> Phase | None:
        """The phase of this time; ``None`` once all are over."""
        number = int((at - self._start) // PHASE)
        return self.phases[number] if 0 <= number < len(self.phases) else None

    def record(
        self,
        at: float,
        requests: Iterable[intervals.Span],
        gaps: Iterable[intervals.Span] | None,
        use: Use,
    ) -> None:
        """Take what was measured since the last call."""
        for request in requests:
            phase = self._measured(request[0])
            if phase is not None:
                phase.requests.append(request)
        self._add(at, use)
        if gaps is None:
            for phase in self.phases:
                phase.watch_no_gaps()
        else:
            for gap in gaps:
                phase = self.phase(gap[0])
                if phase is not None and phase.gaps is not None:
                    phase.gaps.append(gap)

    def _add(self, at: float, use: Use) -> None:
        seconds, self._at = at - self._at, at
        # A use is of the time since the last one.
        phase = self._measured(at - seconds / 2)
        if phase is None or use.best_effort is None or use.sensitive is None:
            return
        others = max(0.0, (use.machine or 0.0) - use.best_effort - use.sensitive)
        phase.add((use.best_effort, use.sensitive, others), seconds)

    def _measured(self, at: float) -> Phase | None:
        return self.phase(at) if (at - self._start) % PHASE >= SETTLE else None

    def ended(self, at: float) -> Sequence[Phase]:
        """The phases that ended since the last call, once their last requests are answered."""
        number = min(len(self.phases), int((at - self._start - 0.5) // PHASE))
        ended = self.phases[self._reported : max(self._reported, number)]
        self._reported = max(self._reported, number)
        return ended

    @property
    def over(self) -> bool:
        """Whether all phases have ended."""
        return self._reported == len(self.phases)

    def outcome(self) -> Outcome | None:
        """The figures of all complete rounds; ``None`` where there are too few for an interval."""
        rounds = self._reported // 2
        several = self.phases[: 2 * rounds]
        off, on = several[::2], several[1::2]
        arms = [[phase.block() for phase in arm] for arm in (off, on)]
        complete = all(block.clean and block.work for arm in arms for block in arm)
        if rounds < 2 or not complete:
            return None
        met = None
        if all(phase.gaps is not None for phase in several):
            asked = sum(len(phase.requests) for phase in several)
            met = 1 - sum(len(block.clean) for arm in arms for block in arm) / asked
        return Outcome(
            rounds=rounds,
            p50=_pair(intervals.quantile(arm, 0.5) for arm in arms),
            p99=_pair(intervals.quantile(arm, 0.99) for arm in arms),
            best_effort=_mean(off, on, 0),
            sensitive=_mean(off, on, 1),
            others=_mean(off, on, 2),
            refused=(sum(phase.refused for phase in off), sum(phase.refused for phase in on)),
            requests=(sum(len(p.requests) for p in off), sum(len(p.requests) for p in on)),
            latency=intervals.latency(arms[1], arms[0]),
            share=intervals.work(arms[1], arms[0]),
            met=met,
        )


def _mean(off: Sequence[Phase], on: Sequence[Phase], number: int) -> tuple[float, float]:
    return _pair(sum(phase.cpus(number) for phase in arm) / len(arm) for arm in (off, on))


def _pair(values: Iterable[float]) -> tuple[float, float]:
    off, on = values
    return off, on
