"""The neighbours of one agent, chosen once by ``bootstrap`` and immutable from then on.

Covers: what an agent asks of the sources of workloads, the container runtime and the evictor.
Does not cover: choosing them (``bootstrap``), using them (``lifecycle``, ``loop``).

Rule: no code assigns to an attribute of another object; ``make wiring`` checks it. A neighbour that
needs the agent is made by a function that gets the agent.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from koordlet.model.record import dataclass

if typing.TYPE_CHECKING:
    from koordlet.agent import lifecycle, tick
    from koordlet.apply import evictor
    from koordlet.kubeapi import objects
    from koordlet.model import decision, observed, result, spread


class Strategies(Protocol):
    """Holds the last valid strategies of the cluster."""

    def hold(self, words: Mapping[str, object] | None) -> None:
        """Take the strategies of an earlier agent, for use until newer ones can be read."""

    def held(self) -> Mapping[str, object] | None:
        """Return the strategies in use; ``None`` without any."""


class Sources(Strategies, Protocol):
    """The sources of workloads, asked in the background."""

    #: The store of API objects; ``None`` without an API server.
    store: objects.Objects | None
    #: Neither a kubelet nor an API server says which pods run here.
    alone: bool

    async def start(self, patience: float) -> None:
        """Begin to ask, and wait at most so long for the first answers."""

    def take(self) -> observed.Observed:
        """Return the newest answers."""

    def took(self) -> Mapping[tuple[str, str], spread.Spread]:
        """Return how long the kubelet took to answer, by path and status."""

    async def stop(self) -> None:
        """Cease to ask."""


class Runtime(Protocol):
    """The container runtime, which asks about containers before they start."""

    async def start(self, run_pass: Callable[[], bool]) -> None:
        """Connect; ``run_pass`` runs one pass and returns whether it changed anything."""

    def open(self) -> None:
        """Begin to answer: the first pass is over."""

    def on_pass(self) -> None:
        """Do what is due after each pass."""

    def on_results(self, results: Sequence[result.Result]) -> None:
        """Take the results of a plan that was carried out."""

    def reset(self) -> None:
        """Forget failures, as the operator asked."""

    def close(self) -> None:
        """Cease to answer: everything is about to be put back."""

    async def stop(self) -> None:
        """Disconnect."""

    def conditions(self) -> tuple[decision.Condition, ...]:
        """Return what an operator should know of it."""

    def counted(self) -> Mapping[str, float]:
        """Return its counters, for metrics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """What one agent is connected to. A command that runs once is connected to nothing."""

    sources: Sources | None = None
    runtime: Callable[[lifecycle.Agent], Runtime] | None = None
    #: Makes the evictor; without one, evictions wait.
    evictor: Callable[[tick.Tick, evictor.Report], evictor.Evictor] | None = None
