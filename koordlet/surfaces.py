"""What others look at: HTTP and gRPC, started after the first verified pass.

Covers: starting, feeding and stopping them. Does not cover: what they serve (``report``, ``http``,
``rpc``).

Rules:
1. A surface that cannot start costs only itself: it is said, health shows it, the others come up.
2. Their libraries are loaded here, not before: protecting workloads does not wait for them.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from pathlib import Path

import koordlet
from koordlet import log
from koordlet.config import schema
from koordlet.model import errors
from koordlet.report import view
from koordlet.state import paths

if typing.TYPE_CHECKING:
    from koordlet.http import channels
    from koordlet.http import server as http_server
    from koordlet.rpc import agent as rpc_agent

Current = Callable[[], view.View | None]


class Surfaces:
    """The configured surfaces of one agent."""

    def __init__(self, config: schema.Report, where: paths.Paths) -> None:
        self._config = config
        self._paths = where
        self._http: http_server.Server | None = None
        self._rpc: rpc_agent.Agent | None = None
        self._channel: channels.Channel | None = None
        #: Surface to why it is not there; shown by the health endpoints.
        self.problems: Mapping[str, str] = {}

    async def start(self, current: Current) -> tuple[str, ...]:
        """Come up one after the other; the addresses, for people."""
        addresses = []
        if self._config.http.enabled:
            addresses.append(await self._guard("http", self._start_http(current)))
        if self._config.grpc.enabled:
            addresses.append(await self._guard("grpc", self._start_rpc()))
        return tuple(address for address in addresses if address)

    def publish(self, now: view.View | None) -> None:
        """There is a new view. HTTP asks for it itself, unless somebody looks at the console."""
        if self._channel is not None:
            self._channel.publish()
        if self._rpc is not None and now is not None:
            self._rpc.publish(now)

    async def stop(self) -> None:
        """Go away, letting running answers end."""
        if self._http is not None:
            await self._http.stop()
        if self._rpc is not None:
            await self._rpc.stop()

    async def _guard(self, name: str, starting: typing.Awaitable[str]) -> str:
        try:
            return await starting
        except errors.KoordletError as error:
            self.problems = {**self.problems, name: str(error)}
            log.get().error(f"surface.{name}_failed", detail=str(error))
            return ""

    async def _start_http(self, current: Current) -> str:
        from koordlet.http import server  # noqa: PLC0415 -- rule 2
        from koordlet.report import http_api  # noqa: PLC0415 -- rule 2

        api = http_api.Api(
            current,
            version=koordlet.__version__,
            audit=self._paths.audit,
            with_metrics=self._config.metrics.enabled,
            surfaces=self._counts,
        )
        one = server.Server(self._config.http.address, api.routes())
        bound = await one.start()
        self._http, self._channel = one, api.channel
        return f"http://{bound}/"

    async def _start_rpc(self) -> str:
        from koordlet.rpc import agent  # noqa: PLC0415 -- rule 2

        socket = self._config.grpc.socket
        one = agent.Agent(Path(socket) if socket else self._paths.socket, koordlet.__version__)
        address = await one.start()
        self._rpc = one
        return address

    def _counts(self) -> Mapping[tuple[str, str], int]:
        """(surface, event) to how often, for metrics."""
        found: dict[tuple[str, str], int] = {}
        for name, one in (("http", self._http), ("grpc", self._rpc)):
            if one is not None:
                found.update(((name, event), count) for event, count in one.counts.items())
        return found
