"""Asking a Prometheus what of nodes is used.

Covers: its address, our token, one request for each query. Does not cover: what the answers mean
(``descheduling.prometheus_source``).

Rules:
1. Whatever goes wrong is an answer that says so: a round goes on without it. One that is silent
   costs a round the time of one answer, however many queries there are.
2. A token is read anew for each round, so that one that rotated counts at once, and it is never
   logged. It comes from the Secret that is named, or is that of our own account.
3. Over HTTPS the certificate is checked against the system's authorities and the cluster's own.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import ssl
import urllib.parse
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from koordlet.http import client
from koordlet.kubeapi import kinds, objects, refusals
from koordlet.model import errors
from koordlet.scheduler.descheduling import prometheus_source
from koordlet.scheduler.descheduling.configuration import DeschedulerSettings
from koordlet.scheduler.descheduling.prometheus_source import PrometheusSource, QueryAnswer

_LIMITS = client.ClientLimits(answer_seconds=10.0, body_bytes=16 << 20)
#: In the Secret, as the peer has it.
_DATA_KEY = "prometheusAuthToken"
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_PORTS = {"http": 80, "https": 443}


Ask = Callable[[Iterable[str]], Awaitable[dict[str, QueryAnswer]]]


def asking(store: objects.Objects, settings: DeschedulerSettings) -> Ask | None:
    """How the Prometheus of a configuration is asked; ``None``: no strategy wants it."""
    if settings.prometheus is None or not settings.queries:
        return None
    return PrometheusClient(store, settings.prometheus).ask


class PrometheusClient:
    """One Prometheus."""

    def __init__(
        self,
        store: objects.Objects,
        source: PrometheusSource,
        account: Path = _ACCOUNT,
        limits: client.ClientLimits = _LIMITS,
    ) -> None:
        self._store, self._source, self._account = store, source, account
        self._limits = limits

    async def ask(self, queries: Iterable[str]) -> dict[str, QueryAnswer]:
        """The answer to each query."""
        several = list(dict.fromkeys(queries))
        try:
            headers = await self._headers()
            asking = client.HttpClient(self._endpoint(), self._limits)
        except (errors.KoordletError, OSError, ValueError) as error:
            return dict.fromkeys(several, QueryAnswer(error=str(error)))
        try:
            answers = await asyncio.gather(*(self._one(asking, headers, each) for each in several))
        finally:
            asking.close()
        return dict(zip(several, answers, strict=True))

    async def _one(
        self, asking: client.HttpClient, headers: client.Headers, query: str
    ) -> QueryAnswer:
        path = urllib.parse.urlsplit(self._source.url).path.rstrip("/")
        target = f"{path}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        try:
            response = await asking.request("GET", target, headers)
        # A name or a path that no request can carry is a ValueError.
        except (errors.KoordletError, ValueError) as error:
            return QueryAnswer(error=str(error))
        if response.status in {401, 403}:
            return QueryAnswer(error=f"{self._source.url} refuses our token ({response.status})")
        try:
            return QueryAnswer(prometheus_source.shares(json.loads(response.body)))
        except (json.JSONDecodeError, RecursionError, UnicodeDecodeError):
            return QueryAnswer(error=f"{self._source.url} answered {response.status} and no JSON")
        except ValueError as error:
            return QueryAnswer(error=str(error))

    def _endpoint(self) -> client.HttpEndpoint:
        parts = urllib.parse.urlsplit(self._source.url)
        tls = None
        if parts.scheme == "https":
            tls = ssl.create_default_context()
            if (authority := self._account / "ca.crt").exists():
                tls.load_verify_locations(authority)
        return client.HttpEndpoint(parts.hostname or "", parts.port or _PORTS[parts.scheme], tls)

    async def _headers(self) -> client.Headers:
        token = await self._secret_token() if self._source.secret else self._account_token()
        # What the client would say of it has the token in it.
        if not (token.isascii() and token.isprintable()):
            raise ValueError("its token is not one line of ASCII characters: write it anew")
        return (("authorization", f"Bearer {token}"),) if token else ()

    def _account_token(self) -> str:
        try:
            return (self._account / "token").read_text().strip()
        except OSError:  # outside of a cluster
            return ""

    async def _secret_token(self) -> str:
        namespace, name = self._source.secret or ("", "")
        where = f"Secret {namespace}/{name}"
        try:
            body = await self._store.get(objects.Ref(kinds.SECRETS, name, namespace))
        except refusals.ObjectsError as error:
            raise ValueError(f"{where} with its token cannot be read: {error}") from error
        spelled = objects.part(body, "data").get(_DATA_KEY)
        try:
            token = base64.b64decode(str(spelled or ""), validate=True).decode().strip()
        except (binascii.Error, UnicodeDecodeError):
            token = ""
        if not token:
            raise ValueError(f"{where} has no token at the key {_DATA_KEY}")
        return token
