"""Has a configuration validated by a process of its own, which takes its memory along when it ends.

Covers: asking a process, asking ourselves, taking the answer.
Does not cover: question and answer (``parcel``), answering (``answering``), when to ask
(``reloader``, ``cli.run``).

Rules:
1. Only a start waits for an answer. The loop looks whether there is one.
2. The other process is told the text of the file, not its name: one reading is judged, and it is
   ours. Question and answer are files in memory (memfd_create(2)): unlike a pipe they are never
   full.
3. Where no process can be had, or it ends without an answer, the same is done here: that costs
   memory, and not the configuration.
"""

from __future__ import annotations

import os
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
from koordlet.config import answering
answering.main()
"""


class Examination(Protocol):
    """A question that was asked."""

    def answer(self, *, wait: bool = False) -> parcel.Answer | None:
        """What it came to; ``None``: not yet. Asked for once more after that, it says nonsense."""

    def cancel(self) -> None:
        """Nobody wants to know any more."""


Ask = Callable[[parcel.Question], Examination]


def load(
    path: str | None, env: Mapping[str, str], flags: Mapping[str, object]
) -> sourced.Effective:
    """As ``loader.load``, by a process of its own."""
    text, where = file_source.configured(path)
    found = apart(parcel.Question(text=text, path=where, env=env, flags=flags)).answer(wait=True)
    if isinstance(found, sourced.Effective):
        return found
    raise found or errors.BugError("whoever waits has an answer", culprit=where)


def here(question: parcel.Question) -> Examination:
    """Answered by this process."""
    return _Here(question)


def apart(question: parcel.Question, program: str = _PROGRAM) -> Examination:
    """Answered by another process; by this one where there is none to be had (rule 3)."""
    try:
        return _Apart(question, program)
    except OSError:
        return _Here(question)


def _memory(name: str) -> IO[bytes]:
    return os.fdopen(os.memfd_create(f"koordlet-{name}"), "r+b", buffering=0)


class _Here:
    def __init__(self, question: parcel.Question) -> None:
        self._question = question

    def answer(self, *, wait: bool = False) -> parcel.Answer | None:
        del wait  # it takes what it takes
        from koordlet.config import answering  # noqa: PLC0415 -- what an agent does without

        return answering.answer(self._question)

    def cancel(self) -> None:
        """There is nothing to end."""


class _Apart:
    """One process, one question."""

    def __init__(self, question: parcel.Question, program: str) -> None:
        self._question = question
        self._until = time.monotonic() + PATIENCE
        home = str(Path(koordlet.__file__).absolute().parent.parent)
        places = [home, *(one for one in sys.path if one and one != home)]
        words = [sys.executable, *_OPTIONS, program, *places]
        with _memory("question") as asked:
            os.pwrite(asked.fileno(), parcel.of_question(question), 0)
            self._answer = _memory("answer")
            try:
                self._process = subprocess.Popen(words, stdin=asked, stdout=self._answer)
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
            said = file.read()
        try:
            if status == 0:
                return parcel.answer(said, self._question)
        except (ValueError, LookupError, TypeError):
            pass  # rule 3
        return here(self._question).answer()

    def cancel(self) -> None:
        self._process.kill()
        self._process.wait()
        self._answer.close()
