"""Checks for free threads before gRPC starts: its core aborts the process without them."""

from __future__ import annotations

import os

from koordlet.host.process import threads

#: Its pool has one for each CPU, at least four and at most sixteen; beside it there are a watcher
#: of the pool, a timer and a poller. Three more, because ours come and go meanwhile.
_POOL = (4, 16)
_BESIDE = 3
_SPARE = 3


def check() -> None:
    """``HostError`` where it may not. Once it has begun it does with the threads that it has."""
    least, most = _POOL
    pool = max(least, min(most, os.cpu_count() or most))
    threads.ensure(pool + _BESIDE + _SPARE, "gRPC")
