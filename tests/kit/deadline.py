"""Waiting for something that another process or thread brings about: asked again until a deadline.

Covers: ``until``. Does not cover: waiting for a fixed time, which no test does.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: Long enough for a busy machine; reached only by a test that fails. Emulated machines need more.
PATIENCE = float(os.environ.get("KOORDLET_TEST_PATIENCE", "60"))
_PAUSE = 0.01


def until(ask: Callable[[], T | None], what: str, *, seconds: float = PATIENCE) -> T:
    """The first true answer; ``AssertionError`` naming what did not happen."""
    end = time.monotonic() + seconds
    while True:
        answer = ask()
        if answer:
            return answer
        if time.monotonic() > end:
            msg = f"not within {seconds:.0f} s: {what}"
            raise AssertionError(msg)
        time.sleep(_PAUSE)
