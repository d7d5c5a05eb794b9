"""What an agent asks of its neighbours: the sources of workloads and the container runtime.

Covers: the methods that each must have. Does not cover: choosing them (``bootstrap``), using them
(``lifecycle``, ``loop``).
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

if typing.TYPE_CHECKING:
    from koordlet.kubeapi import objects
    from koordlet.model import decision, observed, result, spread
    from koordlet.workloads import strategy_holding


class Strategies(Protocol):
    """Holds the last valid strategies of cluster and node."""

    def hold(self, held: strategy_holding.HeldStrategies) -> None:
        """Take the strategies of an earlier agent, for use until newer ones can be read."""

    def held(self) -> strategy_holding.HeldStrategies:
        """Return the strategies in use."""


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
