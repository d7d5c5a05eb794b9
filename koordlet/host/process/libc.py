"""Functions of the C library that Python does not wrap. Imported late: ctypes costs time.

Covers: one call and its errno. Does not cover: which functions there are (``host.fs.root``).
"""

from __future__ import annotations

import ctypes
import os


def call(name: str, *args: str | int | ctypes.c_size_t, path: str) -> None:
    """Call it; ``OSError`` about ``path`` where it does not answer 0."""
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    if function(*[arg.encode() if isinstance(arg, str) else arg for arg in args]) != 0:
        raise failure(ctypes.get_errno(), path)


def failure(number: int, path: str) -> OSError:
    """An ``OSError`` as the kernel would raise it."""
    return OSError(number, os.strerror(number), path)
