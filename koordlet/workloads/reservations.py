"""Reservations as the API server has them.

Covers: one object to a ``Reservation``. Does not cover: listing and watching (``cluster``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koordlet.model import objects, reservation

#: Where the node that holds it stands; the peer's definition makes it selectable.
NODE_FIELD = "status.nodeName"


def decode(body: objects.Object) -> reservation.Reservation:
    """Parts of a wrong type are as if they were not there."""
    status, spec = _part(body, "status"), _part(body, "spec")
    owners = spec.get("owners")
    return reservation.Reservation(
        name=objects.key(body)[1],
        uid=objects.text(body, "uid"),
        phase=_text(status.get("phase")),
        node=_text(status.get("nodeName")),
        owners=tuple(one for one in owners if isinstance(one, Mapping))
        if isinstance(owners, list)
        else (),
    )


def _part(body: objects.Object, name: str) -> Mapping[str, Any]:
    found = body.get(name)
    return found if isinstance(found, Mapping) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
