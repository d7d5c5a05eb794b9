"""The paths of an API server, over the SQLite adapter.

Covers: which method of the store a request is, admission, lists in pages, watches as lines.
Does not cover: bytes (``server``), what the store does (``koordlet.scheduler.store``).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from koordlet.kubeapi import kinds, objects, refusals, selectors
from koordlet.scheduler.store import adapter, rules, writing
from tests.kit.apiserver import discovery, jsonpatch, status, tables

#: Lists that can still be continued; an older one is ``Gone``.
_LISTS = 8


@dataclass(frozen=True)
class Request:
    """What a client asks."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    content: str = ""
    body: bytes = b""
    accept: str = ""


@dataclass(frozen=True)
class Answer:
    """What it is told: a document, or lines."""

    code: int
    document: Mapping[str, Any] | None = None
    lines: AsyncGenerator[bytes, None] | None = None


@dataclass(frozen=True)
class _Place:
    """What a path names."""

    kind: kinds.Kind
    namespace: str
    name: str
    subresource: str

    @property
    def ref(self) -> objects.Ref:
        return objects.Ref(self.kind, self.name, self.namespace)


class Api:
    """One server's paths."""

    def __init__(self, store: adapter.Store, served: discovery.Served) -> None:
        self.store = store
        self.served = served
        #: Kinds whose definition names no selectable fields.
        self.unselectable: set[kinds.Kind] = set()
        #: Token to who bears it and the paths that the bearer may get: for reviews.
        self.bearers: dict[str, tuple[str, frozenset[str]]] = {}
        #: Token to the whole status of its review, for more than a name.
        self.reviews: Mapping[str, Mapping[str, Any]] = {}
        self._lists: dict[str, tuple[objects.Page, int]] = {}
        self._tokens = itertools.count(1)

    async def answer(self, request: Request) -> Answer:
        """The answer to a request."""
        document = self.served.document(request.path)
        if document is not None:
            return Answer(200, document)
        if request.path in {"/healthz", "/livez", "/readyz"}:
            return Answer(200, {"status": "ok"})
        place = self._place(request.path)
        if place is None:
            return _failed(refusals.NotFound("the server could not find the requested resource"))
        try:
            answer = await self._verb(request, place)
        except refusals.ObjectsError as error:
            return _failed(error, place.kind, place.name or "?")
        if request.method == "GET" and answer.document and tables.wanted(request.accept):
            columns = self.served.columns.get(place.kind)
            return Answer(answer.code, tables.table(place.kind, columns, answer.document))
        return answer

    def _place(self, path: str) -> _Place | None:
        steps = path.strip("/").split("/")
        if steps[:1] == ["api"]:
            group, version, rest = "", steps[1] if len(steps) > 1 else "", steps[2:]
        elif steps[:1] == ["apis"] and len(steps) > 2:
            group, version, rest = steps[1], steps[2], steps[3:]
        else:
            return None
        namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in {"status", "finalize"}:
            namespace, rest = rest[1], rest[2:]
        if not rest or len(rest) > 3:
            return None
        kind = self.served.find(group, version, rest[0])
        if kind is None or (namespace and not kind.namespaced):
            return None
        return _Place(kind, namespace, *(*rest[1:], "", "")[:2])

    async def _verb(self, request: Request, place: _Place) -> Answer:  # noqa: PLR0911 - a table
        match request.method, place:
            case "GET", _Place(name=""):
                if request.query.get("watch") in {"true", "1"}:
                    if "sendInitialEvents" in request.query:
                        # As an older server: clients list then.
                        raise refusals.Invalid("sendInitialEvents: forbidden for watch")
                    selector = self._selector(request, place)
                    return Answer(200, lines=self._watch(request, place, selector))
                return await self._list(request, place)
            case "GET", _Place(subresource="" | "status"):
                return Answer(200, await self.store.get(place.ref))
            case "POST", _Place(name=""):
                return await self._create(request, place)
            case "POST", _Place(kind=kinds.PODS, subresource="binding"):
                return await self._bind(request, place)
            case "POST", _Place(kind=kinds.PODS, subresource="eviction"):
                return await self._evict(request, place)
            case "PUT" | "PATCH", _Place(name=name, subresource="" | "status") if name:
                return await self._change(request, place)
            case "DELETE", _Place(name=name, subresource="") if name:
                return await self._delete(request, place)
        return Answer(405, status.failure(refusals.Refused("method not allowed"), place.kind))

    def _selector(self, request: Request, place: _Place) -> selectors.Selector:
        labels = request.query.get("labelSelector", "")
        fields = request.query.get("fieldSelector", "")
        try:
            selector = selectors.Selector(labels, fields)
        except ValueError as error:
            raise refusals.Malformed(str(error)) from error
        own = {"metadata.name", "metadata.namespace"}
        if place.kind in self.unselectable and any(
            requirement.path not in own for requirement in selector.compiled().fields
        ):
            raise refusals.Malformed(f"field label not supported: {fields}")
        rules.compiled(place.kind, selector)
        return selector

    async def _list(self, request: Request, place: _Place) -> Answer:
        token, limit = request.query.get("continue", ""), int(request.query.get("limit") or 0)
        if token:
            if token not in self._lists:
                raise refusals.Gone("The provided continue parameter is too old")
            listing, start = self._lists.pop(token)
        else:
            selector = self._selector(request, place)
            listing, start = (
                await objects.collect(
                    self.store.list(place.kind, namespace=place.namespace, selector=selector)
                ),
                0,
            )
        end = start + limit if limit else len(listing.items)
        metadata = {"resourceVersion": listing.revision}
        if end < len(listing.items):
            metadata["continue"] = str(next(self._tokens))
            self._lists[metadata["continue"]] = (listing, end)
            while len(self._lists) > _LISTS:
                self._lists.pop(next(iter(self._lists)))
        document = {
            "kind": f"{place.kind.name}List",
            "apiVersion": place.kind.api_version,
            "metadata": metadata,
            "items": listing.items[start:end],
        }
        return Answer(200, document)

    async def _watch(
        self, request: Request, place: _Place, selector: selectors.Selector
    ) -> AsyncGenerator[bytes, None]:
        since = request.query.get("resourceVersion", "")
        if since in {"", "0"}:
            listing = await objects.collect(
                self.store.list(place.kind, namespace=place.namespace, selector=selector)
            )
            since = listing.revision
            for body in listing.items:
                yield _line("ADDED", body)
        changes = self.store.watch(place.kind, since, namespace=place.namespace, selector=selector)
        try:
            async with asyncio.timeout(int(request.query.get("timeoutSeconds") or 3600)):
                async for change in changes:
                    if change.verb is not objects.Verb.BOOKMARK:
                        yield _line(change.verb.value, change.object)
                    elif request.query.get("allowWatchBookmarks") == "true":
                        own = {"kind": place.kind.name, "apiVersion": place.kind.api_version}
                        revision = {"metadata": {"resourceVersion": change.revision}}
                        yield _line("BOOKMARK", {**own, **revision})
        except TimeoutError:
            return
        except (refusals.Gone, refusals.Unavailable) as error:
            yield _line("ERROR", status.failure(error, place.kind))
        finally:
            await changes.aclose()

    async def _create(self, request: Request, place: _Place) -> Answer:
        body = _mapping(request)
        if place.kind in {kinds.TOKEN_REVIEWS, kinds.SUBJECT_ACCESS_REVIEWS}:
            return Answer(201, {**body, "status": self._reviewed(place.kind, body["spec"])})
        if place.namespace:
            written = objects.text(body, "namespace") or place.namespace
            if written != place.namespace:
                raise refusals.Malformed("the namespace of the object is not that of the request")
            body = {**body, "metadata": {**objects.metadata(body), "namespace": written}}
            # Admission: NamespaceLifecycle.
            if place.namespace != "default":
                await self._namespace(place.namespace)
        made = await self.store.create(
            place.kind, body, dry_run=_dry(request), manager=_manager(request)
        )
        if place.kind == kinds.CUSTOM_RESOURCES:
            self.served.define(made)
        return Answer(201, made)

    def _reviewed(self, kind: kinds.Kind, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Reviews are answered and not kept."""
        if kind == kinds.TOKEN_REVIEWS:
            if spec["token"] in self.reviews:
                return dict(self.reviews[spec["token"]])
            user, _ = self.bearers.get(spec["token"], ("", frozenset()))
            if not user:
                return {"user": {}, "error": "token is not valid"}
            return {"authenticated": True, "user": {"username": user, "groups": ["g"]}}
        asked = (spec["user"], spec["nonResourceAttributes"]["path"])
        known = {(user, path) for user, paths in self.bearers.values() for path in paths}
        return {"allowed": asked in known}

    async def _namespace(self, name: str) -> None:
        await self.store.get(objects.Ref(kinds.NAMESPACES, name))

    async def _change(self, request: Request, place: _Place) -> Answer:
        content = request.content.partition(";")[0].strip()
        patch: writing.Write
        if request.method == "PUT":
            patch = writing.Replacement(_mapping(request))
        elif content == "application/json-patch+json":
            body = jsonpatch.apply(await self.store.get(place.ref), _decoded(request))
            patch = writing.Replacement(body)
        elif content == "application/apply-patch+yaml":
            force = request.query.get("force") == "true"
            patch = objects.Apply(_mapping(request), _manager(request), force)
        elif content == "application/strategic-merge-patch+json":
            patch = objects.Strategic(_mapping(request))
        elif content == "application/merge-patch+json":
            patch = objects.Merge(_mapping(request))
        else:
            raise refusals.Refused(f"the body of the request was in an unknown format: {content}")
        existed = True
        if isinstance(patch, objects.Apply):
            existed = await self._exists(place)
        changed = await self.store.patch(
            place.ref,
            patch,
            subresource=place.subresource,
            dry_run=_dry(request),
            manager=_manager(request),
        )
        if place.kind == kinds.CUSTOM_RESOURCES and not _dry(request):
            self.served.define(changed)
        return Answer(200 if existed else 201, changed)

    async def _exists(self, place: _Place) -> bool:
        with contextlib.suppress(refusals.NotFound):
            await self.store.get(place.ref)
            return True
        return False

    async def _delete(self, request: Request, place: _Place) -> Answer:
        options = _mapping(request) if request.body else {}
        before = await self.store.get(place.ref)
        known = options.get("preconditions") or {}
        grace = request.query.get("gracePeriodSeconds", options.get("gracePeriodSeconds"))
        await self.store.delete(
            place.ref,
            uid=known.get("uid", ""),
            revision=known.get("resourceVersion", ""),
            grace_seconds=None if grace is None else int(grace),
            dry_run=_dry(request) or bool(options.get("dryRun")),
        )
        if place.kind == kinds.CUSTOM_RESOURCES:
            self.served.drop(before)
        try:
            return Answer(200, await self.store.get(place.ref))
        except refusals.NotFound:
            uid = objects.text(before, "uid")
            own = {"name": place.name, "kind": place.kind.plural, "group": place.kind.group}
            return Answer(200, status.success(details={**own, "uid": uid}))

    async def _bind(self, request: Request, place: _Place) -> Answer:
        body = _mapping(request)
        await self.store.bind(
            place.ref,
            body["target"]["name"],
            uid=objects.text(body, "uid"),
            annotations=objects.metadata(body).get("annotations") or {},
        )
        return Answer(201, status.success(201))

    async def _evict(self, request: Request, place: _Place) -> Answer:
        body = _mapping(request)
        if objects.text(body, "name") not in {"", place.name}:
            raise refusals.Malformed("name in URL does not match name in Eviction object")
        options = body.get("deleteOptions") or {}
        await self.store.evict(
            place.ref,
            uid=(options.get("preconditions") or {}).get("uid", ""),
            grace_seconds=options.get("gracePeriodSeconds"),
            dry_run=_dry(request) or bool(options.get("dryRun")),
        )
        return Answer(201, status.success(201))


def _failed(error: refusals.ObjectsError, kind: kinds.Kind | None = None, name: str = "") -> Answer:
    body = status.failure(error, kind, name)
    return Answer(body["code"], body)


def _line(verb: str, body: objects.Object) -> bytes:
    return json.dumps({"type": verb, "object": body}, separators=(",", ":")).encode() + b"\n"


def _dry(request: Request) -> bool:
    return request.query.get("dryRun") == "All"


def _manager(request: Request) -> str:
    return request.query.get("fieldManager") or "unknown"


def _decoded(request: Request) -> Any:
    try:
        return (
            yaml.safe_load(request.body) if "yaml" in request.content else json.loads(request.body)
        )
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise refusals.Malformed(f"the body cannot be read: {error}") from error


def _mapping(request: Request) -> dict[str, Any]:
    body = _decoded(request)
    if not isinstance(body, dict):
        raise refusals.Malformed("the body is no object")
    return body
