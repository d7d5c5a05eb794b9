"""What was learned and measured of workloads survives a restart: saved, and taken back at start.

Covers: when what is saved, words about damage. Does not cover: the models
(``history.expectation``), the samples (``history.past``), the files (``state.checkpoint``).

A part of the models is saved every 40 ticks, so all of them about every ten minutes, and no tick
writes much. Samples are saved when the agent ends: a megabyte at 500 containers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from koordlet.history import expectation, past, series
from koordlet.host import machine
from koordlet.state import checkpoint

#: Ticks between two parts.
_PAUSE = 40
_SAMPLES = "samples"


class Memory:
    """The models and samples of one agent on disk."""

    def __init__(
        self,
        known: series.History,
        files: checkpoint.Checkpoints,
        clock: Callable[[], machine.Now],
    ) -> None:
        self._known, self._models = known, known.expectation
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
        body, problem = self._files.load(_SAMPLES, past.SCHEMA)
        try:
            if body is not None:
                past.revive(self._known, body, now.suspended, now.at)
        except (ValueError, TypeError, OverflowError) as error:
            problem = f"{_SAMPLES}: {error}"
        return [*problems, problem] if problem else problems

    def close(self) -> None:
        """Save the samples for whoever comes next."""
        kept = past.keep(self._known, self._clock().suspended)
        self._files.save(_SAMPLES, past.SCHEMA, kept)
        self._files.flush()

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
