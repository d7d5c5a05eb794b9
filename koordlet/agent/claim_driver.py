"""What an agent asks of its driver of resource claims.

Covers: the methods that it must have, and making it late. Does not cover: choosing it
(``bootstrap``), using it (``lifecycle``, ``loop``), the driver (``dra_driver``).
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


class LateDriver:
    """Makes the driver when it has something to do: without claims its code is never loaded."""

    def __init__(
        self, wanted: Callable[[], bool], make: Callable[[], ClaimDriver], *, at_once: bool
    ) -> None:
        """``at_once``: there may be claims of an agent before this one."""
        self._wanted, self._make = wanted, make
        self._run_pass: Callable[[], bool] = lambda: False
        self._driver = make() if at_once or wanted() else None

    def start(self, run_pass: Callable[[], bool]) -> None:
        """Begin: the first pass is over."""
        self._run_pass = run_pass
        if self._driver is not None:
            self._driver.start(run_pass)

    def on_pass(self) -> None:
        """Make the driver once its policy is switched on, and do what is due after each pass."""
        if self._driver is None and self._wanted():
            self._driver = self._make()
            self._driver.start(self._run_pass)
        if self._driver is not None:
            self._driver.on_pass()

    async def stop(self) -> None:
        """Serve the kubelet no longer."""
        if self._driver is not None:
            await self._driver.stop()

    def conditions(self) -> tuple[decision.Condition, ...]:
        """Return what an operator should know of it."""
        return () if self._driver is None else self._driver.conditions()

    def counted(self) -> Mapping[str, float]:
        """Return its counters; none before there is a driver."""
        return {} if self._driver is None else self._driver.counted()
