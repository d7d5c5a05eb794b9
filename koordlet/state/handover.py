"""Hand-over: how long limits may stay in place while no agent is there.

Covers: the deadline file. Does not cover: putting things back (``apply.planner.restore``).

A stopping agent that expects a successor records a deadline and leaves the limits. A successor that
becomes ready clears it; whoever finds it passed restores. The clock is ``CLOCK_BOOTTIME``: it
counts suspend and cannot be set.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

from koordlet.model.record import dataclass
from koordlet.state import checkpoint


@dataclass(frozen=True, slots=True)
class Deadline:
    """When the limits must be gone, unless somebody takes over."""

    boot_id: str
    boottime: float


class Handover:
    """The deadline on disk."""

    def __init__(self, path: Path, boot_id: str) -> None:
        self.path = path
        self.boot_id = boot_id

    def read(self) -> Deadline | None:
        """The deadline of this boot. A damaged file counts as passed: safe is without us."""
        try:
            body = json.loads(self.path.read_bytes())
            deadline = Deadline(str(body["boot_id"]), _finite(body["boottime"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            return Deadline(self.boot_id, 0.0)
        return deadline if deadline.boot_id == self.boot_id else None

    def record(self, boottime: float) -> Deadline:
        """Set the deadline. A crash loop must not push it away, so an earlier one stays."""
        before = self.read()
        if before is not None and before.boottime <= boottime:
            return before
        deadline = Deadline(self.boot_id, boottime)
        body = {"boot_id": deadline.boot_id, "boottime": deadline.boottime}
        checkpoint.write_atomically(self.path, (json.dumps(body) + "\n").encode())
        return deadline

    def clear(self) -> None:
        """An agent is ready, or everything is restored."""
        self.path.unlink(missing_ok=True)


def _finite(value: object) -> float:
    """Infinity and NaN never pass, so they are damage."""
    number = float(str(value))
    if not math.isfinite(number):
        msg = f"not a time: {number}"
        raise ValueError(msg)
    return number
