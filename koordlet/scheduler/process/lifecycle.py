"""The scheduler as a process: the store that it works on, the loop, what it shows of itself.

Covers: the choice of the store, the order of starting and stopping. Does not cover: scheduling
(``scheduler.loop``), HTTP (``pages``), signals (``cluster_process``), options (``cli.scheduler``).

Rules:
1. An API server where somebody named one, or where a service account is; the file of a standalone
   scheduler otherwise.
2. SIGTERM and SIGINT end it with 0: the lease is given back first. A lost lease ends it with an
   error, so that whoever supervises it starts it anew.
3. Of several replicas all listen, and only the one that decides takes reports.
4. A descheduler that is a part of it works on what the scheduler sees, agents' reports included. It
   has a lease of its own: beside a descheduler of its own process one of the two works.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import time
import uuid
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import TYPE_CHECKING

from koordlet import log
from koordlet.http import limits, server
from koordlet.kubeapi import objects, refusals
from koordlet.model import errors
from koordlet.model.record import dataclass
from koordlet.scheduler.disruption.limiter import Limiter
from koordlet.scheduler.disruption.settings import DisruptionSettings
from koordlet.scheduler.loop import configuration, runner
from koordlet.scheduler.objects import unserved
from koordlet.scheduler.process import (
    cluster_process,
    disruption_reload,
    pages,
)
from koordlet.scheduler.reservation import service
from koordlet.state import ownfiles

if TYPE_CHECKING:
    from koordlet.rpc import server as grpc_server
    from koordlet.rpc import services
    from koordlet.scheduler.descheduling.configuration import DeschedulerSettings
    from koordlet.scheduler.loop import descheduler
    from koordlet.scheduler.store import adapter as store

_DAY = 86400.0
#: Streams of agents at once.
_AGENTS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcListener:
    """A listener for other machines."""

    #: ``host:port``.
    address: str
    certificate: Path
    key: Path
    authority: Path
    #: Names of certificates, and the rights that each has: ``read``, ``report``, ``reserve``,
    #: ``admin``.
    clients: tuple[tuple[str, tuple[str, ...]], ...] = ()
    #: Of the URIs by which certificates name a node; empty: none does.
    trust_domain: str = ""
    #: Of the tokens by which agents with a common certificate say which node they are on.
    audience: str = ""
    #: Whose tokens those are, as ``NAMESPACE/NAME``.
    accounts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpsListener:
    """The HTTP server once more, for whoever has a token of the cluster and a role for the path."""

    #: ``host:port``.
    address: str
    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    #: ``None``: the file of a standalone scheduler.
    kubeconfig: str | None
    context: str = ""
    database: Path
    #: Where a standalone scheduler takes calls.
    socket: Path
    http: str
    https: HttpsListener | None = None
    configuration: configuration.Configuration
    #: What it deschedules; ``None``: in a cluster nothing, alone the jobs that somebody makes.
    descheduling: DeschedulerSettings | None = None
    #: The file that it was read from; ``None``: none.
    config: Path | None = None
    #: Pods that name a gang or a quota are placed as if they did not.
    ignores_keys: bool = False
    #: Admission plugins of a standalone scheduler that are enabled by name.
    admission: frozenset[str] = frozenset()
    #: Where agents and programs of other machines are heard, with mutual TLS.
    remote: GrpcListener | None = None


async def run(options: Options) -> None:
    """Until a signal comes or something ends that must not."""
    stop = cluster_process.stopping()
    async with _opened(options) as store:
        alone = options.kubeconfig is None
        scheduler = runner.Loop(
            store,
            options.configuration.profiles,
            instance=f"{socket.gethostname()}_{uuid.uuid4()}",
            terms=None if alone else options.configuration.election,
            backoff=options.configuration.backoff,
            judge=unserved.UnservedKeys(ignores_keys=options.ignores_keys),
            disruption=options.configuration.disruption,
            alone=alone,
        )
        descheduling = _descheduling(options, store, scheduler)
        site = pages.Pages(scheduler, descheduling)
        shown = _shown(options, store, site)
        addresses = [await listener.start() for listener in shown]
        spoken = await _speaking(options, store, scheduler)
        log.get().info(
            "scheduler.started",
            http=f"http://{addresses[0]}/",
            **({"https": f"https://{addresses[1]}/"} if options.https is not None else {}),
            names=list(options.configuration.profiles),
        )
        working = asyncio.ensure_future(_working(store, scheduler, descheduling, alone=alone))
        limiter, disruption = scheduler.disruptions.limiter, options.configuration.disruption
        following = follow(options.config, disruption, limiter)
        stopped = asyncio.ensure_future(stop.wait())
        try:
            async with site.publishing():
                await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                raise first_error(working) or errors.BugError(
                    "the scheduling loop ended without an error", culprit="scheduler"
                )
        finally:
            stopped.cancel()
            working.cancel()
            following.cancel()
            await asyncio.gather(working, stopped, following, return_exceptions=True)
            if spoken is not None:
                await spoken.stop()
            for listener in shown:
                await listener.stop()


def follow(path: Path | None, known: DisruptionSettings, limiter: Limiter) -> asyncio.Future[None]:
    """Let a limiter follow its file, if there is one, until cancelled."""
    if path is None:
        return asyncio.get_running_loop().create_future()
    reload = disruption_reload.DisruptionReload(path, known, limiter.configure)
    return asyncio.ensure_future(reload.run())


def first_error(task: asyncio.Task[None]) -> BaseException | None:
    """The first error of those that ended a task together."""
    error = task.exception()
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _shown(options: Options, store: objects.Objects, site: pages.Pages) -> list[server.HttpServer]:
    """The HTTP server for this machine, and where somebody wants it the one for others."""
    routes = site.routes()
    servers = [server.HttpServer(options.http, routes, setting="--http")]
    if options.https is not None:
        # TLS is loaded where it is spoken.
        from koordlet.http import certificates, tokens  # noqa: PLC0415

        seam = tokens.TokenAuthorisation(store)
        tls = certificates.context(options.https.certificate, options.https.key)
        servers.append(
            server.HttpServer(options.https.address, routes, seam, tls=tls, setting="--https")
        )
    return servers


def _descheduling(
    options: Options, store: objects.Objects, scheduler: runner.Loop
) -> descheduler.Descheduler | None:
    """The descheduler that is a part of this scheduler (rule 4)."""
    alone = options.kubeconfig is None
    if options.descheduling is None and not alone:
        return None
    # Nearly no scheduler of a cluster deschedules.
    from koordlet.scheduler.process import inner_descheduler  # noqa: PLC0415 -- 70 ms of a start

    return inner_descheduler.make(
        options.descheduling, options.configuration.profiles, store, scheduler, alone=alone
    )


async def _working(
    store: objects.Objects,
    scheduler: runner.Loop,
    descheduling: descheduler.Descheduler | None,
    *,
    alone: bool,
) -> None:
    """The loop, the descheduler, and without a cluster what its controllers would do."""
    async with asyncio.TaskGroup() as group:
        group.create_task(scheduler.run())
        if descheduling is not None:
            group.create_task(_moving(scheduler, descheduling))
        if alone:
            # A cluster has its own.
            from koordlet.scheduler.standalone import controllers  # noqa: PLC0415

            keeping = controllers.Controllers(store, scheduler.agents.reporting, time.time)
            group.create_task(keeping.run())


async def _moving(scheduler: runner.Loop, descheduling: descheduler.Descheduler) -> None:
    """Deschedule while this scheduler decides."""
    await scheduler.leads.wait()
    await descheduling.run()


async def _speaking(
    options: Options, store: objects.Objects, scheduler: runner.Loop
) -> grpc_server.RpcServer | None:
    """The gRPC services: what agents report, always; calls only where no API server takes them."""
    alone = options.kubeconfig is None
    if not alone and options.remote is None:
        return None
    # gRPC is loaded where it is spoken.
    from koordlet.rpc import ingest, moving, placing, reservations, speakers, tls  # noqa: PLC0415
    from koordlet.rpc import server as rpc_server  # noqa: PLC0415
    from koordlet.scheduler.process import standalone_api, standalone_moves  # noqa: PLC0415

    listener = options.remote
    domain = listener.trust_domain if listener is not None else ""
    speaks: speakers.Speakers = speakers.Names(domain)
    if listener is not None and listener.audience:
        speaks = speakers.TokenSpeakers(store, listener.audience, listener.accounts, names=speaks)
    taking = ingest.Ingest(
        scheduler.report, scheduler.agents.heard, speaks=speaks, decides=lambda: scheduler.leading
    )
    offered: list[services.RpcService] = [taking]
    if alone:
        offered += [
            reservations.Reservations(service.ReservationService(store)),
            placing.PlacingService(
                standalone_api.StandaloneApi(store, scheduler, options.admission)
            ),
            moving.MovingService(
                standalone_moves.StandaloneMoves(
                    store,
                    scheduler,
                    options.configuration.profiles,
                    options.configuration.disruption,
                    instance=scheduler.instance,
                )
            ),
        ]
    options.socket.parent.mkdir(parents=True, exist_ok=True)
    remote = None
    if listener is not None:
        files = tls.TlsFiles(listener.certificate, listener.key, listener.authority)
        remote = rpc_server.remote(listener.address, files, listener.clients)
    spoken = rpc_server.RpcServer(
        options.socket, offered, remote=remote, limits=_room(), speaks=speaks
    )
    log.get().info("scheduler.listening", addresses=await spoken.start())
    await spoken.say(serving=True)
    return spoken


def _room() -> limits.CallLimits:
    """For thousands of agents, each with one stream that stays: descriptors are for them."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return limits.CallLimits(watchers=_AGENTS, connections=_AGENTS, descriptor_share=0.75)


@contextlib.asynccontextmanager
async def _opened(options: Options) -> AsyncGenerator[objects.Objects]:
    if options.kubeconfig is not None:
        async with cluster_process.cluster(
            options.kubeconfig, options.context, "koordlet-scheduler"
        ) as kube:
            yield kube
        return
    from koordlet.scheduler.store import adapter as files  # noqa: PLC0415 -- and sqlite not here

    _trust(options.database)
    file = files.Store(options.database, manager="koordlet-scheduler", admit=(service.admit,))
    await file.open()
    if file.damage:
        log.get().error("scheduler.store_damaged", detail=file.damage)
    backing = asyncio.ensure_future(_backing_up(file, options.database))
    try:
        yield file
    finally:
        backing.cancel()
        await asyncio.gather(backing, return_exceptions=True)
        await file.close()


def _trust(database: Path) -> None:
    """SQLite opens what has the names, links included: before that they must be ours."""
    try:
        ownfiles.directory(database.parent)
        for suffix in ("", "-wal", "-shm", ".new", ".backup", ".backup.new"):
            with contextlib.suppress(FileNotFoundError):
                os.close(ownfiles.open_file(Path(f"{database}{suffix}"), os.O_RDWR))
    except OSError as error:
        fix = "name a writable directory with --state-dir"
        where = database.parent
        raise ownfiles.explained(error, "cannot be used", culprit=where, fix=fix) from error


async def _backing_up(file: store.Store, database: Path) -> None:
    """A copy beside the file, at the start and each day, so that a damaged one can be replaced."""
    while True:
        try:
            await file.backup(database.with_name(f"{database.name}.backup"))
        except (refusals.ObjectsError, OSError) as error:
            log.get().warning("scheduler.backup_failed", detail=str(error))
        await asyncio.sleep(_DAY)
