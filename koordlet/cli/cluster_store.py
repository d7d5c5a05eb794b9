"""Opens a cluster's API server for one command.

Covers: credentials, the store. Does not cover: the options (``reservations.add_cluster``).
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator

from koordlet.kubeapi import objects


@contextlib.asynccontextmanager
async def opened(kubeconfig: str, context: str) -> AsyncGenerator[objects.Objects]:
    """The store of a cluster, for the time of a block."""
    # The package of the API server's client is loaded where one is asked.
    from koordlet.kube import adapter, credentials  # noqa: PLC0415

    source = credentials.CredentialSource(kubeconfig=kubeconfig, context=context)
    credentials.check(source)
    kube = adapter.KubeStore(
        credentials.Credentials(source), adapter.RequestTimes(manager="koordlet")
    )
    try:
        yield kube
    finally:
        await kube.close()
