"""Reading the counters of 250 pods with 500 containers, against C on the same files.

Reference: ``reading.c``, which keeps a descriptor of each file and reads the same files at the same
ticks, but understands nothing. Ours reads, understands and fills columns. Limit: 1.5 times. The
groups are real ones of this kernel, made for the occasion, in every hierarchy that has counters.
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

from koordlet.history import series
from koordlet.host import counters, hierarchies, root
from koordlet.model import cgroup
from tests.bench import gate

READING = 1.5
PODS = 250
_CONTAINERS = 2
#: All turns of all files, but the slowest's, come equally often.
_TICKS = 30
#: A tenth of a second each: the more, the nearer both minima are to the truth.
_REPEATS = 25
_SOURCE = Path(__file__).with_suffix(".c")
_HOST = root.LiveHost()


def pods() -> gate.Ratio:
    """CPU of one tick, the mean over one round of all turns."""
    with node() as (layout, groups), tempfile.TemporaryDirectory() as folder:
        look = counters.Reader(_HOST, layout, nodes=(0,), handles=counters.HANDLES)
        look.follow(groups)
        for tick in range(_TICKS):
            look.read(tick)
        program, listed = Path(folder) / "program", Path(folder) / "list"
        every = list(files(look))
        listed.write_text("".join(every))
        build(program)
        ours, best = gate.interleaved(
            lambda: _ticks(look), lambda: reference(program, listed, _TICKS), repeats=_REPEATS
        )
        _tell(look, len(groups), len(every), best)
        look.close()
    return gate.Ratio(
        name=f"reading the counters of {PODS} pods, {len(every)} files",
        ours=ours,
        reference=best,
        limit=READING,
        unit="CPU s a tick",
        against="preading them in C",
    )


def _ticks(look: counters.Reader) -> float:
    gc.collect()
    start = time.process_time()
    for tick in range(_TICKS):
        look.read(tick)
    return (time.process_time() - start) / _TICKS


def _tell(look: counters.Reader, groups: int, files: int, reference: float) -> None:
    """What comes after reading, for the record: rates, rows, the table for reports."""
    past = series.History()
    start = time.process_time()
    spent = 0.0
    for tick in range(_TICKS):
        reading = look.read(tick)
        start = time.process_time()
        past.take({"groups": reading})
        past.usage()
        spent += time.process_time() - start
    after = spent / _TICKS
    print(f"     {groups} groups, {files} files; history {after / reference:.2f} x the same C")


def build(program: Path) -> None:
    """Compile the reference."""
    subprocess.run(["gcc", "-O2", "-o", program, _SOURCE], check=True)


def reference(program: Path, listed: Path, ticks: int) -> float:
    """CPU seconds of one tick of the reference."""
    words = [str(program), str(listed), str(ticks)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[0])


def files(look: counters.Reader) -> Iterator[str]:
    """What is read when, as the reference takes it: period, turn, kept or not, path."""
    for lane in look._lanes:
        every = lane.file.every
        plain = set().union(*lane._pending)
        for slot in sorted(lane._handles.keys() | plain):
            yield f"{every} {slot % every} {int(slot not in plain)} {lane._paths[slot]}\n"


@contextlib.contextmanager
def node() -> Iterator[tuple[cgroup.Layout, dict[str, cgroup.Group]]]:
    """A node's worth of groups on this kernel, gone at the end."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    layout = hierarchies.discover(_HOST)
    tops = [one for one in layout.hierarchies if one.controllers and one.writable]
    # Beside v1 hierarchies, a runtime leaves the v2 tree alone.
    tops = [one for one in tops if not one.unified] or tops
    if not tops:
        raise OSError("no writable cgroup hierarchy with controllers")
    made: list[str] = []
    try:
        groups: dict[str, cgroup.Group] = {}
        for path in _paths(f"koordlet-bench-{os.getpid()}"):
            for one in tops:
                directory = one.directory(path)
                _HOST.mkdir(_HOST.at(directory))
                made.append(directory)
            groups[path] = cgroup.Group(path=path, inode=len(groups) + 1)
        yield layout, groups
    finally:
        for directory in reversed(made):
            _HOST.rmdir(_HOST.at(directory))


def _paths(top: str) -> Iterator[str]:
    yield top
    for qos in ("burstable", "besteffort"):
        yield f"{top}/{qos}"
        for pod in range(PODS // 2):
            yield f"{top}/{qos}/pod{pod}"
            for container in range(_CONTAINERS):
                yield f"{top}/{qos}/pod{pod}/c{container}"
