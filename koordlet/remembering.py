"""What was learned about workloads survives a restart: saved in parts, taken back at start.

Covers: when which part is saved, words about damage. Does not cover: the models
(``history.expectation``), the files (``state.checkpoint``).

A part is saved every 40 ticks, so all of them about every ten minutes, and no tick writes much.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from koordlet.history import expectation
from koordlet.host import machine
from koordlet.state import checkpoint

#: Ticks between two parts.
_PAUSE = 40


class Memory:
    """The models of one agent on disk."""

    def __init__(
        self,
        models: expectation.Expectation,
        files: checkpoint.Checkpoints,
        clock: Callable[[], machine.Now],
    ) -> None:
        self._models = models
        self._files = files
        self._clock = clock
        self._ticks = 0

    def revive(self) -> list[str]:
        """Take back what was saved; why parts were discarded."""
        now = self._clock()
        problems = []

        def take(body: Mapping[str, object]) -> None:
            self._models.revive(body, now.at + now.suspended, now.wall)

        for number in range(expectation.PARTS):
            name = _name(number)
            _, problem = self._files.revive(name, expectation.SCHEMA, take, any_boot=True)
            if problem:
                problems.append(problem)
        return problems

    def tick(self) -> None:
        """Save the part whose turn it is."""
        self._ticks += 1
        if self._ticks % _PAUSE:
            return
        number = self._ticks // _PAUSE % expectation.PARTS
        now = self._clock()
        part = self._models.part(number, now.at + now.suspended, now.wall)
        if part.models or self._files.known(_name(number)):
            self._files.save(_name(number), expectation.SCHEMA, part)
            self._files.flush()


def _name(number: int) -> str:
    return f"expectation-{number:02}"
