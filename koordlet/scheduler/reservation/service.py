"""Reservations as a service: create, get, list, watch, delete, describe.

Covers: the same calls over every store; defaults and validation for a store without an API server.
Does not cover: transport (``rpc``), printing (``cli``), the schema of the definition.

Rules:
1. Creating is idempotent: a repeated create with the same client token, or of the same
   specification under the same name, gives the object that is there. Another specification under a
   name that is taken is refused.
2. What cannot be meant is refused before it is stored.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from koordlet.kubeapi import kinds, objects, refusals, selectors
from koordlet.model import moment
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.reservation import keys, parsing

#: Set by a store or a definition, not by the author: no difference between two wishes.
_FILLED = {"ttl": "24h"}


#: One line of a timeline: when (RFC 3339), and what.
ReservationEntry = tuple[str, str]


class ReservationService:
    """The calls, over one store."""

    def __init__(self, store: objects.Objects) -> None:
        self._store = store

    async def create(
        self, body: objects.Object, token: str = "", *, dry_run: bool = False
    ) -> objects.Object:
        """The reservation as it is stored."""
        wanted = _tokened(body, token)
        name = objects.text(wanted, "name")
        check(wanted, f"reservation {name}")
        try:
            return await self._store.create(kinds.RESERVATIONS, wanted, dry_run=dry_run)
        except refusals.AlreadyExists as error:
            there = await self.get(name)
            notes = objects.part(objects.metadata(there), "annotations")
            same = token and notes.get(keys.CLIENT_TOKEN) == token
            if same or _wish(there) == _wish(wanted):
                return there
            raise refusals.AlreadyExists(
                "a reservation of this name exists with another specification",
                culprit=f"reservation {name}",
                fix="delete it first, or choose another name",
                reason="AlreadyExists",
            ) from error

    async def get(self, name: str) -> objects.Object:
        """One reservation."""
        return await self._store.get(objects.Ref(kinds.RESERVATIONS, name))

    async def every(self, labels: str = "") -> objects.Page:
        """All of them, or those with these labels."""
        chosen = selectors.Selector(labels=labels)
        return await objects.collect(self._store.list(kinds.RESERVATIONS, selector=chosen))

    def watch(self, since: str) -> AsyncGenerator[objects.Change, None]:
        """What changes after the revision of a list."""
        return self._store.watch(kinds.RESERVATIONS, since)

    async def delete(self, name: str, *, uid: str = "") -> None:
        """Its pods keep running; what it still held is free."""
        await self._store.delete(objects.Ref(kinds.RESERVATIONS, name), uid=uid)

    async def describe(self, name: str) -> tuple[objects.Object, list[ReservationEntry], list[str]]:
        """One reservation, what became of it and when, and warnings about it."""
        body = await self.get(name)
        entries = _own_entries(body) + await self._events(body)
        ordered = sorted(dict.fromkeys(entries), key=lambda entry: entry[0])
        return body, ordered, parsing.warnings(body)

    async def _events(self, body: objects.Object) -> list[ReservationEntry]:
        uid = objects.text(body, "uid")
        try:
            listing = await objects.collect(self._store.list(kinds.EVENTS))
        except refusals.ObjectsError:
            return []
        return [
            (_when(item), f"{item.get('reason')}: {item.get('note')}")
            for item in listing.items
            if objects.part(item, "regarding").get("uid") == uid and uid
        ]


def _when(event: Mapping[str, Any]) -> str:
    series = objects.part(event, "series")
    spelled = series.get("lastObservedTime") or event.get("eventTime")
    spelled = spelled or objects.text(event, "creationTimestamp")
    try:
        return moment.spell(moment.parse(spelled))
    except ValueError:
        return ""


def _own_entries(body: objects.Object) -> list[ReservationEntry]:
    """What the object itself tells."""
    entries = [(objects.text(body, "creationTimestamp"), "created")]
    try:
        spec, status = parsing.read(body), parsing.read_status(body)
    except BadObjectError as error:
        return [*entries, (entries[0][0], f"cannot be read: {error}")]
    for condition in status.conditions:
        verdict = "" if condition.status else "not "
        message = f": {condition.message}" if condition.message else ""
        state = f"{verdict}{condition.type} ({condition.reason}){message}"
        entries.append((condition.changed, state))
        if condition.probed > condition.changed:
            entries.append((condition.probed, f"{condition.reason}{message}"))
    if spec.expires_at is not None and not status.phase.over:
        entries.append((moment.spell(spec.expires_at), "expires"))
    return [entry for entry in entries if entry[0]]


def _tokened(body: objects.Object, token: str) -> dict[str, Any]:
    wanted = {
        "apiVersion": kinds.RESERVATIONS.api_version,
        "kind": kinds.RESERVATIONS.name,
        **{key: value for key, value in body.items() if key != "status"},
    }
    if token:
        meta = dict(objects.part(wanted, "metadata"))
        meta["annotations"] = {**objects.part(meta, "annotations"), keys.CLIENT_TOKEN: token}
        wanted["metadata"] = meta
    return wanted


def _wish(body: objects.Object) -> Mapping[str, Any]:
    return {**_FILLED, **objects.part(body, "spec")}


def admit(ref: objects.Ref, old: Mapping[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
    """Admit a Reservation, or refuse it with the field that is wrong; other kinds pass."""
    if ref.kind != kinds.RESERVATIONS:
        return new
    spec = new.get("spec")
    if isinstance(spec, Mapping) and old is None:
        new = {**new, "spec": {"ttl": "24h", **spec}}
        if not new.get("status"):
            new["status"] = {"phase": "Pending"}
    if old is None or old.get("spec") != new.get("spec"):
        check(new, str(ref))
    return new


def check(body: Mapping[str, Any], culprit: str) -> None:
    """``Invalid`` names what cannot be meant."""
    try:
        spec = parsing.read(body)
    except BadObjectError as error:
        raise refusals.Invalid(str(error), culprit=culprit, reason="Invalid") from error
    if spec.fault:
        raise refusals.Invalid(spec.fault, culprit=culprit, reason="Invalid")
