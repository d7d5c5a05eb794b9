"""Pages of code that this process has mapped, and does not need any more.

Covers: handing back what is as it is in its file.
Does not cover: when (``cli.run``), memory that the process has made (glibc's, the interpreter's).

A start runs most of each library once. What is handed back stays in the kernel's page cache, and
is mapped again where it is run again.

Rules:
1. Only what is executed and never written to: a library's constants lie beside the table of
   addresses that the loader fills in, and that is in no file.
2. A mapping of which one page is our own (a tracer's breakpoint) stays whole.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

from koordlet.host.process import libc

#: MADV_DONTNEED of madvise(2).
_NOT_NEEDED = 4
_MAPS = "/proc/self/smaps"
#: A private mapping of code; its first line has an address, the file is the sixth.
_EXECUTED, _FILE = "r-xp", 5
#: What a mapping has of our own, in memory or swapped out, and the line that ends its part.
_OWN, _LAST = ("Anonymous:", "Swap:"), "VmFlags:"


def release() -> None:
    """Hand back what is clean; where the kernel does not say what is, everything stays mapped."""
    try:
        with open(_MAPS, errors="surrogateescape") as lines:
            clean = spans(lines)
        for start, end in clean:
            size = ctypes.c_size_t(end - start)
            libc.call("madvise", ctypes.c_size_t(start), size, _NOT_NEEDED, path=_MAPS)
    except OSError:
        return


def spans(smaps: Iterable[str]) -> list[tuple[int, int]]:
    """Start and end of each mapping of code that is all as it is in its file."""
    clean = []
    span = None
    for line in smaps:
        first, *words = line.split(None, _FILE)
        if not first.endswith(":"):
            start, _, end = first.partition("-")
            of_file = words[0] == _EXECUTED and words[-1].startswith("/")
            span = (int(start, 16), int(end, 16)) if of_file else None
        elif first in _OWN and words[0] != "0":
            span = None
        elif first == _LAST and span is not None:
            clean.append(span)
    return clean
