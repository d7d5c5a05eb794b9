"""Calls of the C library that Python does not wrap. Imported where one is needed: they are rare."""

from __future__ import annotations

import ctypes

from koordlet.host import root


def call(name: str, *args: str | int, path: str) -> None:
    """Call a function that says 0 where all is well; ``OSError`` about ``path`` elsewhere."""
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    if function(*[arg.encode() if isinstance(arg, str) else arg for arg in args]) != 0:
        raise root.fail(ctypes.get_errno(), path)
