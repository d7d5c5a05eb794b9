"""Chooses the sources of workloads of this node: kubelet, API server, manifests, scheduler.

Covers: the choice between standalone and Kubernetes, building the gatherer.
Does not cover: asking (``workloads.gatherer``), fields (``config.cluster_sections``).

Rules:
1. ``off`` is off, ``on`` is on. ``auto`` is on where the node shows the source: the kubelet by its
   directory, the API server by a service account, or by a configured address or kubeconfig.
   Nothing is tried over the network.
2. With every source off, the machine is standalone, and none of their modules is loaded.
3. No source of a recorded machine is asked over the network.
4. Credentials that cannot be used end a command before it starts (``ConfigError``); not a restore,
   which puts files back without them and reports what it could not withdraw.
"""

from __future__ import annotations

import os
import typing
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from koordlet import log
from koordlet.config import file_source, places
from koordlet.host import machine
from koordlet.host.fs import root
from koordlet.model.record import dataclass
from koordlet.state import paths

if typing.TYPE_CHECKING:
    from koordlet.config import cluster_sections, schema
    from koordlet.kubeapi import objects
    from koordlet.model import observed, reservation
    from koordlet.workloads import gatherer as source_gatherer
    from koordlet.workloads import manifest_directory, source
    from koordlet.workloads.kubelet import sources

_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_IN_CLUSTER = "KUBERNETES_SERVICE_HOST"
#: Seconds that a start waits for the first answers. A later answer is taken when it comes.
PATIENCE = 5.0
_PORT, _READ_ONLY_PORT = 10250, 10255
#: Seconds between two requests to a standalone scheduler, and how long an answer is valid.
_RESERVED_EVERY, _RESERVED_AGE = 1.0, 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which sources are asked, and why."""

    kubelet: bool
    kube: bool
    why: tuple[str, ...]

    @property
    def standalone(self) -> bool:
        """Whether the configuration alone says which workloads run here."""
        return not (self.kubelet or self.kube)


def choose(
    config: schema.Config, host: root.HostRoot, environment: Mapping[str, str] = os.environ
) -> Choice:
    """Choose by rule 1."""
    if not host.live:
        return Choice(kubelet=False, kube=False, why=("a recorded machine is not asked",))
    kubelet, why_kubelet = _kubelet(config.kubelet, host)
    kube, why_kube = _kube(config.kube, environment)
    why = (f"kubelet: {why_kubelet}", f"API server: {why_kube}")
    return Choice(kubelet=kubelet, kube=kube, why=why)


def _kubelet(kubelet: cluster_sections.Kubelet, host: root.HostRoot) -> tuple[bool, str]:
    if kubelet.mode != "auto":
        return kubelet.mode == "on", f"kubelet.mode is {kubelet.mode}"
    if kubelet.address is not None:
        return True, "kubelet.address is set"
    mark = f"{kubelet.directory}/cpu_manager_state"
    there = host.exists(host.at(mark))
    return there, f"{mark} is {'there' if there else 'not there'}"


def _kube(kube: cluster_sections.Kube, environment: Mapping[str, str]) -> tuple[bool, str]:
    if kube.mode != "auto":
        return kube.mode == "on", f"kube.mode is {kube.mode}"
    if kube.kubeconfig is not None:
        return True, "kube.kubeconfig is set"
    inside = bool(environment.get(_IN_CLUSTER)) and Path(_ACCOUNT, "token").exists()
    return inside, "a service account is here" if inside else "no service account is here"


def wants_runtime(nri: cluster_sections.Nri, host: root.HostRoot, *, alone: bool) -> bool:
    """Whether to connect to the container runtime: ``auto`` is on in a cluster, with a socket."""
    if nri.mode != "auto":
        return nri.mode == "on"
    return not alone and nri.socket is not None and host.exists(host.at(nri.socket))


def runs_scheduler(config: schema.Config, host: root.HostRoot) -> bool:
    """Whether to run a standalone scheduler here: not in a cluster."""
    return config.scheduler.run and host.live and not choose(config, host).kube


def scheduler_socket(config: schema.Config, where: paths.Paths | None = None) -> str | None:
    """Choose the socket of the standalone scheduler; ``None`` without one."""
    if not config.scheduler.run:
        return config.scheduler.socket
    if where is None:
        where = paths.current(config.state.dir)
    return str(where.scheduler_socket)


def gatherer(
    config: schema.Config,
    host: root.HostRoot,
    environment: Mapping[str, str] = os.environ,
    *,
    where: paths.Paths | None = None,
) -> source_gatherer.Gatherer | None:
    """Build the sources of this node; ``None`` where it is standalone."""
    choice = choose(config, host, environment)
    node = node_name(config, host, environment)
    socket = scheduler_socket(config, where) if host.live and not choice.kube else None
    reserving = None if socket is None else _reserving(socket, node)
    declared = _declared(config, host) if host.live else None
    if choice.standalone and reserving is None and declared is None:
        return None
    from koordlet.workloads import gatherer as source_gatherer  # noqa: PLC0415 -- rule 2

    return source_gatherer.Gatherer(
        lambda: machine.now().at,
        reserving=reserving,
        declared=declared,
        kubelet=_asked(config.kubelet, host, node) if choice.kubelet else None,
        store=_store(config.kube, check=True) if choice.kube else None,
        node=node,
    )


def cluster(config: schema.Config, host: root.HostRoot) -> objects.Objects | None:
    """Open the API server of this node, for a command that runs once; ``None`` without one."""
    return _store(config.kube) if choose(config, host).kube else None


def node_name(
    config: schema.Config, host: root.HostRoot, environment: Mapping[str, str] = os.environ
) -> str:
    """Give the name of this node in the cluster."""
    return config.node.name or environment.get("NODE_NAME") or machine.hostname(host)


def _reserving(socket: str, node: str) -> source.Polled[tuple[reservation.Reservation, ...]]:
    """Build the source of a standalone scheduler's reservations on this node."""
    from koordlet.rpc import reservations as asked  # noqa: PLC0415 -- rule 2
    from koordlet.workloads import reservations, source  # noqa: PLC0415 -- rule 2

    lister = asked.ReservationLister(socket, node)
    return source.Polled(
        "scheduler reservations",
        lister.fetch,
        reservations.decode_all,
        period=_RESERVED_EVERY,
        max_age=_RESERVED_AGE,
    )


def _declared(config: schema.Config, host: root.HostRoot) -> manifest_directory.Directory | None:
    """Build the source of manifests; ``None`` where the default directory does not exist."""
    where = config.manifests.directory
    if where is None or (where == places.MANIFESTS and not host.exists(host.at(where))):
        return None
    from koordlet.workloads import manifest_directory  # noqa: PLC0415 -- rule 2

    return manifest_directory.Directory(where, read=file_source.read, identity=file_source.identity)


def once(
    config: schema.Config, host: root.HostRoot, *, where: paths.Paths | None = None
) -> observed.Observed | None:
    """Ask the sources once, for a command that runs once; ``None`` on a standalone machine."""
    gathering = gatherer(config, host, where=where)
    if gathering is None:
        return None
    import asyncio  # noqa: PLC0415 -- rule 2

    # The command shows what failed itself, and its standard output is its own.
    log.configure("error", config.log.format)

    async def ask() -> observed.Observed:
        try:
            await gathering.start(PATIENCE)
            return gathering.take()
        finally:
            await gathering.stop()

    return asyncio.run(ask())


def unheard(told: observed.Observed | None) -> list[str]:
    """List what the sources have not told a command: by reason, and what answers left out."""
    by_reason: dict[str, list[str]] = {}
    for source in told.sources if told is not None else ():
        if not source.ok:
            by_reason.setdefault(source.problem, []).append(source.name)
    silent = [f"not known: {', '.join(names)}: {why}" for why, names in by_reason.items()]
    return [*silent, *(told.problems if told is not None else ())]


def _asked(
    kubelet: cluster_sections.Kubelet, host: root.HostRoot, node: str
) -> sources.KubeletSources:
    from koordlet.workloads.kubelet import client, sources  # noqa: PLC0415 -- rule 2

    name, _, port = (kubelet.address or "").rpartition(":")
    usual = _READ_ONLY_PORT if kubelet.read_only_port else _PORT
    address = name.strip("[]") or "127.0.0.1"
    directory = kubelet.directory or "/var/lib/kubelet"
    known = (address, node, machine.hostname(host))
    where = client.KubeletEndpoint(
        host=address,
        port=int(port) if port else usual,
        secure=not kubelet.read_only_port,
        ca=kubelet.ca_file or _account("ca.crt"),
        own="" if kubelet.ca_file else f"{directory}/pki/kubelet.crt",
        token=kubelet.token_file or _account("token"),
        verify=not kubelet.insecure_skip_verify,
        names=(kubelet.server_name,) if kubelet.server_name else tuple(dict.fromkeys(known)),
        seconds=float(kubelet.timeout_seconds),
    )
    period, max_age = float(kubelet.interval_seconds), float(kubelet.max_age_seconds)
    cpu, memory = sources.checkpoints(host, directory, max_age=max_age)
    made = sources.endpoints(where, period=period, max_age=max_age, statistics=kubelet.statistics)
    held = None
    if kubelet.pod_resources:
        from koordlet.rpc import pod_resources  # noqa: PLC0415 -- rule 2

        socket = kubelet.pod_resources_socket or f"{directory}/pod-resources/kubelet.sock"
        lister = pod_resources.PodResourcesClient(socket, seconds=where.seconds)
        held = sources.PodResourcesSource(lister.list, period=period, max_age=max_age)
    return replace(made, cpu=cpu, memory=memory, holdings=held)


def _account(name: str) -> str:
    """Find a file of the service account; empty where this process has none."""
    path = Path(_ACCOUNT, name)
    return str(path) if path.exists() else ""


def _store(kube: cluster_sections.Kube, *, check: bool = False) -> objects.Objects:
    """Open the API server; ``check`` its credentials first (rule 4)."""
    from koordlet.kube import adapter, credentials  # noqa: PLC0415 -- rule 2

    source = credentials.CredentialSource(kubeconfig=kube.kubeconfig or "", context=kube.context)
    if check:
        credentials.check(source)
    return adapter.KubeStore(credentials.Credentials(source), adapter.RequestTimes(cached=True))
