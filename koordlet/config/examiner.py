"""Has a configuration validated by a process of its own, which takes its memory along when it ends.

Covers: asking a process, asking ourselves, taking the answer.
Does not cover: question and answer (``parcel``), answering (``loader``), when to ask
(``reloader``, ``cli.run``).

Rules:
1. Only a start waits for an answer. The loop looks whether there is one.
2. The other process is told the text of the file, not its name: one reading is judged, and it is
   ours. Question and answer are files in memory (memfd_create(2)): unlike a pipe they are never
   full.
3. A start has one thread, and forks: the copy has half of what it needs. Later there are threads,
   of which a copy would have the locks and not the threads, so a fresh interpreter is started.
4. Where no process can be had, or it ends without an answer, the same is done here: that costs
   memory, and not the configuration.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Protocol

import koordlet
from koordlet.config import file_source, parcel, sourced
from koordlet.model import errors

#: Seconds; an answer takes a fifth of one.
PATIENCE = 30.0

#: With the places of modules that we have, and without looking for more of them.
_OPTIONS = ("-S", "-P", "-c")
_PROGRAM = """\
import sys
sys.path[:] = sys.argv[1:]
from koordlet.config import loader
loader.main()
"""


class Process(Protocol):
    """A process that answers questions."""

    def wait(self, timeout: float | None = None) -> int:
        """Exit status; ``TimeoutExpired`` while the process runs."""

    def kill(self) -> None:
        """End it."""


class Examination(Protocol):
    """A question that was asked."""

    def answer(self, *, wait: bool = False) -> parcel.Answer | None:
        """Answer of the process, returned once; ``None`` before it is ready."""

    def cancel(self) -> None:
        """Cancel the question."""


Ask = Callable[[parcel.Question], Examination]
Make = Callable[[parcel.Question, IO[bytes]], Process]


def load(
    path: str | None, env: Mapping[str, str], flags: Mapping[str, object]
) -> sourced.Effective:
    """Load like ``loader.load``, in another process."""
    return answered(question(path, env, flags))


def question(
    path: str | None, env: Mapping[str, str], flags: Mapping[str, object]
) -> parcel.Question:
    """Ask about the file of now; ``ConfigError`` where it cannot be read."""
    text, where = file_source.configured(path)
    return parcel.Question(text=text, path=where, env=env, flags=flags)


def answered(question: parcel.Question) -> sourced.Effective:
    """Wait for the answer of another process; ``ConfigError`` where it refuses."""
    answer = apart(question).answer(wait=True)
    if isinstance(answer, sourced.Effective):
        return answer
    raise answer or errors.BugError("no answer although it was waited for", culprit=question.path)


def here(question: parcel.Question) -> Examination:
    """Answered by this process."""
    return _Here(question)


def apart(question: parcel.Question) -> Examination:
    """Answer in another process, or in this one if none can be started (rule 4)."""
    return by(_fork if _alone() else started, question)


def by(make: Make, question: parcel.Question) -> Examination:
    """Answered by a process that ``make`` makes (``_fork``, ``started``), else here (rule 4)."""
    try:
        return _Apart(question, make)
    except OSError:
        return _Here(question)


def _alone() -> bool:
    """True if this process has a single thread."""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


def _answered(question: parcel.Question) -> parcel.Answer:
    """Answer in this process, which keeps the models in memory from then on."""
    from koordlet.config import loader  # noqa: PLC0415 -- they are what this module keeps out

    return loader.answer(question)


def _fork(question: parcel.Question, answer: IO[bytes]) -> Process:
    pid = os.fork()
    if pid:
        return _Forked(pid)
    status = 1
    try:
        gc.disable()
        answer.write(parcel.of_answer(_answered(question)))
        status = 0
    finally:
        # Nothing of the parent's is flushed, closed or told by its copy.
        os._exit(status)


def started(
    question: parcel.Question, answer: IO[bytes], program: str = _PROGRAM
) -> subprocess.Popen[bytes]:
    """A fresh interpreter."""
    home = str(Path(koordlet.__file__).absolute().parent.parent)
    places = [home, *(path for path in sys.path if path and path != home)]
    words = [sys.executable, *_OPTIONS, program, *places]
    with _memory("question") as asked:
        os.pwrite(asked.fileno(), parcel.of_question(question), 0)
        return subprocess.Popen(words, stdin=asked, stdout=answer)


class _Forked:
    """A copy of this process, with the methods of ``subprocess.Popen`` that are needed."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        #: Once it has ended; its number may be somebody else's then.
        self._status: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        if self._status is None:
            self._status = self._waited(timeout)
        return self._status

    def _waited(self, timeout: float | None) -> int:
        # Who waits does so for as long as it would take here.
        try:
            pid, status = os.waitpid(self._pid, os.WNOHANG if timeout == 0 else 0)
        except ChildProcessError:
            return 0  # SIGCHLD is ignored (waitpid(2)): it has ended, and nobody knows how
        if pid == 0:
            raise subprocess.TimeoutExpired("fork", 0.0)
        return os.waitstatus_to_exitcode(status)

    def kill(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        if self._status is None:
            os.kill(self._pid, signal.SIGKILL)


def _memory(name: str) -> IO[bytes]:
    return os.fdopen(os.memfd_create(f"koordlet-{name}"), "r+b", buffering=0)


class _Here:
    def __init__(self, question: parcel.Question) -> None:
        self._question = question

    def answer(self, *, wait: bool = False) -> parcel.Answer | None:
        del wait  # it takes what it takes
        return _answered(self._question)

    def cancel(self) -> None:
        """There is nothing to end."""


class _Apart:
    """One process, one question."""

    def __init__(self, question: parcel.Question, make: Make) -> None:
        self._question = question
        self._until = time.monotonic() + PATIENCE
        self._answer = _memory("answer")
        try:
            self._process = make(question, self._answer)
        except OSError:
            self._answer.close()
            raise

    def answer(self, *, wait: bool = False) -> parcel.Answer | None:
        try:
            status = self._process.wait(max(0.0, self._until - time.monotonic()) if wait else 0)
        except subprocess.TimeoutExpired:
            if time.monotonic() < self._until:
                return None
            self._process.kill()
            status = self._process.wait()
        with self._answer as file:
            file.seek(0)
            answer = file.read()
        try:
            if status == 0:
                return parcel.answer(answer, self._question)
        except (ValueError, LookupError, TypeError):
            pass  # rule 4
        return _answered(self._question)

    def cancel(self) -> None:
        self._process.kill()
        self._process.wait()
        self._answer.close()
