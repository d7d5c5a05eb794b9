"""Reservations between JSON and protobuf.

Covers: one object to its message, descriptions. Does not cover: calls (``reservations``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from koordlet.kubeapi import objects
from koordlet.model import moment
from koordlet.rpc.gen import reservations_pb2 as pb


def message(body: objects.Object) -> pb.Reservation:
    """The message of an object; parts of a wrong type are as if they were not there."""
    spec, status = _part(body, "spec"), _part(body, "status")
    reservation = pb.Reservation(
        name=objects.text(body, "name"),
        uid=objects.text(body, "uid"),
        revision=objects.revision(body),
        phase=str(status.get("phase") or "Pending"),
        node=str(status.get("nodeName") or ""),
        allocatable=_amounts(status, "allocatable"),
        allocated=_amounts(status, "allocated"),
        current_owners=[_owner(one) for one in _several(status, "currentOwners")],
        conditions=[_condition(one) for one in _several(status, "conditions")],
        allocate_once=spec.get("allocateOnce") is not False,
        allocate_policy=str(spec.get("allocatePolicy") or ""),
        cpus=str(_held(body).get("cpuset") or ""),
        manifest=json.dumps(body, separators=(",", ":"), default=str),
    )
    created = _time(objects.text(body, "creationTimestamp"))
    if created is not None:
        reservation.created.CopyFrom(created)
    expires = _expires(spec, objects.text(body, "creationTimestamp"))
    if expires is not None:
        reservation.expires.CopyFrom(expires)
    return reservation


def description(
    body: objects.Object, timeline: Iterable[tuple[str, str]], warnings: Iterable[str]
) -> pb.ReservationDescription:
    """Description of a reservation with its timeline; times are RFC 3339."""
    return pb.ReservationDescription(
        reservation=message(body),
        timeline=[
            pb.ReservationDescription.Entry(at=_time(at), what=what) for at, what in timeline
        ],
        warnings=list(warnings),
    )


def _owner(body: Mapping[str, Any]) -> pb.CurrentOwner:
    return pb.CurrentOwner(
        namespace=str(body.get("namespace") or ""),
        name=str(body.get("name") or ""),
        uid=str(body.get("uid") or ""),
    )


def _condition(body: Mapping[str, Any]) -> pb.ReservationCondition:
    return pb.ReservationCondition(
        type=str(body.get("type") or ""),
        status=str(body.get("status") or ""),
        reason=str(body.get("reason") or ""),
        message=str(body.get("message") or ""),
        changed=_time(str(body.get("lastTransitionTime") or "")),
    )


def _expires(spec: Mapping[str, Any], created: str) -> Timestamp | None:
    """``expires`` has the say; a ttl of nothing never ends."""
    if spec.get("expires"):
        return _time(str(spec["expires"]))
    try:
        ttl = moment.duration(spec.get("ttl", "24h"))
        return _time(moment.spell(moment.parse(created) + ttl)) if ttl > 0 else None
    except ValueError:
        return None


def _time(spelled: str) -> Timestamp | None:
    try:
        return Timestamp(seconds=int(moment.parse(spelled)))
    except ValueError:
        return None


def _held(body: objects.Object) -> Mapping[str, Any]:
    """The CPUs that it holds by number."""
    notes = _part(objects.metadata(body), "annotations")
    try:
        found = json.loads(str(notes.get("scheduling.koordinator.sh/resource-status") or "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}


def _amounts(status: Mapping[str, Any], key: str) -> dict[str, str]:
    return {str(name): str(one) for name, one in _part(status, key).items()}


def _several(body: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = body.get(key)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _part(body: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = body.get(key)
    return found if isinstance(found, Mapping) else {}
