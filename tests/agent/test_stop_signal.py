"""Told to stop before anybody listens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from koordlet.agent import stop_signal
from tests.kit import agents, deadline


def importing(folder: Path, *words: str) -> subprocess.Popen[str]:
    """The program, once it has begun to import its modules and not yet ended to."""
    config = folder / "config.yaml"
    config.write_text(agents.HEADER + "mode: observe\nreport: {http: {enabled: false}}\n")
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "koordlet", *words, "--config", str(config)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.rpartition("|")[2].strip() == "koordlet.cli.streams":
            return process
    raise AssertionError("it imports that")


@pytest.mark.parametrize("number", stop_signal.NUMBERS)
def test_an_agent_told_while_it_imports(tmp_path: Path, number: signal.Signals) -> None:
    """It ends as one that was told later: in order, with its own status."""
    process = importing(tmp_path, "run", "--state-dir", str(tmp_path / "state"))
    process.send_signal(number)
    _, log = process.communicate(timeout=deadline.PATIENCE)
    assert process.returncode == 0, log[-2000:]
    assert "daemon.ready" not in log, "nothing is begun for the sake of ending it"


def test_an_agent_asked_to_reload_while_it_imports(tmp_path: Path) -> None:
    """It starts: the configuration is read after that."""
    process = importing(tmp_path, "run", "--state-dir", str(tmp_path / "state"))
    process.send_signal(signal.SIGHUP)
    assert process.stderr is not None
    assert any("daemon.ready" in line for line in process.stderr)
    process.terminate()
    process.communicate(timeout=deadline.PATIENCE)
    assert process.returncode == 0


def test_another_command_told_while_it_imports(tmp_path: Path) -> None:
    """It has nothing to put in order: it dies of the signal, as any program."""
    process = importing(tmp_path, "config")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=deadline.PATIENCE)
    assert process.returncode == -signal.SIGTERM


def test_what_is_ignored_stays_ignored() -> None:
    """A shell's background job does not end by a Ctrl-C that was meant for another."""
    code = (
        "import signal, os; from koordlet.agent import stop_signal;"
        "signal.signal(signal.SIGINT, signal.SIG_IGN); stop_signal.listen();"
        "os.kill(os.getpid(), signal.SIGINT); print(stop_signal.heard(), stop_signal.listening());"
        "os.kill(os.getpid(), signal.SIGTERM); print(stop_signal.heard())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ}
    )
    assert done.stdout == "False True\nTrue\n"


def test_a_person_who_says_it_twice() -> None:
    """A start that hangs ends by a second Ctrl-C."""
    code = (
        "import signal, os; from koordlet.agent import stop_signal; stop_signal.listen();"
        "os.kill(os.getpid(), signal.SIGINT); os.kill(os.getpid(), signal.SIGINT)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 130
