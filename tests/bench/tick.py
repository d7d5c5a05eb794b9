"""A whole tick beside 250 and beside 1 000 pods of two containers: read, decide, diff, publish.

Reference: ``reading.c`` on the files that the same ticks read, and 1 % of a core for 250 pods.
One round of everything is measured: ticks on which files are verified, and those of the slow lane.
Between two ticks a process runs in every container, so what is read moves, and the agent acts.

What the console's history adds: the same ticks with a recorder that takes their views, and without.
"""

from __future__ import annotations

import contextlib
import gc
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from koordlet import log
from koordlet.agent import lifecycle, tick
from koordlet.host.fs import live_host
from koordlet.report import recorder
from koordlet.state import paths
from tests.bench import gate, pace, reading, tenants
from tests.kit import agents

#: Half of a tick are reads of counter files, which the reference has as well.
WHOLE = 2.5
#: What is held where a host runs the interpreter slowly beside C; the budget is the goal.
WHOLE_LIMIT = 3.7
SHARE = 0.01
#: In units of it.
SHARE_LIMIT, SHARE_GOAL = 1.6, 0.8
#: In units of a tick that nothing records, and what is held: the lighter that tick, the more it is.
RECORDED, RECORDED_LIMIT = 1.1, 1.2
_TICKS = 30
_SLOW = 10
_HOST = live_host.LiveHost()


def whole() -> Iterator[gate.Ratio]:
    """Beside 250 pods."""
    return _budgets(reading.PODS, gate.REPEATS)


def thousand() -> Iterator[gate.Ratio]:
    """Beside a thousand: four times the share, and as many times the same reads in C."""
    return _budgets(1000, 2)


def recorded() -> gate.Ratio:
    """Ticks that are recorded, and the same ones that are not, in turn."""
    with _running(reading.PODS) as running:
        run = running.who.tick
        kept = recorder.Recorder(run.history, clock=lambda: running.clock.at)

        def ours() -> Iterator[float]:
            return _ticks(running, kept)

        own, without = gate.sliced(ours, lambda: _ticks(running), gate.REPEATS)
        if len(kept.seconds.samples(["node/cpus"]).at) < gate.REPEATS * _TICKS:
            msg = "the recorder has not taken each tick"
            raise ValueError(msg)
    return gate.Ratio(
        name=f"a tick that is recorded, {reading.PODS} pods",
        ours=own / _TICKS,
        reference=without / _TICKS,
        limit=RECORDED_LIMIT,
        goal=RECORDED,
        unit="CPU s a tick",
        against="a tick that is not",
    )


def _budgets(pods: int, repeats: int) -> Iterator[gate.Ratio]:
    """CPU of one tick, in units of reading its files in C, and of 1 % of a second."""
    with _running(pods) as running, tempfile.TemporaryDirectory() as folder:
        paces: list[float] = []

        def ours() -> Iterator[float]:
            paces.append(pace.work())
            yield from _ticks(running)

        own, reference = gate.sliced(ours, _reference(running, Path(folder)), repeats)
    share = SHARE * pods / reading.PODS
    spent, budget = pace.budget(share, ((own / _TICKS, each) for each in paces))
    yield gate.Ratio(
        name=f"a whole tick, {pods} pods",
        ours=spent,
        reference=reference / _TICKS,
        limit=WHOLE_LIMIT,
        goal=WHOLE,
        unit="CPU s a tick",
        against="reading the same files in C",
    )
    yield gate.Ratio(
        name=f"ticks, one a second, {pods} pods",
        ours=spent,
        reference=budget,
        limit=SHARE_LIMIT,
        goal=SHARE_GOAL,
        unit="s/s",
        against=f"{share:.0%} of a core",
    )


class _Running(NamedTuple):
    """An enforcing agent beside workloads that run when they are told to."""

    who: lifecycle.Agent
    clock: agents.Clock
    beat: tenants.Beat


def _ticks(running: _Running, kept: recorder.Recorder | None = None) -> Iterator[float]:
    """CPU of each of thirty ticks, three of them with the slow lane; ``kept`` takes their views."""
    gc.collect()
    for number in range(_TICKS):
        running.clock.tick()
        running.beat()
        began = time.process_time()
        for _ in range(_SLOW - 1):
            running.who.tick.protection_broken(running.who)
        running.who.one_pass(slow=number % _SLOW == _SLOW - 1)
        if kept is not None and running.who.publisher.view is not None:
            kept.publish(running.who.publisher.view)
        yield time.process_time() - began


def rounds(pods: int, repeats: int) -> list[tuple[float, float]]:
    """CPU seconds of a tick beside so many pods, each with the pace at that moment."""
    with _running(pods) as running:
        return [(sum(_ticks(running)) / _TICKS, pace.work()) for _ in range(repeats)]


@contextlib.contextmanager
def _running(size: int) -> Iterator[_Running]:
    """An agent that has settled, on groups of its own."""
    log.configure("error", "json")
    with reading.node(size) as node, tempfile.TemporaryDirectory() as state:
        top = f"koordlet-bench-{os.getpid()}"
        pods = [path.removeprefix(f"{top}/") for path in node.groups if path.count("/") == 2]
        config = "policies:\n  reserved_cpus: {cpus: '0'}\nworkloads:\n" + "".join(
            f"  - {{name: w{number}, qos: {'BE' if 'best' in path else 'LS'},"
            f" match: {{cgroup: {path}}}}}\n"
            for number, path in enumerate(pods)
        )
        clock = agents.Clock()
        run = tick.Tick(_HOST, agents.effective(config), base=top, clock=clock)
        where = paths.choose({}, root=True, state_dir=state)
        who = lifecycle.Agent(run, where, enforce=True)
        try:
            run.observer.watch()
            who.watch.listen()
            while who.one_pass(slow=True):
                clock.tick()
            running = _Running(who, clock, node.beat)
            sum(_ticks(running))
            yield running
        finally:
            who.restore()
            who.close()


def _reference(running: _Running, folder: Path) -> Callable[[], Iterator[float]]:
    """The same files at the same ticks, in C."""
    program, listed = folder / "program", folder / "list"
    listed.write_text("".join(reading.files(running.who.tick.usage.groups)))
    reading.build(program)
    return lambda: reading.reference(program, listed, _TICKS, running.beat)
