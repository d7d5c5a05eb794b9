"""The demo's processes end with whoever started them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from koordlet.demo import load, processes
from tests.kit import deadline

HERE = Path(load.__file__).parent
#: No process has it: the kernel's limit is 2^22.
_NOBODY = str(1 << 30)


@pytest.mark.parametrize(
    ("name", "words"),
    [("hog", ["koordlet-demo", "2"]), ("load", ["1", "0", "0"]), ("gaps", [])],
    ids=["hog", "load", "gaps"],
)
def test_a_process_ends_without_its_parent(name: str, words: list[str]) -> None:
    """Also when the parent was killed before the process could ask who it is."""
    given = [sys.executable, "-S", "-P", str(HERE / f"{name}.py"), _NOBODY, *words]

    assert subprocess.run(given, stdin=subprocess.DEVNULL, check=False, timeout=30).returncode == 0


def test_all_run_and_end() -> None:
    """The policy is told whom to move; requests are measured; nobody is left."""
    busy = processes.Processes(1)
    pids = [pid for _, pid in busy.settings().pids]
    due, answered = deadline.until(lambda: next(busy.requests(), None), "a first request")
    gaps = busy.gaps()
    busy.stop()

    assert due < answered
    assert gaps is None or all(begin < end for begin, end in gaps)
    assert [name for name, _ in busy.settings().pids] == ["ls", "be"]
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_the_hog_has_a_process_for_each_cpu_once_it_is_in_its_group() -> None:
    """They are forked in the group, so that all are in it; with the first one all of them end."""
    words = [sys.executable, "-S", "-P", str(HERE / "hog.py"), str(os.getpid()), "/", "3"]
    hog = subprocess.Popen(words, stdin=subprocess.DEVNULL)
    children = Path(f"/proc/{hog.pid}/task/{hog.pid}/children")
    pids = deadline.until(
        lambda: pids if len(pids := children.read_text().split()) == 2 else None, "two more"
    )
    hog.kill()
    hog.wait()

    deadline.until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "their end")
    assert hog.returncode < 0
