"""What a store without an API server checks and fills in when a Reservation is written.

Covers: the defaults and the validation that the definition's schema has elsewhere.
Does not cover: the schema (an API server has its own copy of it).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.reservation import parsing


def reservations(
    ref: objects.Ref, old: Mapping[str, Any] | None, new: dict[str, Any]
) -> dict[str, Any]:
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
        found = parsing.read(body)
    except BadObjectError as error:
        raise refusals.Invalid(str(error), culprit=culprit, reason="Invalid") from error
    if found.fault:
        raise refusals.Invalid(found.fault, culprit=culprit, reason="Invalid")
