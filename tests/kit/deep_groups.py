"""Groups nested deeper than calls can be."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

#: Python nests a thousand calls.
DEPTH = 1200


@contextlib.contextmanager
def nested(top: Path) -> Iterator[Path]:
    """The innermost of very many groups below a directory that is there.

    They are removed at the end: pytest's own removal nests calls, and would fail in a later run.
    """
    deep = top
    try:
        for _ in range(DEPTH):
            deep /= "n"
            deep.mkdir()
            (deep / "cgroup.procs").touch()
        yield deep
    finally:
        while deep != top:
            (deep / "cgroup.procs").unlink()
            deep.rmdir()
            deep = deep.parent
