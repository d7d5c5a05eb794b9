"""A child of the agent: started anew when it ends, ended with its parent, in order or not."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from koordlet.agent import scheduler_child
from tests.kit import deadline, logs

_LIVES = [sys.executable, "-S", "-c", "import time; time.sleep(1000)"]
_PACE = scheduler_child.Pace(first_seconds=0.01, most_seconds=0.02, grace_seconds=5.0)


def runs(pid: int) -> bool:
    """Whether there is a process of this number."""
    return Path(f"/proc/{pid}").exists()


async def started(child: scheduler_child.SchedulerChild, times: int) -> int:
    """Wait until it was started so often and runs; its process."""
    await deadline.comes(lambda: child.starts >= times and child.pid is not None)
    assert child.pid is not None
    return child.pid


async def test_a_killed_child_comes_back_and_a_stopped_one_does_not() -> None:
    """SIGKILL, and there is another; after ``stop`` there is none."""
    child = scheduler_child.SchedulerChild(_LIVES, pace=_PACE)
    child.start()
    first = await started(child, 1)
    os.kill(first, signal.SIGKILL)
    second = await started(child, 2)
    assert second != first
    await child.stop()
    assert child.pid is None
    assert not runs(second)


async def test_one_that_does_not_end_is_killed() -> None:
    """Who ignores SIGTERM has its grace, and is then killed."""
    stubborn = (
        "import signal, time; signal.signal(15, signal.SIG_IGN);"
        "print('deaf', flush=True); time.sleep(1000)"
    )
    pace = scheduler_child.Pace(grace_seconds=0.05)
    child = scheduler_child.SchedulerChild([sys.executable, "-S", "-c", stubborn], pace=pace)
    child.start()
    pid = await started(child, 1)
    await child.stop()
    assert not runs(pid)


def test_a_program_that_is_not_there_is_tried_again() -> None:
    """It costs a pause, never the agent; each attempt is logged with its reason."""

    async def body() -> None:
        child = scheduler_child.SchedulerChild(["/nonexistent/koordlet"], pace=_PACE)
        child.start()
        await deadline.comes(lambda: stream.getvalue().count("cannot be started") >= 2)
        assert (child.pid, child.starts) == (None, 0)
        await child.stop()

    with logs.written() as stream:
        asyncio.run(body())


def test_the_child_ends_with_its_parent() -> None:
    """A parent that is killed takes it along; one that had gone before is seen by its number."""
    child = (
        "import sys, time; from koordlet.agent import scheduler_child;"
        "print(scheduler_child.end_with(int(sys.argv[1])), flush=True); time.sleep(1000)"
    )
    parent = (
        "import os, subprocess, sys;"
        "child = subprocess.Popen([sys.executable, '-c', sys.argv[1], str(os.getpid())]);"
        "print(child.pid, flush=True); child.wait()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent, child], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = sorted((process.stdout.readline().strip(), process.stdout.readline().strip()))
        assert lines[1] == "True"
        process.kill()
        gone = Path(f"/proc/{lines[0]}")
        deadline.until(lambda: not gone.exists() or " Z " in _state(gone), "it has ended")
    orphan = (
        "from koordlet.agent import scheduler_child;"
        f"print(scheduler_child.end_with({os.getppid()}))"
    )
    orphaned = subprocess.run(
        [sys.executable, "-c", orphan], capture_output=True, text=True, check=True
    )
    assert orphaned.stdout.strip() == "False"


def _state(process: Path) -> str:
    try:
        return (process / "stat").read_text()
    except OSError:
        return " Z "
