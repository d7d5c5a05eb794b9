"""What an agent asks of the container runtime's adapter.

Covers: the methods that it must have. Does not cover: choosing it (``bootstrap``), using it
(``lifecycle``, ``loop``), the adapter (``nri.adapter``).
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

if typing.TYPE_CHECKING:
    from koordlet.model import decision, result


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
