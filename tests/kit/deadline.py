"""Waiting for something that another process, thread or task brings about: asked until a deadline.

Covers: waiting with and without a loop, and for the end of a cgroup.
Does not cover: waiting for a fixed time, which no test does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

#: Long enough for a busy machine; reached only by a test that fails. Emulated machines need more.
PATIENCE = float(os.environ.get("KOORDLET_TEST_PATIENCE", "60"))
_PAUSE = 0.01
_BREATH = 0.002


def until(
    ask: Callable[[], T | None], what: str, *, seconds: float = PATIENCE, pause: float = _PAUSE
) -> T:
    """The first true answer; ``AssertionError`` naming what did not happen."""
    end = time.monotonic() + seconds
    while True:
        answer = ask()
        if answer:
            return answer
        if time.monotonic() > end:
            msg = f"not within {seconds:.0f} s: {what}"
            raise AssertionError(msg)
        time.sleep(pause)


async def comes(condition: Callable[[], object], *, seconds: float = PATIENCE) -> None:
    """Wait until something is so while the other tasks go on; ``TimeoutError`` if it never is."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 -- whoever brings it about tells nobody
            await asyncio.sleep(_BREATH)


def removed(group: Path) -> None:
    """Remove the directory of a cgroup, or find it gone; what ended a moment ago still keeps it."""

    def gone() -> bool:
        with contextlib.suppress(OSError):
            group.rmdir()
        return not group.exists()

    until(gone, f"{group} is removed")
