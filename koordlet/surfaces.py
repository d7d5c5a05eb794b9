"""What others look at: HTTP and gRPC, started after the first verified pass.

Covers: starting, feeding and stopping them; a surface that cannot start costs only itself.
Does not cover: what they serve (``report``, ``http``, ``rpc``).
"""

from __future__ import annotations

from collections.abc import Callable

from koordlet.config import schema
from koordlet.report import view
from koordlet.state import paths


class Surfaces:
    """The configured surfaces of one agent."""

    def __init__(self, config: schema.Report, where: paths.Paths) -> None:
        self._config = config
        self._paths = where

    async def start(self, current: Callable[[], view.View | None]) -> tuple[str, ...]:
        """Come up one after the other; the addresses, for people."""
        return ()

    def publish(self, now: view.View | None) -> None:
        """There is a new view."""

    async def stop(self) -> None:
        """Go away."""
