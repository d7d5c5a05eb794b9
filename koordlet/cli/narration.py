"""Narrates the demo while it runs: first the comparison, phase by phase, then what changes.

Covers: switching between phases with each view, one line for each phase, the summary to paste into
a chat, the same for the console; after it one line for each change.
Does not cover: the greeting (``welcome``), figures (``demo.comparison``).

Rules:
1. After the comparison a line comes when what best-effort work has (its limit, else what it uses)
   has moved by a tenth of the machine since the line before, or no line came for ``SILENCE``
   seconds while requests are measured; and not sooner than ``PAUSE`` seconds after it, or after the
   start: a person reads it.
2. What is not known yet gets no line. No difference is a result, and gets one.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator, Mapping
from typing import Any

from koordlet.agent import endpoints
from koordlet.cli import output
from koordlet.demo import comparison, groups, intervals, stage
from koordlet.demo import latency as requests
from koordlet.model import action, best_effort, meter, plan, qos, result
from koordlet.report import view

PAUSE = 2.0
SILENCE = 5.0
_STEP = 0.1
#: Key of the pod.
_BEST_EFFORT = f"{groups.GROUP}/be"
#: The part of the machine that others may use without a word.
_OTHERS = 0.1
#: Changes and sentences of one kind that the summary names.
_MOST = 8


class Narrator:
    """Lines about what best-effort work has, each by what the line before it said."""

    def __init__(self) -> None:
        self._reported: float | None = None
        self._at: float | None = None

    def line(self, now: view.ReportView, latency: requests.Latency | None = None) -> str | None:
        """The next line of the story, or nothing new."""
        cpus = len(now.snapshot.topology.online)
        if self._at is None:
            self._at = now.snapshot.at
        used = now.used.shares.value(qos.Qos.LS.value, meter.CPU_SHARE)
        limit = now.plan.limit
        if limit is None or used is None or not cpus:
            return None
        had = limit.be_milli if limit.milli is None else limit.milli
        if had is None:
            return None
        cores = had / 1000
        moved = self._reported is None or abs(cores - self._reported) >= _STEP * cpus
        quiet = now.snapshot.at - self._at
        if quiet < PAUSE or not (moved or (latency is not None and quiet >= SILENCE)):
            return None
        trend = ""
        if self._reported is not None and moved:
            trend = ", less than before" if cores < self._reported else ", more"
        self._reported = cores if moved else self._reported
        self._at = now.snapshot.at
        answered = "" if latency is None else f" ({latency})"
        return (
            f"{_clock(now)}  latency-sensitive work uses {used:.2f} of {cpus} CPUs{answered};"
            f" best-effort work {_does(limit, cores, trend)}"
        )


def _clock(now: view.ReportView) -> str:
    return time.strftime("%H:%M:%S", time.localtime(now.snapshot.wall))


def _does(limit: best_effort.Limit, cores: float, trend: str) -> str:
    """Describe the limit, and which policy set it."""
    has = f"uses {cores:.2f}" if limit.milli is None else f"may have {cores:.2f} CPUs"
    has += trend
    if not limit.idle:
        return f"{has}: {output.visible(limit.reason)}"
    if limit.milli is not None:
        has = f"is not limited, {limit.policy} would let it have {cores:.2f} CPUs"
    return f"{has}, and does not yield: {output.visible(limit.idle)}"


class Comparing:
    """One comparison, driven by the views of the agent that it switches."""

    def __init__(self, play: stage.Stage) -> None:
        self._play = play
        self._comparison: comparison.Comparison | None = None
        self._on = True
        self._last: tuple[result.Result, ...] = ()
        #: By group and file: from what, to what, why.
        self._changes: dict[tuple[str, str], str] = {}
        #: Of each phase that has ended.
        self._figures: list[Mapping[str, str] | None] = []
        #: Empty until all have.
        self._verdict = ""
        self._summary: list[str] = []
        self._undone: dict[str, None] = {}
        self._machine, self._cpus = "", 0
        #: Above the first row: much is printed between the beginning and the end of a phase.
        self._head: tuple[str, ...] = (_HEAD,)

    def advance(self, now: view.ReportView, asked: list[intervals.Span]) -> Iterator[str]:
        """Take a view and what was measured, switch where a phase begins; lines to print."""
        at = now.snapshot.at
        if self._comparison is None:
            self._comparison = comparison.Comparison(at)
            self._cpus = len(now.snapshot.topology.online)
            name = output.visible(now.snapshot.node.name)
            self._machine = f"{name} ({self._cpus} CPUs, {self._kernel()})"
        sensitive = [cores for key, cores in now.usage.items() if key != _BEST_EFFORT]
        use = comparison.Use(
            best_effort=now.usage.get(_BEST_EFFORT),
            sensitive=sum(cores or 0.0 for cores in sensitive),
            machine=now.used.node.value("", meter.CPU),
        )
        self._comparison.record(at, asked, self._play.gaps(), use)
        self._notice(now)
        for ended in self._comparison.ended(at):
            yield from self._head
            self._head = ()
            self._figures.append(_figures(ended))
            yield _row(_clock(now), ended, self._figures[-1], self._cpus)
        phase = self._comparison.phase(at)
        self._switch(on=phase is None or phase.on)
        if self._comparison.over:
            outcome = self._comparison.outcome()
            self._verdict = "" if outcome is None else _verdict(outcome)
            self._summary = [*self._sentences(outcome)]
            yield from ("", *self._summary)

    @property
    def over(self) -> bool:
        """Whether all phases have ended."""
        return self._comparison is not None and self._comparison.over

    def document(self, now: view.ReportView) -> dict[str, object] | None:
        """The same for the console: each phase with its figures so far, at the end the summary."""
        if self._comparison is None:
            return None
        at, wall = now.snapshot.at, now.snapshot.wall
        phase = self._comparison.phase(at)
        rest = self._comparison.phases[len(self._figures) :]
        figures = [*self._figures, *map(_figures, rest)]
        return {
            "phases": [
                {
                    "on": row.on,
                    "from": round(wall + row.start - at, 1),
                    "to": round(wall + row.start + comparison.PHASE - at, 1),
                    "figures": texts,
                }
                for row, texts in zip(self._comparison.phases, figures, strict=True)
            ],
            "settleSeconds": comparison.SETTLE,
            "running": None if phase is None else phase.number,
            "verdict": self._verdict,
            "summary": self._summary,
        }

    def summary(self) -> Iterator[str]:
        """What was seen so far, to paste into a chat."""
        return self._sentences(None if self._comparison is None else self._comparison.outcome())

    def _sentences(self, outcome: comparison.Outcome | None) -> Iterator[str]:
        if outcome is None:
            yield "Nothing to compare yet: that takes two rounds without and with koordlet."
            return
        measured = "" if self._play.tick.host.live else ", simulated"
        yield f"koordlet on {self._machine}{measured}"
        yield (
            f"The same service and best-effort work, {outcome.rounds} times"
            f" {comparison.PHASE:.0f} s without and with koordlet:"
        )
        yield from output.table(
            list(_sums(outcome)),
            head=("", "WITHOUT", "WITH", "RATIO [95 % INTERVAL]"),
            indent="  ",
        )
        yield _verdict(outcome)
        yield "Without: two cgroups of equal weight, as systemd and container runtimes make them."
        if max(outcome.others) > _OTHERS * self._cpus:
            yield "Other programs kept this machine busy: on a quiet one both arms are better."
        if outcome.met is None:
            yield "Gaps of the host were not watched: the kernel refused SCHED_FIFO."
        elif self._play.tick.host.live:
            yield f"Left out: {outcome.met:.1%} of the requests, which met a gap of the host."
        if self._changes:
            yield "What koordlet changed, and why:"
            for (group, file), how in [*self._changes.items()][:_MOST]:
                yield f"  {group}/{file}: {how}"
            if len(self._changes) > _MOST:
                yield f"  and {len(self._changes) - _MOST} more: koordlet audit"
        for sentence in [*self._undone][:_MOST]:
            yield f"  ! {sentence}"

    def _kernel(self) -> str:
        return f"Linux {platform.release()}" if self._play.tick.host.live else "a recorded machine"

    def _switch(self, *, on: bool) -> None:
        if on is not self._on:
            self._on = on
            self._play.switch(on=on)

    def _notice(self, now: view.ReportView) -> None:
        """Keep what koordlet writes while it acts, and what it takes back by itself."""
        if not self._on:
            return
        for sentence in view.banner(now):
            if now.plan.limit is None or not now.plan.limit.idle:
                self._undone[output.visible(sentence)] = None
        if now.results is self._last:
            return
        self._last = now.results
        for outcome in now.results:
            step = outcome.step
            if step is None or step.undo or outcome.verdict is not result.Verdict.DONE:
                continue
            did = step.action
            if isinstance(did, action.WriteFile) and step.mode is plan.Mode.ENFORCE:
                file = outcome.target.rpartition("/")[2]
                was = "" if step.was is None else step.was.strip()
                how = f"{was or 'empty'} -> {did.value.strip()}, {did.policy}: {did.reason}"
                self._changes[output.visible(did.group), file] = output.visible(how)


_GOES_ON = """\
The demo goes on with koordlet. For five of each twenty seconds the service is now asked for nearly
all that the CPUs can do; watch what best-effort work gets then. Ctrl-C ends it."""
_COLUMNS = "{:8}  {:7}  {:>9}  {:>9}  {:>7}  {:>6} of {} CPUs"
_HEAD = "TIME      KOORDLET       P50        P99  REFUSED       BEST-EFFORT"


def _figures(phase: comparison.Phase) -> Mapping[str, str] | None:
    """What a phase showed; ``None`` where no request was answered without a gap."""
    block = phase.block()
    if not block.clean:
        return None
    p50, p99 = (1000 * intervals.quantile([block], part) for part in (0.5, 0.99))
    return {
        "p50": f"{p50:.1f} ms",
        "p99": f"{p99:.1f} ms",
        "refused": str(phase.refused),
        "bestEffortCPUs": f"{block.work:.2f}",
    }


def _row(clock: str, phase: comparison.Phase, figures: Mapping[str, str] | None, cpus: int) -> str:
    word = "on" if phase.on else "off"
    if figures is None:
        return f"{clock}  {word:8}  no request was answered without a gap"
    return _COLUMNS.format(clock, word, *figures.values(), cpus)


def _sums(outcome: comparison.Outcome) -> Iterator[tuple[str, ...]]:
    def milliseconds(pair: tuple[float, float]) -> tuple[str, str]:
        return f"{1000 * pair[0]:.1f} ms", f"{1000 * pair[1]:.1f} ms"

    yield ("p99 of the service", *milliseconds(outcome.p99), str(outcome.latency))
    yield ("p50 of the service", *milliseconds(outcome.p50), "")
    both = zip(outcome.refused, outcome.requests, strict=True)
    yield ("requests refused", *(f"{refused} of {asked}" for refused, asked in both), "")
    for name, pair, ratio in (
        ("CPUs of latency-sensitive work", outcome.sensitive, ""),
        ("CPUs of best-effort work", outcome.best_effort, str(outcome.share)),
        ("CPUs of all others", outcome.others, ""),
    ):
        yield (name, *(f"{cpus:.2f}" for cpus in pair), ratio)


def _verdict(outcome: comparison.Outcome) -> str:
    """A sentence; an interval on both sides of 1 is no difference."""
    ratio, work = outcome.latency, outcome.share
    if ratio.low <= 1 <= ratio.high:
        service = "No difference was seen in the p99 of the service"
    elif ratio.value < 1:
        service = f"With koordlet the p99 of the service is {1 / ratio.value:.1f} times shorter"
    else:
        service = f"With koordlet the p99 of the service is {ratio.value:.1f} times LONGER"
    if work.low <= 1 <= work.high:
        return f"{service}; best-effort work gets as much."
    change = "more" if work.value > 1 else "less"
    return f"{service}; best-effort work gets {abs(work.value - 1):.0%} {change}."


class Narrated(endpoints.Endpoints):
    """Endpoints that also tell a person about each view they publish."""

    def __init__(self, *given: Any, play: stage.Stage, comparing: Comparing, **named: Any) -> None:
        super().__init__(*given, demo=self, **named)
        self._play, self._comparing = play, comparing
        self._narrator: Narrator | None = None
        self._since: float | None = None
        self._latest: requests.Latency | None = None

    def latency(self) -> float | None:
        """The newest p99 of the service, in seconds."""
        return None if self._latest is None else self._latest.p99 / 1000

    def comparison(self, now: view.ReportView) -> Mapping[str, object] | None:
        """The comparison, for the console."""
        return self._comparing.document(now)

    def publish(self, now: view.ReportView | None) -> None:
        """Narrate a new view, and publish it."""
        if now is not None and now.ready:
            self._narrate(now)
        super().publish(now)

    def _narrate(self, now: view.ReportView) -> None:
        asked, at = list(self._play.requests()), now.snapshot.at
        if asked and self._since is not None and at > self._since:
            self._latest = requests.Latency.of(asked, at - self._since)
        self._since = at
        if self._narrator is None:
            for line in self._comparing.advance(now, asked):
                print(line, flush=True)
            if self._comparing.over:
                print(f"\n{_GOES_ON}\n", flush=True)
                self._narrator = Narrator()
            return
        story = self._narrator.line(now, self._latest)
        if story is not None:
            print(story, flush=True)
