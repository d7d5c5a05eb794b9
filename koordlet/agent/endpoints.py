"""Serves the agent's view over HTTP and gRPC, and writes objects to the API server.

Covers: starting, feeding and stopping these endpoints, after the first verified pass.
Does not cover: what they serve (``report``, ``http``, ``rpc``).

Rules:
1. An endpoint that cannot start costs only itself: its error is logged and shown by health, and the
   others start.
2. Their libraries are loaded here, not before: protecting workloads does not wait for them.
"""

from __future__ import annotations

import asyncio
import errno
import time
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import koordlet
from koordlet import log
from koordlet.history import series
from koordlet.model import errors
from koordlet.model.record import dataclass
from koordlet.report import view
from koordlet.state import paths

if typing.TYPE_CHECKING:
    from koordlet.config import report_sections, schema
    from koordlet.kubeapi import objects
    from koordlet.report import http_api, recorder, writing
    from koordlet.rpc import tls as grpc_tls

Current = Callable[[], view.ReportView | None]

#: Seconds for the API server to take the last write.
_PATIENCE = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The API server that objects are written to."""

    store: objects.Objects
    #: Whether objects are written where the configuration leaves it open.
    by_default: bool


class Endpoint(Protocol):
    """One that runs."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Events to how often, for metrics."""

    async def stop(self) -> None:
        """Stop after the running answers."""


class Endpoints:
    """The configured endpoints of one agent."""

    def __init__(
        self,
        config: schema.Report,
        where: paths.Paths,
        *,
        past: series.History,
        cluster: Cluster | None = None,
        scheduler: str | None = None,
        demo: recorder.Demo | None = None,
        any_port: bool = False,
    ) -> None:
        #: Where the port of the HTTP server is taken, another one will do.
        self._any_port = any_port
        self._demo = demo
        self._config = config
        #: The address of a scheduler for reports, unless the configuration names one.
        self._scheduler = scheduler
        self._paths = where
        self._cluster = cluster
        self._past = past
        #: By name, in the order of their start.
        self._running: dict[str, Endpoint] = {}
        #: Gives the newest view, where objects are written.
        self._current: Current | None = None
        #: Called with each view.
        self._listeners: list[Callable[[view.ReportView], None]] = []
        #: Endpoint to why it could not start; shown by health.
        self.problems: Mapping[str, str] = {}

    async def start(self, current: Current) -> tuple[str, ...]:
        """Start one after the other; return the addresses for people."""
        addresses = []
        if self._config.http.enabled:
            from koordlet.report import http_api, recorder  # noqa: PLC0415 -- rule 2

            recorded = recorder.Recorder(self._past, demo=self._demo)
            self._listeners.append(recorded.publish)
            api = http_api.Api(
                current,
                version=koordlet.__version__,
                audit=self._paths.audit,
                with_metrics=self._config.metrics.enabled,
                without=self._config.metrics.without,
                surfaces=self._counts,
                recorded=recorded,
            )
            addresses.append(await self._guard("http", self._start_http(api)))
            if self._config.http.secure.address is not None:
                addresses.append(await self._guard("https", self._start_https(api)))
        if self._config.grpc.enabled:
            addresses.append(await self._guard("grpc", self._start_rpc()))
        scheduler = self._config.scheduler.address or self._scheduler
        if scheduler is not None:
            self._start_reporting(scheduler)
        if self._cluster is not None:
            self._start_objects(self._cluster, current)
        return tuple(address for address in addresses if address)

    def publish(self, now: view.ReportView | None) -> None:
        """Publish a new view. HTTP reads the view at each request; only the console is pushed."""
        if now is not None:
            for publish in self._listeners:
                publish(now)

    async def stop(self, *, final: bool) -> None:
        """Stop after the running answers. ``final``: no agent follows."""
        for name, endpoint in reversed(self._running.items()):
            await endpoint.stop()
            if name == "objects" and final and self._cluster and self._current is not None:
                await self._withdraw(self._cluster.store, self._current())

    async def _withdraw(self, store: objects.Objects, last: view.ReportView | None) -> None:
        """Withdraw what is written about a node that no agent watches any more."""
        from koordlet.kubeapi import refusals  # noqa: PLC0415 -- rule 2
        from koordlet.report import own_objects, slice_row, tainting  # noqa: PLC0415 -- rule 2

        if last is None:
            return
        name, section = last.snapshot.node.name, self._config.objects
        try:
            async with asyncio.timeout(_PATIENCE):
                await tainting.withdraw(
                    store, name, taints=section.taints is not None, status=section.status
                )
                await own_objects.withdraw(store, name)
                if last.plan.devices is not None:
                    await slice_row.withdraw(store, name)
        except (refusals.ObjectsError, TimeoutError) as error:
            fix = f"koordlet restore; or remove koordlet.io/… from the Node {name} by hand"
            log.get().warning("objects.not_withdrawn", node=name, detail=str(error), fix=fix)

    async def _guard(self, name: str, starting: typing.Awaitable[str]) -> str:
        try:
            return await starting
        except errors.KoordletError as error:
            self.problems = {**self.problems, name: str(error)}
            log.get().error(f"surface.{name}_failed", detail=str(error))
            return ""

    async def _start_http(self, api: http_api.Api) -> str:
        from koordlet.http import server  # noqa: PLC0415 -- rule 2

        address, moved = self._config.http.address, ""
        listener = server.HttpServer(address, api.routes())
        try:
            bound = await listener.start()
        except errors.HostError as taken:
            if not self._any_port or taken.errno != errno.EADDRINUSE:
                raise
            host, _ = server.split(address)
            listener = server.HttpServer(server.join(host, 0), api.routes())
            bound = await listener.start()
            moved = f" (not {address}: {taken.message})"
        self._running["http"] = listener
        self._listeners.append(lambda _: api.channel.publish())
        return f"http://{bound}/{moved}"

    async def _start_https(self, api: http_api.Api) -> str:
        """Serve the same answers to clients that have a token of the cluster."""
        from koordlet.http import certificates, server, tokens  # noqa: PLC0415 -- rule 2

        section = self._config.http.secure
        if section.address is None or section.certificate is None or section.key is None:
            raise errors.BugError("a listener without a certificate", culprit="report.http.secure")
        if self._cluster is None:
            raise errors.ConfigError(
                "there is no API server that could confirm a token",
                culprit="report.http.secure.address",
                fix="set kube.kubeconfig, or leave the address out",
            )
        listener = server.HttpServer(
            section.address,
            api.routes(),
            tokens.TokenAuthorisation(self._cluster.store),
            tls=certificates.context(Path(section.certificate), Path(section.key)),
            setting="report.http.secure.address",
        )
        bound = await listener.start()
        self._running["https"] = listener
        return f"https://{bound}/"

    async def _start_rpc(self) -> str:
        from koordlet.rpc import node_feed, server  # noqa: PLC0415 -- rule 2

        section = self._config.grpc
        listener = node_feed.AgentServer(
            Path(section.socket) if section.socket else self._paths.socket,
            koordlet.__version__,
            remote=server.remote(
                section.address,
                _files(section.tls),
                [(client.name, client.rights) for client in section.clients],
            ),
            past=self._past,
        )
        address = await listener.start()
        self._running["grpc"] = listener
        self._listeners.append(listener.publish)
        return address

    def _start_reporting(self, address: str) -> None:
        from koordlet.rpc import reporting  # noqa: PLC0415 -- rule 2

        section = self._config.scheduler
        reports = reporting.Reporting(
            address,
            koordlet.__version__,
            files=_files(section.tls),
            token=None if section.token is None else Path(section.token),
            past=self._past,
        )
        reports.start()
        self._running["scheduler"] = reports
        self._listeners.append(reports.publish)

    def _start_objects(self, cluster: Cluster, current: Current) -> None:
        section = self._config.objects
        if section.mode == "off" or (section.mode == "auto" and not cluster.by_default):
            return
        from koordlet.report import remarking, rows, slice_row, tainting, writing  # noqa: PLC0415 -- rule 2
        from koordlet.report.objects import topology_object  # noqa: PLC0415 -- rule 2

        manners = rows.ReportTimes(
            available=topology_object.AvailableView(section.available),
            tolerance=section.tolerance_percent / 100,
            resync_seconds=float(section.resync_seconds),
        )
        clock = time.monotonic
        metric = rows.Metric(self._past)
        wanted: tuple[tuple[bool, writing.ObjectRow], ...] = (
            (section.topology, rows.TopologyRow(manners, clock)),
            (section.metric, metric),
            (section.device, rows.DeviceRow(manners, clock)),
            (section.status, rows.StatusRow(manners, clock, metric if section.metric else None)),
            (section.events, remarking.EventObjects(clock)),
            (True, tainting.Taints(section.taints, clock)),
            (True, slice_row.SliceRow(manners, clock)),
        )
        chosen = [row for on, row in wanted if on]
        writers = writing.Writers(cluster.store, chosen, current)
        writers.start()
        self._running["objects"] = writers
        self._current = current

    def _counts(self) -> Mapping[tuple[str, str], int]:
        """Map (endpoint, event) to how often, for metrics."""
        return {
            (name, event): count
            for name, endpoint in self._running.items()
            for event, count in endpoint.counts.items()
        }


def _files(section: report_sections.Tls) -> grpc_tls.TlsFiles | None:
    """List certificate, key, authority."""
    if section.certificate is None or section.key is None or section.authority is None:
        return None
    from koordlet.rpc import tls  # noqa: PLC0415 -- rule 2

    return tls.TlsFiles(Path(section.certificate), Path(section.key), Path(section.authority))
