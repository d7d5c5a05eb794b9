"""Who may speak for a node: whoever has its certificate, or runs as a pod on it.

Covers: names of certificates; tokens of service accounts, as the API server reviews them.
Does not cover: who may call at all (``access``), reaching the API server (the port).

Rules:
1. Who came through the Unix socket speaks for any node: ``peers`` decided who that is.
2. A certificate names its node: as a DNS name, or as a URI that ends in ``/node/NAME``.
3. In a cluster the agents may share one certificate, which says that somebody is an agent; which
   node it is on is said by the token of its pod. The token is for our audience alone: one that is
   stolen here opens nothing at the API server.
4. A token names its node since Kubernetes 1.30; with an older one its pod is asked for.
5. No answer of the API server is never a yes. At most ``reviews`` questions are open at once, the
   others wait: all agents of a cluster come back together after a restart of ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from koordlet.model import kinds, objects, refusals
from koordlet.rpc import services

#: Why a caller may not report for a node; empty where it may.
Speakers = Callable[[services.Context, str], Awaitable[str]]

_ACCOUNT = "system:serviceaccount:"
#: What API servers say of the pod that a token was made for.
_EXTRA = "authentication.kubernetes.io/"
_REVIEWS = 16


class Asked(Protocol):
    """What is used of the port ``objects.Objects``."""

    async def create(self, kind: kinds.Kind, body: objects.Object) -> objects.Object:
        """A review is created, and answered in its status."""

    async def get(self, ref: objects.Ref) -> objects.Object:
        """A pod."""


async def certified(context: services.Context, node: str) -> str:
    """Rules 1 and 2."""
    if not services.secured(context):
        return ""
    for name in services.names(context):
        if name == node or (":" in name and name.endswith(f"/node/{node}")):
            return ""
    return f"the certificate is not that of node {node}"


class Tokens:
    """Rules 3 to 5, beside the first two."""

    def __init__(self, server: Asked, audience: str, *, reviews: int = _REVIEWS) -> None:
        self._server = server
        self._audience = audience
        self._turn = asyncio.Semaphore(reviews)

    async def __call__(self, context: services.Context, node: str) -> str:
        """Why not; empty where it may."""
        why = await certified(context, node)
        token = _bearer(context)
        if not why or not token:
            return why
        async with self._turn:
            found = await self._node(token)
        if found == node:
            return ""
        return f"the token is that of node {found}, not {node}" if found else "an unknown token"

    async def _node(self, token: str) -> str:
        """The node of the pod that bears the token; empty where nobody knows."""
        spec = {"token": token, "audiences": [self._audience]}
        review = await self._server.create(kinds.TOKEN_REVIEWS, {"metadata": {}, "spec": spec})
        status = _part(review, "status")
        # A server that does not know audiences answers without any: its yes is for another one.
        if status.get("authenticated") is not True or self._audience not in _listed(
            status, "audiences"
        ):
            return ""
        user = _part(status, "user")
        extra = _part(user, "extra")
        named = _listed(extra, f"{_EXTRA}node-name")
        return named[0] if named else await self._node_of_pod(str(user.get("username")), extra)

    async def _node_of_pod(self, account: str, extra: Mapping[str, Any]) -> str:
        namespace = account.removeprefix(_ACCOUNT).partition(":")[0]
        name, uid = _listed(extra, f"{_EXTRA}pod-name"), _listed(extra, f"{_EXTRA}pod-uid")
        if not account.startswith(_ACCOUNT) or not name or not uid:
            return ""
        try:
            pod = await self._server.get(objects.Ref(kinds.PODS, name[0], namespace))
        except refusals.NotFound:
            return ""
        if objects.text(pod, "uid") != uid[0]:
            return ""
        return str(_part(pod, "spec").get("nodeName") or "")


def _bearer(context: services.Context) -> str:
    for name, value in context.invocation_metadata() or ():
        if name == "authorization" and isinstance(value, str):
            scheme, _, token = value.partition(" ")
            return token.strip() if scheme.lower() == "bearer" else ""
    return ""


def _part(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = body.get(name)
    return found if isinstance(found, Mapping) else {}


def _listed(body: Mapping[str, Any], name: str) -> list[str]:
    found = body.get(name)
    return [str(one) for one in found] if isinstance(found, list) else []
