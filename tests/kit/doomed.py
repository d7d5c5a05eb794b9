"""``koordlet`` as a process that is killed before a change.

    python -m tests.kit.doomed FILE WORDS

FILE says, from the moment that it is there, before which change the process dies (from 1).

Covers: changes of control files, of groups and of the checkpoint of claims.
Does not cover: agents without a process of their own (``dying``).
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import sys
from collections.abc import Iterator, Sequence

from koordlet import __main__ as program
from koordlet.policy.cpu import dra_driver
from tests.kit import live

_GROUPS = "/sys/fs/cgroup/"


class Doom:
    """Counts the changes of this process, by Python's audit events."""

    def __init__(self, order: pathlib.Path) -> None:
        self._order = order
        self._count = 0

    def hear(self, event: str, words: tuple[object, ...]) -> None:
        """Take an event before it happens."""
        if _changes(event, words) and self._order.exists():
            self._count += 1
            if self._count == int(self._order.read_text()):
                os.kill(os.getpid(), signal.SIGKILL)


def _changes(event: str, words: tuple[object, ...]) -> bool:
    match event, words:
        case "open", (str() as path, _, int() as flags):
            return path.startswith(_GROUPS) and flags & os.O_ACCMODE != os.O_RDONLY
        case (("os.mkdir" | "os.rmdir"), (str() as path, *_)):
            return path.startswith(_GROUPS)
        case "os.rename", (_, path, *_):
            return str(path).endswith(f"/{dra_driver.STEM}.json")
    return False


@contextlib.contextmanager
def running(place: live.Place, order: pathlib.Path, *words: str) -> Iterator[live.Running]:
    """Such an agent, ended at the latest here."""
    order.unlink(missing_ok=True)
    python, flag, _, *rest = place.command("run", "--http", "127.0.0.1:0", *words)
    agent = live.Running([python, flag, __name__, str(order), *rest], place.state)
    try:
        yield agent
    finally:
        agent.close()


def doom(order: pathlib.Path, change: int) -> None:
    """Have the process die before that change from now on."""
    fresh = order.with_suffix(".new")
    fresh.write_text(str(change))
    fresh.rename(order)


def _main(words: Sequence[str]) -> None:
    sys.argv = [sys.argv[0], *words[1:]]
    sys.addaudithook(Doom(pathlib.Path(words[0])).hear)
    program.main()


if __name__ == "__main__":
    _main(sys.argv[1:])
