"""The demo's processes end with whoever started them."""

from __future__ import annotations

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
    ("name", "words"), [("hog", []), ("load", ["1", "0", "0"])], ids=["hog", "load"]
)
def test_a_process_ends_without_its_parent(name: str, words: list[str]) -> None:
    """Also when the parent was killed before the process could ask who it is."""
    given = [sys.executable, "-S", "-P", str(HERE / f"{name}.py"), _NOBODY, *words]

    assert subprocess.run(given, stdin=subprocess.DEVNULL, check=False, timeout=30).returncode == 0


def test_all_three_run_and_end() -> None:
    """The policy is told whom to move; requests are measured; nobody is left."""
    busy = processes.Processes(1)
    pids = [pid for _, pid in busy.settings().pids]
    found = deadline.until(busy.latency, "a first second of requests")
    busy.stop()

    assert found.answered > 0
    assert [name for name, _ in busy.settings().pids] == ["ls", "be"]
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
