"""How much work a call is, counted: the same on every machine, however busy it is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines(call: Callable[[], object]) -> int:
    """The lines of Python that a call runs."""
    ran = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal ran
        ran += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        call()
    finally:
        sys.settrace(before)
    return ran
