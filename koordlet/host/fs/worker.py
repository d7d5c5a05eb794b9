"""One thread for what may block, so that the loop never does.

Covers: the queue, its bound, the wait for an answer, what is stuck.
Does not cover: what is done there (``apply.perform``), what follows from it (``apply.executor``).

Rules:
1. One item at a time, in the order of their coming: orders that hold for writes hold here too.
2. The loop waits for an answer no longer than it says. What is not done by then goes on, and its
   answer is collected in a later pass.
3. An item beyond its deadline is stuck: ``Stale``, a value, shown. A thread that the kernel holds
   cannot be ended, so whatever comes behind it is turned away until it is back.
4. On a machine in memory nothing blocks, and items are done in place. Where no thread is to be had
   they are, too: late is better than never, above all when everything is put back.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from koordlet.host.process import threads
from koordlet.model import absence
from koordlet.model.record import dataclass

#: Seconds after which an item is stuck.
DEADLINE = 25.0
#: More than a plan has groups would only be stale when its turn comes.
CAPACITY = 1024

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """Result of an item: a value, or an exception."""

    value: T | None = None
    error: BaseException | None = None

    def get(self) -> T:
        """The value, or the error raised here."""
        if self.error is not None:
            raise self.error
        if self.value is None:
            raise ValueError("an item without an answer")
        return self.value


class Worker(Generic[T]):
    """Does items one after the other in a thread of its own, which starts with the first."""

    def __init__(
        self, *, inline: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._inline = inline
        self._clock = clock
        self._change = threading.Condition()
        self._queue: deque[tuple[str, Callable[[], T]]] = deque()
        self._answers: dict[str, Answer[T]] = {}
        self._running: tuple[str, float] | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, key: str, call: Callable[[], T]) -> bool:
        """Take an item; ``False`` where it must come again later."""
        if self._inline or not self._started():
            self._answers[key] = _answer(call)
            return True
        with self._change:
            if len(self._queue) >= CAPACITY or self._stuck() is not None:
                return False
            self._queue.append((key, call))
            self._change.notify_all()
        return True

    def _started(self) -> bool:
        """True if the thread runs."""
        if self._thread is None:
            thread = threading.Thread(target=self._work, name="may-block", daemon=True)
            try:
                threads.start(thread)
            except OSError:
                return False
            self._thread = thread
        return True

    def wait(self, key: str, seconds: float) -> Answer[T] | None:
        """The answer, if it comes within so many seconds; then it is not collected again."""
        with self._change:
            self._change.wait_for(lambda: key in self._answers, max(0.0, seconds))
            return self._answers.pop(key, None)

    def collect(self) -> dict[str, Answer[T]]:
        """Late answers, after their callers stopped waiting."""
        with self._change:
            answers, self._answers = self._answers, {}
        return answers

    def stale(self) -> absence.Stale | None:
        """Description of a stuck item, if any."""
        with self._change:
            return self._stuck()

    def drain(self, seconds: float) -> bool:
        """Wait until nothing is left to do; ``False`` where that takes longer."""
        with self._change:
            return self._change.wait_for(lambda: not self._queue and not self._running, seconds)

    def close(self) -> None:
        """No more items come; the thread ends after those that are there."""
        with self._change:
            self._closed = True
            self._change.notify_all()

    def _stuck(self) -> absence.Stale | None:
        if self._running is None:
            return None
        key, since = self._running
        seconds = self._clock() - since
        if seconds < DEADLINE:
            return None
        return absence.Stale(item=key, seconds=seconds, waiting=len(self._queue))

    def _work(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._queue or self._closed)
                if not self._queue:
                    return
                key, call = self._queue.popleft()
                self._running = (key, self._clock())
            answer = _answer(call)
            with self._change:
                self._answers[key] = answer
                self._running = None
                self._change.notify_all()


def _answer(call: Callable[[], T]) -> Answer[T]:
    try:
        return Answer(value=call())
    except BaseException as error:  # noqa: BLE001 -- it is raised where the answer is taken
        return Answer(error=error)
