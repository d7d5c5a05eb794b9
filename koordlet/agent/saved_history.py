"""Saves models, samples and strategies, so that they survive a restart.

Covers: when each is saved, reports of damage. Does not cover: the models
(``history.expectation``), the samples (``history.past``), the last valid strategies
(``workloads.strategy_holding``), the files (``state.checkpoint``).

A part of the models is saved every 40 ticks: all of them about every ten minutes, and no tick
writes much. Samples are saved when the agent ends: a megabyte at 500 containers. Strategies are
saved when they change.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping

from koordlet import log
from koordlet.history import expectation, past, series
from koordlet.host import machine
from koordlet.state import checkpoint

if typing.TYPE_CHECKING:
    from koordlet.workloads import gatherer, strategy_holding

#: Ticks between two parts.
_PAUSE = 40
_SAMPLES = "samples"
_STRATEGIES = "strategies"
#: Version of ``strategy_holding.Kept``.
_SCHEMA = 1


class SavedHistory:
    """The models, samples and strategies of one agent on disk."""

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
        self._sources: gatherer.Gatherer | None = None
        #: The strategies of the last tick, and their form in the checkpoint once they changed.
        self._held: strategy_holding.HeldStrategies | None = None
        self._kept: strategy_holding.KeptStrategies | None = None

    def revive(self) -> list[str]:
        """Load what was saved; return why parts of it were discarded."""
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

    def follow(self, sources: gatherer.Gatherer) -> list[str]:
        """Hand the saved strategies to the sources, and save theirs from now on.

        Returns why saved ones were discarded. Strategies are the node's: they outlive a boot.
        """
        from koordlet.workloads import strategy_holding  # noqa: PLC0415 -- in a cluster

        held, problem = self._files.revive(
            _STRATEGIES, _SCHEMA, strategy_holding.revive, any_boot=True
        )
        held = held or strategy_holding.HeldStrategies()
        sources.hold(held)
        self._sources, self._held = sources, held
        return [problem] if problem else []

    def close(self) -> None:
        """Save the samples for the next agent."""
        kept = past.keep(self._known, self._clock().suspended)
        self._files.save(_SAMPLES, past.SCHEMA, kept)
        self._files.flush()

    def tick(self) -> None:
        """Save strategies that changed, and the part whose turn it is."""
        self._save_strategies()
        self._ticks += 1
        if self._ticks % _PAUSE:
            return
        number = self._ticks // _PAUSE % expectation.PARTS
        now = self._clock()
        part = self._models.part(number, now.at + now.suspended, now.wall)
        if part.models or self._files.known(_name(number)):
            self._files.save(_name(number), expectation.SCHEMA, part)
            self._files.flush()

    def _save_strategies(self) -> None:
        held, before = None if self._sources is None else self._sources.held(), self._held
        # Not by value: words of any depth would be compared at each tick.
        if (
            held is not None
            and before is not None
            and (held.cluster is not before.cluster or held.node is not before.node)
        ):
            self._held, self._kept = held, _kept(held)
        if self._kept is not None:
            # At each tick, so that what the disk refused is written later.
            self._files.save(_STRATEGIES, _SCHEMA, self._kept)


def _kept(held: strategy_holding.HeldStrategies) -> strategy_holding.KeptStrategies:
    from koordlet.workloads import strategy_holding  # noqa: PLC0415 -- in a cluster

    try:
        return strategy_holding.kept(held)
    except ValueError as error:
        log.get().warning("checkpoint.not_taken", policy=_STRATEGIES, detail=str(error))
        return strategy_holding.KeptStrategies()


def _name(number: int) -> str:
    return f"expectation-{number:02}"
