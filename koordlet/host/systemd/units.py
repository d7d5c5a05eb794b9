"""Asking systemd what becomes of a unit, and having it start another one.

Covers: the unit's state, the job that it is in the middle of, what both say about a successor.
Does not cover: telling systemd about ourselves (``notify``), what follows from it
(``agent.handover_keeper``).

Rules:
1. systemd decides whether an agent comes back, so it is asked and never guessed at.
2. No answer means that nobody comes: the machine is put back rather than left as it is.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from koordlet.model.record import dataclass

#: Seconds for one question; systemd answers in milliseconds, also while it starts and stops units.
_PATIENCE = 10.0

#: Jobs that end with the unit running.
_STARTING = frozenset({"start", "restart", "try-restart", "reload-or-start", "verify-active"})


class SystemdError(Exception):
    """systemd does not answer, or refuses."""


@dataclass(frozen=True, slots=True)
class SystemdUnit:
    """State of a unit in systemd."""

    #: ``ActiveState``: active, activating, deactivating, inactive, failed, …
    active: str
    #: ``SubState``: running, auto-restart, stop-post, …
    sub: str
    #: The type of its job; empty when there is none.
    job: str = ""


def look(unit: str) -> SystemdUnit:
    """The unit's state and job. The job first: a restart turns from one job into the next."""
    job = _job_type(_call("list-jobs", "--no-legend", "--plain", "--full"), unit)
    shown = _call("show", "--property=ActiveState,SubState", "--", unit)
    facts = dict(line.partition("=")[::2] for line in shown.splitlines())
    return SystemdUnit(active=facts.get("ActiveState", ""), sub=facts.get("SubState", ""), job=job)


def start(unit: str) -> None:
    """Have a unit started; it need not be up yet on return."""
    _call("start", "--no-block", "--no-ask-password", "--", unit)


def helper_of(unit: str) -> str:
    """``koordlet.service`` → ``koordlet-restore.service``."""
    return f"{unit.removesuffix('.service')}-restore.service"


def comes_back(unit: SystemdUnit, result: str) -> bool:
    """Asked by the unit's own ExecStopPost=, whose ``$SERVICE_RESULT`` is ``result``.

    A job decides; without one the process ended by itself, and Restart=on-failure asks for failure.
    """
    if unit.job:
        return unit.job in _STARTING
    return result != "success"


def left_alone(unit: SystemdUnit) -> bool:
    """True if nobody else restores limits, asked when the helper stops.

    A unit that has processes has its own ExecStopPost= still to run. One that is down, or only
    waits to be restarted, has not: systemd then stops it without running anything.
    """
    if unit.job in _STARTING:
        return False
    if unit.active == "activating" and unit.sub == "auto-restart":
        return unit.job == "stop"
    return unit.active in ("inactive", "failed")


def _job_type(listing: str, unit: str) -> str:
    """Lines of ``ID UNIT TYPE STATE``."""
    for line in listing.splitlines():
        words = line.split()
        if len(words) >= 4 and words[1] == unit:
            return words[2]
    return ""


def _call(*words: str) -> str:
    command: Sequence[str] = ("systemctl", *words)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SystemdError(f"{' '.join(command)}: {error}") from error
    if done.returncode:
        msg = f"{' '.join(command)}: {done.stderr.strip() or f'exit status {done.returncode}'}"
        raise SystemdError(msg)
    return done.stdout
