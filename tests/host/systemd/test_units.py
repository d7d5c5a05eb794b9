"""What systemd's words about a unit say of a successor (systemd itself: ``tests.vm``)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from koordlet.host.systemd import units

LISTING = """\
 12 other.service             start   waiting
123 koordlet.service          restart running
124 koordlet-restore.service  stop    waiting
"""


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ``systemctl`` of our own on PATH, that notes what it was asked."""
    script = tmp_path / "systemctl"
    script.write_text(
        "#!/bin/sh\n"
        f'echo "$*" >> {tmp_path}/asked\n'
        f'[ ! -e {tmp_path}/broken ] || {{ echo "no bus" >&2; exit 1; }}\n'
        f"cat {tmp_path}/$1 2>/dev/null || true\n"
    )
    script.chmod(0o755)
    (tmp_path / "list-jobs").write_text(LISTING)
    (tmp_path / "show").write_text("ActiveState=deactivating\nSubState=stop-post\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def test_state_and_job(manager: Path) -> None:
    """State and job are those of the unit that was asked for, not of one with a longer name."""
    restarting = units.SystemdUnit(active="deactivating", sub="stop-post", job="restart")

    assert restarting == units.look("koordlet.service")
    assert units.look("koordlet-restore.service").job == "stop"
    assert units.look("koordlet").job == ""
    assert "-- koordlet.service" in (manager / "asked").read_text().splitlines()[1]


def test_starting_does_not_wait(manager: Path) -> None:
    """Starting from within a stopping unit must not wait for a job that may wait for the stop."""
    units.start("koordlet-restore.service")

    words = (manager / "asked").read_text().split()
    assert words[0] == "start"
    assert "--no-block" in words
    assert words[-1] == "koordlet-restore.service"


def test_no_answer(manager: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A systemctl that fails, and one that is not there, are the same error with the reason."""
    (manager / "broken").touch()
    with pytest.raises(units.SystemdError, match="no bus"):
        units.look("koordlet.service")

    monkeypatch.setenv("PATH", str(manager / "nowhere"))
    with pytest.raises(units.SystemdError, match="No such file"):
        units.start("koordlet.service")


@pytest.mark.parametrize(
    ("job", "result", "expected"),
    [
        ("restart", "success", True),
        ("try-restart", "success", True),
        ("start", "success", True),
        ("stop", "success", False),
        ("stop", "watchdog", False),
        ("", "success", False),
        ("", "signal", True),
        ("", "exit-code", True),
        ("", "watchdog", True),
        ("", "timeout", True),
        ("", "oom-kill", True),
    ],
)
def test_comes_back(job: str, result: str, expected: bool) -> None:
    """A job decides; without one, a unit that failed is restarted and one that ended is not."""
    unit = units.SystemdUnit(active="deactivating", sub="stop-post", job=job)

    assert expected is units.comes_back(unit, result)


@pytest.mark.parametrize(
    ("active", "sub", "job", "expected"),
    [
        ("failed", "failed", "", True),
        ("failed", "failed", "stop", True),
        ("inactive", "dead", "", True),
        ("inactive", "dead", "start", False),
        ("activating", "auto-restart", "", False),
        ("activating", "auto-restart", "restart", False),
        ("activating", "auto-restart", "stop", True),
        ("activating", "start", "stop", False),
        ("deactivating", "stop-post", "stop", False),
        ("deactivating", "stop-sigterm", "restart", False),
        ("active", "running", "", False),
        ("active", "running", "stop", False),
    ],
)
def test_left_alone(active: str, sub: str, job: str, expected: bool) -> None:
    """The helper must act only where the unit has no process whose end would be acted upon."""
    assert expected is units.left_alone(units.SystemdUnit(active=active, sub=sub, job=job))


def test_the_helper_is_named_after_the_unit() -> None:
    """One helper for each agent's unit."""
    assert units.helper_of("koordlet.service") == "koordlet-restore.service"
