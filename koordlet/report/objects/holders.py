"""Field owners of an object, as in ``metadata.managedFields``. Pure.

Covers: the holders of one field, which of them still write. Does not cover: writing (``applying``).

What cannot be read there is nobody's: a server may leave it out.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from koordlet.kubeapi import objects
from koordlet.model.record import dataclass
from koordlet.report import documents

#: Who we are.
MANAGER = "koordlet"
#: A manager that has not written this long before the newest write of anybody is gone. The kubelet
#: writes a Node each five minutes; Koordinator's manager renews its resources as often.
GONE_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Holder:
    """A field manager that owns a field."""

    manager: str
    #: ``Apply`` or ``Update``.
    operation: str
    #: When it last wrote, by the server's clock; ``None`` where that is not told.
    at: float | None = None


def of(there: Mapping[str, Any], *path: str) -> tuple[Holder, ...]:
    """Owners of the field at this path of names."""
    return tuple(
        Holder(str(entry.get("manager", "")), str(entry.get("operation", "")), _at(entry))
        for entry in _entries(there)
        if _names(entry.get("fieldsV1"), path)
    )


def applied(there: Mapping[str, Any], subresource: str = "") -> bool:
    """True if koordlet has applied fields of the object."""
    return any(
        (entry.get("manager"), entry.get("operation")) == (MANAGER, "Apply")
        and (entry.get("subresource") or "") == subresource
        and bool(entry.get("fieldsV1"))
        for entry in _entries(there)
    )


def alone(there: Mapping[str, Any]) -> bool:
    """True if nobody but koordlet owns a field of the object."""
    return {entry.get("manager") for entry in _entries(there)} == {MANAGER}


def writing(there: Mapping[str, Any], *path: str) -> tuple[Holder, ...]:
    """Owners that still write, by the clock of the newest write of any owner."""
    newest = max((at for entry in _entries(there) if (at := _at(entry)) is not None), default=0.0)
    return tuple(
        holder
        for holder in of(there, *path)
        if holder.at is None or newest - holder.at < GONE_SECONDS
    )


def _entries(there: Mapping[str, Any]) -> list[documents.Document]:
    return documents.rows(objects.metadata(there), "managedFields")


def _names(fields: Any, path: tuple[str, ...]) -> bool:
    """True if a set of fields contains this one."""
    for step in path:
        if not isinstance(fields, Mapping) or f"f:{step}" not in fields:
            return False
        fields = fields[f"f:{step}"]
    return True


def _at(entry: Mapping[str, Any]) -> float | None:
    try:
        time = dt.datetime.fromisoformat(str(entry.get("time")))
    except ValueError:
        return None
    return time.timestamp() if time.tzinfo is not None else None
