"""Callers that may act for a node: its certificate, or an agent's pod on it.

Covers: names of certificates; tokens of service accounts, as the API server reviews them.
Does not cover: who may call at all (``access``), what needs it (``permissions``), reaching the API
server (the port).

Rules:
1. Who came through the Unix socket speaks for any node: ``peers`` decided who that is.
2. A certificate names its node as a DNS name, or, where a trust domain is configured, as exactly
   ``spiffe://DOMAIN/node/NAME``. One authority may sign for many domains and for many who choose
   the end of their own path, so what a URI ends in says nothing by itself.
3. In a cluster the agents may share one certificate, which says that somebody is an agent; which
   node it is on is said by the token of its pod. The token is for our audience alone: one that is
   stolen here opens nothing at the API server. It is of a service account of agents: any pod may
   ask for a token with any audience, and runs on a node.
4. A token names its node since Kubernetes 1.30; with an older one its pod is asked for.
5. No answer of the API server is never a yes. At most ``reviews`` questions are open at once, the
   others wait: all agents of a cluster come back together after a restart of ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol

import grpc

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.rpc import services

#: Why a caller may not report for a node; empty where it may.
Speakers = Callable[[services.Context, str], Awaitable[str]]

_ACCOUNT = "system:serviceaccount:"
#: What API servers say of the pod that a token was made for.
_EXTRA = "authentication.kubernetes.io/"
_REVIEWS = 16


class TokenReviewApi(Protocol):
    """Used part of the interface ``objects.Objects``."""

    async def create(self, kind: kinds.Kind, body: objects.Object) -> objects.Object:
        """A review is created, and answered in its status."""

    async def get(self, ref: objects.Ref) -> objects.Object:
        """A pod."""


class Names:
    """Rules 1 and 2."""

    def __init__(self, trust_domain: str = "") -> None:
        self._domain = trust_domain

    async def __call__(self, context: services.Context, node: str) -> str:
        """Reason for a refusal; empty if the caller may act for the node."""
        if not services.secured(context):
            return ""
        accepted = {node}
        if self._domain:
            accepted.add(f"spiffe://{self._domain}/node/{node}")
        if node and not accepted.isdisjoint(services.names(context)):
            return ""
        return f"the certificate is not of node {node}: it contains none of {sorted(accepted)}"


#: Without a trust domain.
NAMED = Names()


async def refusal(
    speaks: Speakers, context: services.Context, node: str
) -> tuple[grpc.StatusCode, str] | None:
    """Status of a call whose caller may not act for the node."""
    try:
        why = await speaks(context, node)
    except refusals.ObjectsError as error:
        return grpc.StatusCode.UNAVAILABLE, f"the API server could not review the token: {error}"
    return (grpc.StatusCode.PERMISSION_DENIED, why) if why else None


class TokenSpeakers:
    """Rules 3 to 5, beside the first two."""

    def __init__(
        self,
        server: TokenReviewApi,
        audience: str,
        accounts: Iterable[str],
        *,
        names: Speakers = NAMED,
        reviews: int = _REVIEWS,
    ) -> None:
        self._server = server
        self._audience = audience
        self._accounts = {_ACCOUNT + account.replace("/", ":") for account in accounts}
        self._names = names
        self._turn = asyncio.Semaphore(reviews)

    async def __call__(self, context: services.Context, node: str) -> str:
        """Reason for a refusal; empty if the caller may act for the node."""
        why = await self._names(context, node)
        token = _bearer(context)
        if not why or not token:
            return why
        async with self._turn:
            status = await self._reviewed(token)
            user = objects.part(status, "user")
            account = str(user.get("username") or "")
            if account not in self._accounts:
                return (
                    f"the token belongs to {account}, which is not an agent"
                    if account
                    else "the API server rejected the token"
                )
            bound = await self._node(account, objects.part(user, "extra"))
        if bound == node:
            return ""
        return (
            f"the token belongs to node {bound}, not {node}"
            if bound
            else "the API server rejected the token"
        )

    async def _reviewed(self, token: str) -> Mapping[str, Any]:
        """Review of a token issued for this audience; empty for any other token."""
        spec = {"token": token, "audiences": [self._audience]}
        review = await self._server.create(kinds.TOKEN_REVIEWS, {"metadata": {}, "spec": spec})
        status = objects.part(review, "status")
        # A server that does not know audiences answers without any: its yes is for another one.
        if status.get("authenticated") is True and self._audience in _listed(status, "audiences"):
            return status
        return {}

    async def _node(self, account: str, extra: Mapping[str, Any]) -> str:
        """Node of the pod that holds the token; empty if unknown."""
        named = _listed(extra, f"{_EXTRA}node-name")
        if named:
            return named[0]
        name, uid = _listed(extra, f"{_EXTRA}pod-name"), _listed(extra, f"{_EXTRA}pod-uid")
        if not name or not uid:
            return ""
        namespace = account.removeprefix(_ACCOUNT).partition(":")[0]
        try:
            pod = await self._server.get(objects.Ref(kinds.PODS, name[0], namespace))
        except refusals.NotFound:
            return ""
        if objects.text(pod, "uid") != uid[0]:
            return ""
        return str(objects.part(pod, "spec").get("nodeName") or "")


def _bearer(context: services.Context) -> str:
    for name, value in context.invocation_metadata() or ():
        if name == "authorization" and isinstance(value, str):
            scheme, _, token = value.partition(" ")
            return token.strip() if scheme.lower() == "bearer" else ""
    return ""


def _listed(body: Mapping[str, Any], name: str) -> list[str]:
    items = body.get(name)
    return [str(item) for item in items] if isinstance(items, list) else []
