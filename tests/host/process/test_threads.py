"""Whether threads are to be had."""

from __future__ import annotations

import errno
import threading

import pytest

from koordlet.host.process import threads
from koordlet.model import errors


class Few:
    """A system that gives so many threads at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
        self._before = threading.active_count()
        self._most = most
        self._start = threading.Thread.start

        def begin(thread: threading.Thread) -> None:
            if threading.active_count() - self._before >= self._most:
                raise RuntimeError("can't start new thread")
            self._start(thread)

        monkeypatch.setattr(threading.Thread, "start", begin)


def test_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many at once, and none of them is left."""
    Few(monkeypatch, 5)
    before = threading.active_count()
    threads.ensure(5, "it")
    assert before == threading.active_count()
    with pytest.raises(errors.HostError) as failed:
        threads.ensure(7, "it")
    assert failed.value.message == "it needs 7 threads, but only 5 can be started"
    assert ("raise the limit by 2" in failed.value.fix, "pids.max" in failed.value.culprit) == (
        True,
        True,
    )
    assert before == threading.active_count()


def test_none_is_an_errno(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kernel answers, as from any call of the system."""
    Few(monkeypatch, 0)
    with pytest.raises(OSError, match=r"pids\.max") as failed:
        threads.start(threading.Thread())
    assert failed.value.errno == errno.EAGAIN
