"""Naming a process to a person, and telling it from another one of its number."""

from __future__ import annotations

import os
import subprocess
import sys

from koordlet.host.fs import live_host
from koordlet.host.process import identity


def test_a_living_process_is_named_with_command_and_start() -> None:
    """The pid, what was started, and since when."""
    child = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    # On a busy machine a process that was just made may still be without its command line.
    child.stdout.readline()
    try:
        description = identity.describe(str(child.pid))
    finally:
        child.communicate(b"\n")

    assert description.startswith(f"pid {child.pid}, ")
    assert "input()" in description
    assert description.endswith(" UTC")


def test_a_process_that_ended_is_its_pid() -> None:
    """Nothing is invented about a process that is gone."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitpid(child.pid, 0)
    child.returncode = 0

    assert f"pid {child.pid}" == identity.describe(str(child.pid))


def test_what_is_no_pid_is_shown_as_it_is() -> None:
    """A lock file may hold anything."""
    assert identity.describe("unknown") == "pid unknown"


def test_a_process_is_known_by_its_start() -> None:
    """The same number each time, later ones for later processes, none for what is no process."""
    host = live_host.LiveHost()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        own, other = (identity.identity(host, f"/proc/{pid}") for pid in (os.getpid(), child.pid))
    finally:
        child.communicate(b"\n")

    assert 0 < own <= other
    assert own == identity.identity(host, f"/proc/{os.getpid()}")
    assert [identity.identity(host, path) for path in ("/proc/sys", "/sys", "/")] == [0, 0, 0]


def test_settings_of_the_kernel_are_there_once() -> None:
    """Each mount of procfs has inodes of its own for them: what is ours stays ours in a new one."""
    host = live_host.LiveHost()

    assert {identity.identity(host, f"/proc/sys/{folder}") for folder in ("vm", "kernel")} == {1}
