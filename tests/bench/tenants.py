"""Processes that live in the groups of a benchmark, so that its counters move as on a real node.

Covers: one process in each group, all of which run and take or give back memory between two
measurements. Does not cover: the groups (``reading.node``), real load (``tests.bench.colocation``).

A group in which nobody runs says the same at every tick, which is cheaper for the kernel and for
whoever reads; and between two ticks a real node does something else, so nothing is in the caches.
"""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

#: Returns when every process has run.
Beat = Callable[[], None]

_SOURCE = Path(__file__).with_suffix(".c")


@contextlib.contextmanager
def living(hierarchies: Sequence[str], groups: Sequence[str]) -> Iterator[Beat]:
    """A process in each of these groups of all hierarchies, gone at the end."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "tenants"
        subprocess.run(["gcc", "-O2", "-static", "-o", program, _SOURCE], check=True)
        words = [str(program), ":".join(hierarchies)]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert process.stdin is not None
        assert process.stdout is not None
        asked, heard = process.stdin, process.stdout

        def say(text: bytes) -> None:
            asked.write(text)
            if heard.read(1) != b"\0":
                msg = f"the processes of {len(groups)} groups ended, status {process.wait()}"
                raise OSError(msg)

        try:
            say("".join(f"{group}\n" for group in (*groups, "")).encode())
            yield lambda: say(b"\n")
        finally:
            asked.close()
            process.wait()
