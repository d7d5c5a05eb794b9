"""``koordlet`` as a process that is killed, or stands still, before a change of one's choice.

    python -m tests.kit.killed_agent ORDER WORDS

ORDER is a file: from the moment that it is there it has the number of that change, from 1, and the
signal that the process sends itself.

Covers: changes of control files, of groups and of the checkpoint of claims.
Does not cover: agents without a process of their own (``dying``).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from koordlet import __main__ as program
from koordlet.policy.cpu import dra_driver
from tests.kit import live

_GROUPS = "/sys/fs/cgroup/"


class Countdown:
    """Counts the changes of this process, by Python's audit events, which come before them."""

    def __init__(self, order: Path) -> None:
        self._order = order
        self._count = 0

    def take(self, event: str, arguments: tuple[object, ...]) -> None:
        """Take an event; the process ends or stands still here where it is the ordered change."""
        if not _changes(event, arguments):
            return
        if not self._order.exists():
            self._count = 0
            return
        self._count += 1
        change, number = map(int, self._order.read_text().split())
        if self._count == change:
            os.kill(os.getpid(), number)


def _changes(event: str, arguments: tuple[object, ...]) -> bool:
    match event, arguments:
        case "open", (str() as path, _, int() as flags):
            return path.startswith(_GROUPS) and flags & os.O_ACCMODE != os.O_RDONLY
        case (("os.mkdir" | "os.rmdir"), (str() as path, *_)):
            return path.startswith(_GROUPS)
        case "os.rename", (_, path, *_):
            return str(path).endswith(f"/{dra_driver.STEM}.json")
    return False


@contextlib.contextmanager
def running(place: live.Place, order: Path, *words: str) -> Iterator[live.Running]:
    """Such an agent, without an order yet; ended at the latest here."""
    order.unlink(missing_ok=True)
    python, flag, _, *rest = place.command("run", "--http", "127.0.0.1:0", *words)
    agent = live.Running([python, flag, __name__, str(order), *rest], place.state)
    try:
        yield agent
    finally:
        agent.close()


def kill_before(order: Path, change: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Order the death of the process before that change from now on, or another signal."""
    fresh = order.with_suffix(".new")
    fresh.write_text(f"{change} {number.value}")
    fresh.rename(order)


if __name__ == "__main__":
    sys.addaudithook(Countdown(Path(sys.argv.pop(1))).take)
    program.main()
