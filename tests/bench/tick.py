"""A whole tick beside 250 pods with 500 containers: read, decide, diff, publish.

Reference: ``reading.c`` on the files that the same ticks read. Goal: 3 times; and 1 % of a core.
One round of everything is measured: ticks on which files are verified, and those of the slow lane.
"""

from __future__ import annotations

import contextlib
import gc
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from koordlet import agent, line, log
from koordlet.host import root
from koordlet.model import cgroup
from koordlet.state import paths
from tests.bench import gate, reading
from tests.kit import agents, images

#: Half of a tick are reads of counter files, which the reference has as well.
WHOLE, WHOLE_GOAL = 4.0, 3.0
SHARE = 0.01
#: In units of it; an absolute budget, so a slow machine is further from it.
SHARE_LIMIT, SHARE_GOAL = 2.0, 1.0
_TICKS = 30
_SLOW = 10
_HOST = root.LiveHost()


def whole() -> gate.Ratio:
    """CPU of one tick, in units of reading its files in C."""
    with _agent() as (who, clock), tempfile.TemporaryDirectory() as folder:
        reference = _reference(who, Path(folder))
        ours, best = gate.interleaved(lambda: _round(who, clock), reference)
    return gate.Ratio(
        name="tick.whole",
        ours=ours,
        reference=best,
        limit=WHOLE,
        goal=WHOLE_GOAL,
        unit="CPU s a tick",
        against="reading the same files in C",
    )


def share() -> gate.Ratio:
    """CPU of one tick, in units of 1 % of a second."""
    with _agent() as (who, clock):
        ours = min(_round(who, clock) for _ in range(gate.REPEATS))
    return gate.Ratio(
        name="tick.share",
        ours=ours,
        reference=SHARE,
        limit=SHARE_LIMIT,
        goal=SHARE_GOAL,
        unit="s/s",
        against="1 % of a core",
    )


def _round(who: agent.Agent, clock: agents.Clock) -> float:
    """The mean of thirty ticks, three of them with the slow lane."""
    gc.collect()
    spent = 0.0
    for number in range(_TICKS):
        clock.tick()
        began = time.process_time()
        for _ in range(_SLOW - 1):
            who.protection_broken()
        changed = who.one_pass(slow=number % _SLOW == _SLOW - 1)
        spent += time.process_time() - began
        assert not changed
    return spent / _TICKS


@contextlib.contextmanager
def _agent() -> Iterator[tuple[agent.Agent, agents.Clock]]:
    """An enforcing agent that has settled, on groups of its own."""
    log.configure("error", "json")
    with reading.node() as (_, groups), tempfile.TemporaryDirectory() as state:
        top = f"koordlet-bench-{os.getpid()}"
        pods = [path.removeprefix(f"{top}/") for path in groups if path.count("/") == 2]
        config = "policies:\n  reserved_cpus: {cpus: '0'}\nworkloads:\n" + "".join(
            f"  - {{name: w{number}, qos: {'BE' if 'best' in path else 'LS'},"
            f" match: {{cgroup: {path}}}}}\n"
            for number, path in enumerate(pods)
        )
        clock = agents.Clock()
        run = line.Line(_HOST, agents.effective(config), base=top, clock=clock)
        where = paths.choose({}, root=True, state_dir=state)
        who = agent.Agent(run, where, enforce=True)
        try:
            run.observer.watch()
            who.watch.listen()
            _furnish(top, run.observer.layout)
            while who.one_pass(slow=True):
                clock.tick()
            _round(who, clock)
            yield who, clock
        finally:
            who.restore()
            who.close()


def _furnish(top: str, layout: cgroup.Layout) -> None:
    """A v1 cpuset is born empty: each group gets the sets of the one above."""
    holder = layout.holder("cpuset")
    if holder is None or holder.unified:
        return
    for name in ("cpuset.cpus", "cpuset.mems"):
        text = _HOST.read(_HOST.at(f"{holder.mount}/{name}"))
        for directory in images.groups(_HOST, f"{holder.mount}/{top}"):
            _HOST.write(_HOST.at(f"{directory}/{name}"), text)


def _reference(who: agent.Agent, folder: Path) -> Callable[[], float]:
    """The same files at the same ticks, in C."""
    program, listed = folder / "program", folder / "list"
    listed.write_text("".join(reading.files(who.line.usage.groups)))
    reading.build(program)
    return lambda: reading.reference(program, listed, _TICKS)
