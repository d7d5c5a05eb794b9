"""Threads run out like anything else: a bound of the cgroup (``pids.max``), the unit, the user.

Covers: starting one, knowing beforehand whether several can be had.
Does not cover: what does without (whoever asks).

Python says ``RuntimeError`` then; a library in C may end the process, as gRPC does (abort(3)) after
limits were written. So what needs such a library looks first, and does without it in words.
"""

from __future__ import annotations

import errno
import threading

from koordlet.model import errors

_BOUNDS = "pids.max of the cgroup (TasksMax= of a unit), or ulimit -u"


def start(thread: threading.Thread) -> None:
    """Start a thread; ``OSError`` where none is to be had."""
    try:
        thread.start()
    except RuntimeError as error:
        raise OSError(errno.EAGAIN, f"cannot start a thread: raise {_BOUNDS}") from error


def ensure(number: int, who: str) -> None:
    """``HostError`` unless so many threads more can be had at once: they are started, and end."""
    over = threading.Event()
    held: list[threading.Thread] = []
    try:
        for _ in range(number):
            thread = threading.Thread(target=over.wait, name="room", daemon=True)
            start(thread)
            held.append(thread)
    except OSError as error:
        raise errors.HostError(
            f"{who} needs {number} threads, but only {len(held)} can be started",
            culprit=_BOUNDS,
            fix=f"raise the limit by {number - len(held)}, or switch off the feature",
            errno=error.errno,
        ) from error
    finally:
        over.set()
        for thread in held:
            thread.join()
