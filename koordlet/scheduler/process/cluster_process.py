"""What every process of a cluster begins with: signals, and the API server that it works on.

Covers: whether this is a pod, when to stop, the client. Does not cover: what the process does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator, Mapping

from koordlet.http import client
from koordlet.kubeapi import objects
from koordlet.model import errors

_IN_CLUSTER = "KUBERNETES_SERVICE_HOST"
#: Lists of a cluster are taken in large pages: this is no node agent.
_PAGE = 500
#: More than those who write have lanes (bindings and results alone: 32). Else, with every lane
#: waiting for an answer, nobody could renew the lease.
_CONNECTIONS = 64


def in_cluster(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this is a pod with a service account."""
    return bool(environment.get(_IN_CLUSTER))


def chosen(kubeconfig: str | None, otherwise: str = "") -> str:
    """The kubeconfig that was named; empty for the account of the pod that this runs in.

    ``otherwise``: what one may do where there is neither, besides naming one.
    """
    if kubeconfig is None and not in_cluster():
        fix = f"name one with --kubeconfig{otherwise}"
        raise errors.UsageError("no cluster to work on", fix=fix)
    return kubeconfig or ""


def stopping() -> asyncio.Event:
    """Set when somebody tells this process to stop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


@contextlib.asynccontextmanager
async def cluster(kubeconfig: str, context: str, manager: str) -> AsyncGenerator[objects.Objects]:
    """The API server of a cluster, for a process that watches all of it."""
    # The package costs 150 ms and 25 MB, which a standalone scheduler does not pay.
    from koordlet.kube import adapter, credentials  # noqa: PLC0415

    source = credentials.CredentialSource(kubeconfig=kubeconfig, context=context)
    credentials.check(source)
    manners = adapter.RequestTimes(
        manager=manager,
        page=_PAGE,
        limits=client.ClientLimits(connections=_CONNECTIONS, body_bytes=128 << 20),
    )
    kube = adapter.KubeStore(credentials.Credentials(source), manners)
    try:
        yield kube
    finally:
        await kube.close()
