"""What an agent asks of its driver of resource claims.

Covers: the methods that it must have. Does not cover: choosing it (``bootstrap``), using it
(``lifecycle``, ``loop``), the driver (``dra_driver``).
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from typing import Protocol

if typing.TYPE_CHECKING:
    from koordlet.model import decision


class ClaimDriver(Protocol):
    """The driver, which the kubelet asks to prepare claims."""

    def start(self, run_pass: Callable[[], bool]) -> None:
        """Begin: the first pass is over. ``run_pass`` runs one now; whether it changed anything."""

    def on_pass(self) -> None:
        """Do what is due after each pass."""

    async def stop(self) -> None:
        """Serve the kubelet no longer."""

    def conditions(self) -> tuple[decision.Condition, ...]:
        """Return what an operator should know of it."""

    def counted(self) -> Mapping[str, float]:
        """Return its counters, for metrics."""
