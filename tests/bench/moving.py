"""Moving 10 000 threads of 500 containers between groups, against C doing the same writes.

Reference: ``moving.c``, which writes the same thread ids to the same file, one write(2) each, and
knows nothing else. Ours also looks for who was forked meanwhile where the threads come from: here
nobody, else the containers are listed once more, which is another half of the reference. The limit
is twice. This kernel has no resctrl, so the file is the ``tasks`` of a cgroup v1 hierarchy: the
same kind of file, one thread for each write. The containers' own cgroups are in another hierarchy,
as theirs are beside resctrl.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from koordlet.apply import resctrl
from koordlet.host.fs import live_host
from koordlet.model import action
from tests.bench import gate

MOVING = 2.0
CONTAINERS, THREADS = 500, 20
_SOURCE = Path(__file__).with_suffix(".c")
_TOP = Path("/sys/fs/cgroup")
_HOST = live_host.LiveHost()


def threads() -> gate.Ratio:
    """CPU of moving all of them there; the reference moves them back."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program"
        subprocess.run(["gcc", "-O2", "-pthread", "-o", program, _SOURCE], check=True)
        with _crowd(program) as (everybody, files), _groups() as (here, there):
            words = "\n".join(map(str, everybody))

            def back() -> float:
                argv = [str(program), "move", str(here / "tasks")]
                done = subprocess.run(argv, input=words, check=True, capture_output=True, text=True)
                cpu, taken = done.stdout.split()
                _expect(int(taken), len(everybody))
                return float(cpu)

            back()
            ours, best = gate.interleaved(lambda: _move(everybody, files, here, there), back)
    return gate.Ratio(
        name=f"moving {len(everybody)} threads of {CONTAINERS} containers",
        ours=ours,
        reference=best,
        limit=MOVING,
        unit="CPU s",
        against="C writing the same",
    )


def _move(everybody: list[int], files: list[str], here: Path, there: Path) -> float:
    move = action.MoveTasks(
        target=str(there / "tasks"),
        pids=tuple(everybody),
        policy="resctrl",
        reason="measured",
        threads_of=tuple(files),
        taken_from=(str(here / "tasks"),),
    )
    start = time.process_time()
    outcome, refused = resctrl.move(_HOST, move)
    spent = time.process_time() - start
    _expect(int(outcome.split()[0]), len(everybody))
    if refused:
        raise RuntimeError(refused)
    return spent


def _expect(moved: int, wanted: int) -> None:
    if moved != wanted:
        msg = f"moved {moved} of {wanted} threads"
        raise RuntimeError(msg)


@contextlib.contextmanager
def _crowd(program: Path) -> Iterator[tuple[list[int], list[str]]]:
    """All threads, and the file of each container that lists its own."""
    argv = [str(program), "crowd", str(CONTAINERS), str(THREADS)]
    top = _TOP / "cpuacct" / f"koordlet-bench-{os.getpid()}"
    child = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with child, contextlib.ExitStack() as last_first:
        last_first.callback(_gone, top)
        last_first.callback(child.terminate)
        everybody: list[int] = []
        files = []
        assert child.stdout is not None
        top.mkdir()
        for number, line in enumerate(iter(child.stdout.readline, "ready\n")):
            group = top / f"c{number}"
            group.mkdir()
            (group / "cgroup.procs").write_text(line.split()[0])
            everybody += map(int, line.split())
            files.append(str(group / "tasks"))
        _expect(len(everybody), CONTAINERS * THREADS)
        yield everybody, files


@contextlib.contextmanager
def _groups() -> Iterator[tuple[Path, Path]]:
    """Two groups to move between."""
    places = [_TOP / "pids" / f"koordlet-bench-{os.getpid()}-{name}" for name in ("here", "there")]
    with contextlib.ExitStack() as last_first:
        for place in places:
            place.mkdir()
            last_first.callback(_gone, place)
        yield places[0], places[1]
        # Whoever is left in them goes to the root, or they could not be removed.
        for place in places:
            for pid in (place / "cgroup.procs").read_text().split():
                with contextlib.suppress(OSError):
                    (_TOP / "pids" / "cgroup.procs").write_text(pid)


def _gone(group: Path) -> None:
    """Removes a group and those in it, once the processes that were killed have left."""
    deadline = time.monotonic() + 30
    for place in [*(path for path in group.iterdir() if path.is_dir()), group]:
        while True:
            try:
                place.rmdir()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
            else:
                break
