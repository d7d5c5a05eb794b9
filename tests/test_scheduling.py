"""A standalone scheduler as a process: it takes calls, keeps what it was told, and ends cleanly."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from koordlet import cli

SECONDS = 60


@contextmanager
def scheduler(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The process, once it leads."""
    words = [sys.executable, "-m", "koordlet", "scheduler", "--standalone"]
    words += ["--state-dir", str(folder), "--http", "127.0.0.1:0"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as one:
        assert one.stdout is not None
        try:
            assert any("scheduler.leading" in line for line in one.stdout)
            yield one
        finally:
            one.send_signal(signal.SIGTERM)
            one.communicate(timeout=SECONDS)
    assert one.returncode == 0


def described(folder: Path, capsys: Any) -> dict[str, Any]:
    """The reservation as the command tells of it."""
    words = ["describe", "reservation", "room", "--state-dir", str(folder), "-o", "json"]
    assert cli.main(words) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)["reservation"]
    return found


def test_a_restart_keeps_what_was_reserved(tmp_path: Path, capsys: Any) -> None:
    """Created by the command, there again in the next process, with a backup beside it."""
    words = ["reserve", "room", "--cpus", "2", "--owner", "app=web", "--state-dir", str(tmp_path)]
    with scheduler(tmp_path):
        assert cli.main(words) == 0
        capsys.readouterr()
        before = described(tmp_path, capsys)["metadata"]["uid"]
    with scheduler(tmp_path):
        assert described(tmp_path, capsys)["metadata"]["uid"] == before
    assert (tmp_path / "lib" / "scheduler.db.backup").exists()
