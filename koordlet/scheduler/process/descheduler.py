"""The descheduler as a process: the API server that it works on, rounds, what it shows of itself.

Covers: signals, the order of starting and stopping, HTTP. Does not cover: rounds
(``loop.descheduler``), options (``cli.descheduler``).

Rules:
1. SIGTERM and SIGINT end it with 0: the lease is given back first. A lost lease ends it with an
   error, so that whoever supervises it starts it anew.
2. With ``once`` it ends after one round, and shows nothing over HTTP. A signal before the round
   is over is an error: there is nothing to show.
"""

from __future__ import annotations

import asyncio
import socket
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from koordlet import log
from koordlet.http import message, routes, server
from koordlet.model import errors
from koordlet.model.record import dataclass
from koordlet.scheduler.descheduling.configuration import DeschedulerSettings
from koordlet.scheduler.disruption.settings import DisruptionSettings
from koordlet.scheduler.framework.profile import Profile
from koordlet.scheduler.loop import descheduler
from koordlet.scheduler.process import cluster_process, lifecycle, moves_pages, prometheus_client

#: So many rounds may be late before the process is not well.
_LATE_ROUNDS = 3
_SLACK_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeschedulerOptions:
    """What the command line says."""

    kubeconfig: str
    context: str = ""
    http: str
    settings: DeschedulerSettings
    #: Of a KubeSchedulerConfiguration, by name of the scheduler; empty: the default plugins.
    profiles: Mapping[str, Profile]
    disruption: DisruptionSettings
    #: The file that ``disruption`` was read from; ``None``: none.
    disruption_file: Path | None = None
    dry_run: bool = False
    once: bool = False


class DeschedulerPages:
    """The handlers of one descheduler."""

    def __init__(self, working: descheduler.Descheduler, interval: float) -> None:
        self._working, self.moves = working, moves_pages.MovesPages(working)
        self._late = _LATE_ROUNDS * interval + _SLACK_SECONDS

    def routes(self) -> routes.Routes:
        """The table."""
        return routes.Routes(
            [
                ("GET", "/livez", self._alive),
                ("GET", "/healthz", self._alive),
                ("GET", "/readyz", self._ready),
                ("GET", "/metrics", lambda _: message.text(self._working.metrics())),
                *self.moves.table(),
            ]
        )

    def _alive(self, _request: message.HttpRequest) -> message.HttpResponse:
        """Well unless a leader has had no round for several intervals."""
        beat = self._working.beat
        late = beat is not None and time.monotonic() - beat > self._late
        return message.text("no round for long\n" if late else "ok\n", status=503 if late else 200)

    def _ready(self, _request: message.HttpRequest) -> message.HttpResponse:
        ready = self._working.ready
        return message.text("ok\n" if ready else "not leading\n", status=200 if ready else 503)


async def run(options: DeschedulerOptions) -> dict[str, Any]:
    """Until a signal comes, after one round, or when something ends; the last round."""
    stop = cluster_process.stopping()
    async with cluster_process.cluster(
        options.kubeconfig, options.context, "koordlet-descheduler"
    ) as store:
        working = descheduler.Descheduler(
            store,
            options.settings,
            instance=f"{socket.gethostname()}_{uuid.uuid4()}",
            dry_run=options.dry_run,
            profiles=options.profiles,
            disruption=options.disruption,
            ask=prometheus_client.asking(store, options.settings),
        )
        interval = options.settings.interval_seconds
        pages = DeschedulerPages(working, descheduler.INTERVAL if interval is None else interval)
        listener = None
        if not options.once:
            listener = server.HttpServer(options.http, pages.routes(), setting="--http")
            log.get().info("descheduler.started", http=f"http://{await listener.start()}/")
        rounds = asyncio.ensure_future(working.run(once=options.once))
        stopped = asyncio.ensure_future(stop.wait())
        limiter = working.disruptions.limiter
        following = lifecycle.follow(options.disruption_file, options.disruption, limiter)
        try:
            await asyncio.wait({rounds, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if rounds.done() and (error := lifecycle.first_error(rounds)) is not None:
                raise error
            if options.once and not rounds.done():
                raise errors.HostError(
                    "it was stopped before its round was over",
                    fix="what it waits for is in the log: another descheduler may lead",
                )
        finally:
            stopped.cancel()
            rounds.cancel()
            following.cancel()
            await asyncio.gather(rounds, stopped, following, return_exceptions=True)
            if listener is not None:
                await listener.stop()
        return pages.moves.round()
