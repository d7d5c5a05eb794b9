"""Hand-over: how long limits may stay in place while no agent is there.

Covers: the deadline file. Does not cover: putting things back (``apply.planner.restore``).

A stopping agent that expects a successor records a deadline and leaves the limits. A successor that
becomes ready clears it; whoever finds it passed restores. The clock is ``CLOCK_BOOTTIME``: it
counts suspend and cannot be set.
"""

from __future__ import annotations

import contextlib
import errno
import json
from pathlib import Path

from koordlet.model.record import dataclass
from koordlet.state import checkpoint, disk, ownfiles

_ERRAND = "the hand-over deadline"


@dataclass(frozen=True, slots=True)
class Deadline:
    """The time at which limits are restored unless a successor takes over."""

    boot_id: str
    boottime: float


class Handover:
    """The deadline on disk."""

    def __init__(self, path: Path, boot_id: str, on: disk.Disk | None = None) -> None:
        self.path = path
        self.boot_id = boot_id
        self.disk = disk.Disk(path.parent) if on is None else on

    def read(self) -> Deadline | None:
        """The deadline of this boot. A damaged file counts as passed: safe is without us."""
        try:
            deadline = _deadline(ownfiles.load_json(ownfiles.read(self.path)))
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            return Deadline(self.boot_id, 0.0)
        return deadline if deadline.boot_id == self.boot_id else None

    def record(self, boottime: float) -> Deadline:
        """Set the deadline. A crash loop must not push it away, so an earlier one stays.

        ``TimeoutError`` where the disk does not say in time that it has it.
        """
        before = self.read()
        if before is not None and before.boottime <= boottime:
            return before
        deadline = Deadline(self.boot_id, boottime)
        body = {"boot_id": deadline.boot_id, "boottime": deadline.boottime}
        data = (json.dumps(body) + "\n").encode()

        def write() -> None:
            ownfiles.directory(self.path.parent)
            checkpoint.write_atomically(self.path, data)

        if not self.disk.does(_ERRAND, write, disk.LONG):
            raise TimeoutError(errno.ETIMEDOUT, "the disk does not answer", str(self.path))
        return deadline

    def clear(self) -> None:
        """Remove the deadline: an agent is ready, or everything is restored."""
        self.disk.does(_ERRAND, self._remove, disk.LONG)

    def _remove(self) -> None:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            try:
                self.path.unlink()
            except IsADirectoryError:
                # It says that limits must go, and would say so for ever.
                self.path.replace(self.path.with_name(f"{self.path.name}.damaged"))


def _deadline(body: object) -> Deadline:
    """``ValueError`` for anything else."""
    if not isinstance(body, dict):
        raise ValueError("not a deadline")
    boot_id, boottime = body.get("boot_id"), body.get("boottime")
    if not isinstance(boot_id, str) or not isinstance(boottime, int | float):
        raise ValueError(f"not a deadline: {boot_id!r:.80}, {boottime!r:.80}")
    return Deadline(boot_id, float(boottime))
