"""Paths of koordlet's own files.

Covers: the layout below the state directories. Does not cover: kernel paths (``host.fs.root``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """Our directories: volatile, lasting, log."""

    run: Path
    lib: Path
    log: Path

    @property
    def lock(self) -> Path:
        """Held by the one agent of this host."""
        return self.run / "lock"

    @property
    def socket(self) -> Path:
        """The gRPC socket."""
        return self.run / "koordlet.sock"

    @property
    def journal(self) -> Path:
        """Originals."""
        return self.lib / "journal"

    @property
    def checkpoints(self) -> Path:
        """Policy states."""
        return self.lib / "checkpoint"

    @property
    def last_config(self) -> Path:
        """The text of the last good configuration file."""
        return self.lib / "last-config.yaml"

    @property
    def last_answer(self) -> Path:
        """The configuration of the last start, validated."""
        return self.lib / "last-answer.json"

    @property
    def handover(self) -> Path:
        """The deadline of a hand-over."""
        return self.lib / "handover.json"

    @property
    def node_shutdown(self) -> Path:
        """When the last shutdown began, and when all workloads had ended."""
        return self.lib / "node-shutdown.json"

    @property
    def scheduler_socket(self) -> Path:
        """The gRPC socket of a standalone scheduler."""
        return self.run / "scheduler.sock"

    @property
    def database(self) -> Path:
        """The objects of a standalone scheduler."""
        return self.lib / "scheduler.db"

    @property
    def audit(self) -> Path:
        """Every action."""
        return self.log / "audit.jsonl"


def choose(env: Mapping[str, str], *, root: bool, state_dir: str | None) -> Paths:
    """One directory for everything when given; else the system's, or the user's without root."""
    if state_dir:
        base = Path(state_dir)
        return Paths(run=base / "run", lib=base / "lib", log=base / "log")
    if root:
        return Paths(
            run=Path("/run/koordlet"), lib=Path("/var/lib/koordlet"), log=Path("/var/log/koordlet")
        )
    home = Path(env.get("HOME") or "/nonexistent")
    state = Path(env.get("XDG_STATE_HOME") or home / ".local" / "state") / "koordlet"
    run = Path(env["XDG_RUNTIME_DIR"]) / "koordlet" if env.get("XDG_RUNTIME_DIR") else state / "run"
    return Paths(run=run, lib=state, log=state / "log")


def current(state_dir: str | None) -> Paths:
    """The choice for this process: its user, its environment."""
    return choose(os.environ, root=os.geteuid() == 0, state_dir=state_dir)
