"""Reading the counters of 250 pods with 500 containers, against C on the same files.

Reference: ``reading.c``, which keeps a descriptor of each file and reads the same files at the same
ticks, but understands nothing. Ours reads, understands and fills columns. Limit: 1.5 times. The
groups are real ones of this kernel, made for the occasion, in every hierarchy that has counters;
in each container a process runs between two ticks (``tenants``).
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from koordlet.history import series
from koordlet.host.cgroup import hierarchies
from koordlet.host.counters import groups as group_counters
from koordlet.host.counters import lane as counter_lane
from koordlet.host.fs import live_host
from koordlet.model import cgroup
from tests.bench import gate, tenants
from tests.kit import images

READING = 1.5
#: What is held where a host runs the interpreter slowly beside C; the budget is the goal.
READING_LIMIT = 1.7
PODS = 250
_CONTAINERS = 2
#: Of a container: top, class, pod, container.
_DEPTH = 3
#: All turns of all files, but the slowest's, come equally often.
_TICKS = 30
#: The more, the nearer the minima of all ticks are to the truth.
_REPEATS = 8
_SOURCE = Path(__file__).with_suffix(".c")
_HOST = live_host.LiveHost()


def pods() -> gate.Ratio:
    """CPU of one tick, the mean over one round of all turns."""
    with node() as made, tempfile.TemporaryDirectory() as folder:
        look = group_counters.GroupReader(
            _HOST, made.layout, nodes=(0,), handles=group_counters.HANDLES
        )
        look.follow(made.groups)
        for tick in range(_TICKS):
            look.read(tick)
        program, listed = Path(folder) / "program", Path(folder) / "list"
        every = list(files(look))
        listed.write_text("".join(every))
        build(program)
        ours, best = (
            spent / _TICKS
            for spent in gate.sliced(
                lambda: _ticks(look, made.beat),
                lambda: reference(program, listed, _TICKS, made.beat),
                repeats=_REPEATS,
            )
        )
        _tell(look, made, len(every), best)
        look.close()
    return gate.Ratio(
        name=f"reading the counters of {PODS} pods, {len(every)} files",
        ours=ours,
        reference=best,
        limit=READING_LIMIT,
        goal=READING,
        unit="CPU s a tick",
        against="reading them in C",
    )


def _ticks(look: group_counters.GroupReader, beat: tenants.Beat) -> Iterator[float]:
    gc.collect()
    for tick in range(_TICKS):
        beat()
        start = time.process_time()
        look.read(tick)
        yield time.process_time() - start


def _tell(look: group_counters.GroupReader, made: Node, files: int, reference: float) -> None:
    """What comes after reading, for the record: rates, rows, the table for reports."""
    past = series.History()
    spent = 0.0
    for tick in range(_TICKS):
        made.beat()
        reading = look.read(tick)
        start = time.process_time()
        past.take({"groups": reading})
        past.usage()
        spent += time.process_time() - start
    after = spent / _TICKS
    groups = len(made.groups)
    print(f"     {groups} groups, {files} files; history {after / reference:.2f} x the same C")


def build(program: Path) -> None:
    """Compile the reference."""
    subprocess.run(["gcc", "-O2", "-o", program, _SOURCE], check=True)


def reference(program: Path, listed: Path, ticks: int, beat: tenants.Beat) -> Iterator[float]:
    """CPU seconds of each tick of the reference, with a beat before it."""
    words = [str(program), str(listed), str(ticks)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        for _ in range(ticks):
            beat()
            process.stdin.write("\n")
            process.stdin.flush()
            yield float(process.stdout.readline())


def files(look: group_counters.GroupReader) -> Iterator[str]:
    """What is read when, as the reference takes it: period, turn, kept or not, path.

    What rests, or follows what stands still, is read after some rounds only.
    """
    for lane in look._lanes:
        file, plain = lane.file, set().union(*lane._pending)
        for slot in sorted(lane._handles.keys() | plain):
            kept = slot not in plain
            seldom = lane.is_resting(slot) or file.follows is not None
            period = file.every * (counter_lane.STILL if seldom else 1)
            yield f"{period} {slot % period} {int(kept)} {lane.path(slot)}\n"


class Node(NamedTuple):
    """A node's worth of groups on this kernel."""

    layout: cgroup.Layout
    groups: dict[str, cgroup.Group]
    #: Has the process of every container run once.
    beat: tenants.Beat

    def live(self, seconds: int) -> None:
        """So long the workloads run once a second: the pace is the load, nothing is waited for."""
        for _ in range(seconds):
            self.beat()
            time.sleep(1)


@contextlib.contextmanager
def node(pods: int = PODS) -> Iterator[Node]:
    """The groups and those who live in them, gone at the end."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    layout = hierarchies.discover(_HOST)
    tops = [
        hierarchy
        for hierarchy in layout.hierarchies
        if hierarchy.controllers and hierarchy.writable
    ]
    # Beside v1 hierarchies, a runtime leaves the v2 tree alone.
    tops = [hierarchy for hierarchy in tops if not hierarchy.unified] or tops
    if not tops:
        raise OSError("no writable cgroup hierarchy with controllers")
    made: list[str] = []
    try:
        groups: dict[str, cgroup.Group] = {}
        for path in _paths(f"koordlet-bench-{os.getpid()}", pods):
            for hierarchy in tops:
                directory = hierarchy.directory(path)
                _HOST.mkdir(_HOST.at(directory))
                made.append(directory)
            groups[path] = cgroup.Group(path=path, inode=len(groups) + 1)
        _furnish(layout, next(iter(groups)))
        leaves = [path for path in groups if path.count("/") == _DEPTH]
        with tenants.living([hierarchy.mount for hierarchy in tops], leaves) as beat:
            yield Node(layout, groups, beat)
    finally:
        for directory in reversed(made):
            _HOST.rmdir(_HOST.at(directory))


def _furnish(layout: cgroup.Layout, top: str) -> None:
    """A v1 cpuset is born empty: each group gets the sets of the one above."""
    holder = layout.holder("cpuset")
    if holder is None or holder.unified:
        return
    for name in ("cpuset.cpus", "cpuset.mems"):
        text = _HOST.read(_HOST.at(f"{holder.mount}/{name}"))
        for directory in images.groups(_HOST, f"{holder.mount}/{top}"):
            _HOST.write(_HOST.at(f"{directory}/{name}"), text)


def _paths(top: str, pods: int) -> Iterator[str]:
    yield top
    for qos in ("burstable", "besteffort"):
        yield f"{top}/{qos}"
        for pod in range(pods // 2):
            yield f"{top}/{qos}/pod{pod}"
            for container in range(_CONTAINERS):
                yield f"{top}/{qos}/pod{pod}/c{container}"
