"""Pages of programs and libraries that this process has mapped, and does not need any more.

Covers: handing back what is as it is in its file.
Does not cover: when (``cli.run``), memory that the process has made (glibc's, the interpreter's).

A start runs most of each library once. What is handed back stays in the kernel's page cache, and
is mapped again where it is touched again.

Rules:
1. A mapping of which one page is our own (the table of addresses that the loader fills in, a
   tracer's breakpoint) stays whole: that page is in no file.
2. Where nothing is resident nothing is handed back: an emulator says so, and counts no pages.
3. A file that is only read, as the loader reads its cache, may be gone again when we come to its
   addresses, and they somebody else's. What is executed stays where it is.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

from koordlet.host.process import libc

#: MADV_DONTNEED of madvise(2).
_NOT_NEEDED = 4
_MAPS = "/proc/self/smaps"
#: A private mapping that nobody writes to; its first line has an address, the file is the sixth.
_EXECUTED = "r-xp"
_READ_ONLY = ("r--p", _EXECUTED)
_FILE = 5
#: What a mapping has of our own, in memory or swapped out, and the line that ends its part.
_OWN, _LAST = ("Anonymous:", "Swap:"), "VmFlags:"
_COUNTED = ("Rss:", *_OWN)


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
    """Start and end of each mapping of a program or library that is all as it is in its file."""
    clean: list[tuple[str, int, int]] = []
    programs: set[str] = set()
    span = None
    for line in smaps:
        first, *words = line.split(None, _FILE)
        if not first.endswith(":"):
            file, (start, _, end) = words[-1], first.partition("-")
            if words[0] == _EXECUTED:
                programs.add(file)
            of_file = file.startswith("/") and words[0] in _READ_ONLY
            span = (file, int(start, 16), int(end, 16)) if of_file else None
        elif (first in _OWN) == (words[0] != "0") and first in _COUNTED:
            span = None
        elif first == _LAST and span is not None:
            clean.append(span)
    return [(start, end) for file, start, end in clean if file in programs]
