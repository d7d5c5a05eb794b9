"""The port ``kubeapi.objects`` over an API server.

Covers: paths, parameters, content types, what is tried again. Does not cover: credentials, HTTP,
decoding (their modules); backoff between failures (who calls: ``kubeapi.informer``, the writers).

What is tried again here, because only here it is known to be safe:
* once after a 401, with credentials read anew;
* after a 429 or 503 that says when to come back, while that lies within the deadline of a request
  (the server refused it before it did anything). A used-up disruption budget is not tried again:
  the caller may choose another pod.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import field
from typing import Any

import msgspec

from koordlet.http import client
from koordlet.kube import addresses, answers, credentials, decoding, server_clock
from koordlet.kubeapi import kinds, objects, refusals, selectors
from koordlet.model.record import dataclass

#: So many items are decoded before the loop may do something else: 1-2 ms.
_BREATH = 50

_TYPES: Mapping[type[objects.Patch], str] = {
    objects.Merge: "application/merge-patch+json",
    objects.Strategic: "application/strategic-merge-patch+json",
    objects.Apply: "application/apply-patch+yaml",
}


@dataclass(frozen=True, slots=True)
class _Request:
    """One request, but for who asks."""

    method: str
    path: str
    #: What an error names.
    culprit: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    content: str = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTimes:
    """Timeouts and page sizes of requests."""

    #: Who we are, in ``managedFields`` and in its log.
    manager: str = "koordlet"
    #: Objects in one answer to a list. All of them are decoded at the same time: 100 pods are 4 MB,
    #: which a node agent feels; a scheduler takes larger ones.
    page: int = 100
    #: Lists by fields (the pods of one node) may be those of the server's memory, a moment old: a
    #: server before 1.31 reads all pods from its database for a list that has to be of now, and a
    #: cluster of agents that comes back asks for as many lists as it has nodes.
    cached: bool = False
    #: The server ends a watch after so long, and up to half of it more by chance.
    watch_seconds: int = 240
    #: A watch tells at least a bookmark each minute; after this long it is taken for dead.
    silence_seconds: float = 150.0
    limits: client.ClientLimits = field(default_factory=client.ClientLimits)


class KubeStore:
    """An API server."""

    def __init__(self, who: credentials.Credentials, manners: RequestTimes | None = None) -> None:
        self._who = who
        self._manners = RequestTimes() if manners is None else manners
        self._client: client.HttpClient | None = None
        #: Those of former addresses or certificates that still have something under way.
        self._former: list[client.HttpClient] = []
        self._closed = False
        #: Items of lists that were no objects, and so were left out.
        self.dropped = 0
        self._remarks = decoding.RepairLog()
        self._clock = server_clock.ServerClock()

    def now(self) -> float:
        """The server's time."""
        return self._clock.now()

    async def close(self) -> None:
        """Cut all connections."""
        self._closed = True
        for connections in (*self._former, self._client):
            if connections is not None:
                connections.close()
        self._who.close()

    # Reading.

    async def list(
        self,
        kind: kinds.Kind,
        *,
        namespace: str = "",
        selector: selectors.Selector = selectors.EVERYTHING,
    ) -> AsyncGenerator[objects.Page, None]:
        """One state of a kind, page by page; the server makes one while the last is decoded."""
        path = addresses.collection(kind, namespace)
        query = {"limit": str(self._manners.page), **addresses.selected(selector)}
        if self._manners.cached and selector.fields:
            query["resourceVersion"] = "0"
        asking = asyncio.ensure_future(self._ask(_Request("GET", path, str(kind), query)))
        try:
            while True:
                page, raw_items = decoding.split(await asking, str(kind))
                token = page.metadata.continue_
                if token:
                    more = _Request("GET", path, str(kind), {**query, "continue": token})
                    asking = asyncio.ensure_future(self._ask(more))
                items = await self._decoded(raw_items, kind)
                yield objects.Page(items, page.metadata.resource_version)
                if not token:
                    return
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    async def _decoded(
        self, raw_items: Iterable[bytes | msgspec.Raw], kind: kinds.Kind
    ) -> tuple[objects.Object, ...]:
        items = []
        for number, raw_item in enumerate(raw_items):
            if number % _BREATH == _BREATH - 1:
                await asyncio.sleep(0)
            item = decoding.item(raw_item, kind, self._remarks)
            if item is None:
                self.dropped += 1
            else:
                items.append(item)
        return tuple(items)

    async def watch(
        self,
        kind: kinds.Kind,
        since: str,
        *,
        namespace: str = "",
        selector: selectors.Selector = selectors.EVERYTHING,
    ) -> AsyncGenerator[objects.Change, None]:
        """Watch events after a revision; the first says that the watch began."""
        seconds = self._manners.watch_seconds
        query = {
            "watch": "true",
            "resourceVersion": since,
            "allowWatchBookmarks": "true",
            # By chance, so that a cluster of agents does not come back all at once.
            "timeoutSeconds": str(seconds + random.randrange(seconds // 2 + 1)),  # noqa: S311
            **addresses.selected(selector),
        }
        asked = _Request("GET", addresses.collection(kind, namespace), f"watch of {kind}", query)
        for again in (False, True):
            begun = False
            try:
                async with contextlib.aclosing(self._changes(asked, since)) as changes:
                    async for change in changes:
                        begun = True
                        yield change
            except refusals.Unauthorized:
                # The token was rotated since it was read, and was read again by now.
                if begun or again:
                    raise
                continue
            if self._closed:
                raise refusals.Unavailable("closed", culprit=asked.culprit)
            return

    async def _changes(self, asked: _Request, since: str) -> AsyncGenerator[objects.Change, None]:
        """One connection's part of a watch."""
        access, streams = await self._streams()
        target = addresses.target(access.prefix, asked.path, asked.query)
        try:
            async with streams.stream("GET", target, self._headers(access)) as stream:
                if stream.response.status != 200:
                    raise await self._refused(stream, access, asked.culprit)
                # The server answers before anything happens: a quiet watch is heard, too.
                yield objects.Change(objects.Verb.BOOKMARK, {}, since)
                lines = decoding.Lines(asked.culprit)
                while data := await stream.read(self._manners.silence_seconds):
                    for line in lines.feed(data):
                        yield decoding.change(line, asked.culprit, self._remarks)
        except client.TransportError as error:
            raise await self._broken(error, access, asked.culprit) from error

    async def get(self, ref: objects.Ref) -> objects.Object:
        """One object."""
        answer = await self._ask(_Request("GET", addresses.path(ref), str(ref)))
        return decoding.one(answer, str(ref))

    # Writing.

    async def create(
        self, kind: kinds.Kind, body: objects.Object, *, dry_run: bool = False
    ) -> objects.Object:
        """A new object."""
        namespace = (objects.text(body, "namespace") or "default") if kind.namespaced else ""
        sent = {"apiVersion": kind.api_version, "kind": kind.name, **body}
        name = objects.text(body, "name")
        culprit = str(objects.Ref(kind, name, namespace)) if name else str(kind)
        query = self._writing(dry_run=dry_run)
        asked = _Request("POST", addresses.collection(kind, namespace), culprit, query, sent)
        return decoding.one(await self._ask(asked), culprit)

    async def patch(
        self,
        ref: objects.Ref,
        patch: objects.Patch,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> objects.Object:
        """The object after a patch."""
        query = self._writing(dry_run=dry_run)
        sent: Mapping[str, Any] = patch.body
        if isinstance(patch, objects.Apply):
            query["fieldManager"] = patch.manager
            if patch.force:
                query["force"] = "true"
            own = {"apiVersion": ref.kind.api_version, "kind": ref.kind.name}
            sent = {**own, **sent, "metadata": {**objects.metadata(sent), "name": ref.name}}
        elif patch.revision:
            metadata = {**objects.metadata(sent), "resourceVersion": patch.revision}
            sent = {**sent, "metadata": metadata}
        path = f"{addresses.path(ref)}/{subresource}" if subresource else addresses.path(ref)
        asked = _Request("PATCH", path, str(ref), query, sent, _TYPES[type(patch)])
        return decoding.one(await self._ask(asked), str(ref))

    async def delete(
        self,
        ref: objects.Ref,
        *,
        uid: str = "",
        revision: str = "",
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Remove an object, or ask a pod's node to stop it."""
        options = _delete_options(uid, revision, grace_seconds, dry_run=dry_run)
        sent = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        await self._ask(_Request("DELETE", addresses.path(ref), str(ref), {}, sent))

    async def bind(
        self,
        pod: objects.Ref,
        node: str,
        *,
        uid: str = "",
        annotations: Mapping[str, str] = objects.NO_ANNOTATIONS,
    ) -> None:
        """Give a pod its node."""
        metadata: dict[str, Any] = {"name": pod.name, "namespace": pod.namespace}
        if uid:
            metadata["uid"] = uid
        if annotations:
            metadata["annotations"] = dict(annotations)
        sent = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._ask(_Request("POST", f"{addresses.path(pod)}/binding", str(pod), {}, sent))

    async def evict(
        self,
        pod: objects.Ref,
        *,
        uid: str = "",
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Delete a pod as its disruption budget allows."""
        sent = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": _delete_options(uid, "", grace_seconds, dry_run=dry_run),
        }
        dry = {"dryRun": "All"} if dry_run else {}
        await self._ask(_Request("POST", f"{addresses.path(pod)}/eviction", str(pod), dry, sent))

    # Requests.

    async def _ask(self, request: _Request) -> bytes:
        """The body of a good answer."""
        try:
            raw = b"" if request.body is None else msgspec.json.encode(request.body)
        except (TypeError, ValueError, RecursionError) as error:
            raise refusals.Malformed(f"not JSON: {error}", culprit=request.culprit) from error
        patience, reloaded = self._manners.limits.answer_seconds, False
        while True:
            access, answer = await self._send(request, raw)
            if 200 <= answer.status < 300:
                return answer.body
            refused = answers.refusal(answer, request.culprit)
            if isinstance(refused, refusals.Unauthorized) and not reloaded:
                reloaded = True
                await self._who.reload(access)
                continue
            wait = _wait(refused)
            if wait is None or wait > patience:
                raise refused
            patience -= wait
            await asyncio.sleep(wait)

    async def _send(
        self, request: _Request, body: bytes
    ) -> tuple[credentials.ServerAccess, client.ClientResponse]:
        access, requests = await self._streams()
        headers = self._headers(access)
        if body:
            headers = (*headers, ("content-type", request.content))
        target = addresses.target(access.prefix, request.path, request.query)
        asked = self._clock.steady()
        try:
            answer = await requests.request(request.method, target, headers, body)
        except client.TransportError as error:
            raise await self._broken(error, access, request.culprit) from error
        self._clock.heard(asked, answer.headers.get("date", ""))
        return access, answer

    async def _broken(
        self, error: client.TransportError, access: credentials.ServerAccess, culprit: str
    ) -> refusals.Unavailable:
        if isinstance(error, client.CertificateError):
            # Perhaps the authority was changed: look again before the next request.
            await self._who.reload(access)
        return refusals.Unavailable(
            error.message, culprit=error.culprit or culprit, fix=error.fix, reason=culprit
        )

    async def _streams(self) -> tuple[credentials.ServerAccess, client.HttpClient]:
        """The connections to where the server is now."""
        if self._closed:
            raise refusals.Unavailable("closed", culprit="API server")
        access = await self._who.access()
        if self._client is None or self._client.endpoint != access.endpoint:
            self._former = [former for former in self._former if not former.idle]
            if self._client is not None:
                self._client.retire()
                self._former.append(self._client)
            self._client = client.HttpClient(access.endpoint, self._manners.limits)
        return access, self._client

    async def _refused(
        self, stream: client.ResponseStream, access: credentials.ServerAccess, culprit: str
    ) -> refusals.ObjectsError:
        """Error that the server returned instead of a watch stream."""
        head, raw = stream.response, bytearray()
        while data := await stream.read(self._manners.limits.answer_seconds):
            raw += data
            if len(raw) > self._manners.limits.head_bytes:
                break
        if head.status == 401:
            await self._who.reload(access)
        answer = client.ClientResponse(head.status, head.headers, bytes(raw))
        return answers.refusal(answer, culprit)

    def _headers(self, access: credentials.ServerAccess) -> client.Headers:
        common = (("accept", "application/json"), ("user-agent", self._manners.manager))
        return (*common, *access.headers)

    def _writing(self, *, dry_run: bool) -> dict[str, str]:
        dry = {"dryRun": "All"} if dry_run else {}
        return {"fieldManager": self._manners.manager, **dry}


def _wait(refused: refusals.ObjectsError) -> float | None:
    """Delay before a retry, slightly more than asked for; ``None``: do not retry here."""
    budget = isinstance(refused, refusals.TooMany) and any(
        cause.reason == "DisruptionBudget" for cause in refused.causes
    )
    safe = not budget and isinstance(refused, refusals.TooMany | refusals.Unavailable)
    if refused.retry_after is None or not safe:
        return None
    return refused.retry_after * (1 + 0.2 * random.random())  # noqa: S311 - spread, no secret


def _delete_options(
    uid: str, revision: str, grace_seconds: int | None, *, dry_run: bool
) -> dict[str, Any]:
    options: dict[str, Any] = {}
    wanted = {"uid": uid, "resourceVersion": revision}
    if any(wanted.values()):
        options["preconditions"] = {name: text for name, text in wanted.items() if text}
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    if dry_run:
        options["dryRun"] = ["All"]
    return options
