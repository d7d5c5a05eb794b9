"""Who owns the fields of an object, and who of them still writes."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.report.objects import holders


def entry(manager: str, time: str, fields: Any = None) -> dict[str, Any]:
    """A part of ``managedFields``."""
    owned = {"f:status": {"f:capacity": {"f:x/y": {}}}} if fields is None else fields
    return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": owned}


def object_with(*entries: Any) -> dict[str, Any]:
    """An object whose fields these managers own."""
    return {"metadata": {"managedFields": list(entries)}}


def test_who_still_writes() -> None:
    """Whoever was last heard of long before the newest write of anybody is gone."""
    there = object_with(
        entry("old", "2026-11-21T10:00:00Z"),
        entry("new", "2026-11-21T10:10:01Z"),
        entry("kubelet", "2026-11-21T10:15:00Z", {"f:status": {"f:capacity": {}}}),
    )
    path = ("status", "capacity", "x/y")

    assert [owner.manager for owner in holders.of(there, *path)] == ["old", "new"]
    assert [owner.manager for owner in holders.writing(there, *path)] == ["new"]


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"metadata": None},
        {"metadata": {"managedFields": {}}},
        object_with(None, 1, {}, {"fieldsV1": 1}),
        object_with(entry("m", "x", {"f:status": None})),
    ],
)
def test_what_cannot_be_read_is_nobodys(broken: dict[str, Any]) -> None:
    """A server may leave it out, or say nonsense."""
    assert holders.of(broken, "status", "capacity") == ()


def test_a_time_that_cannot_be_read_is_now() -> None:
    """Who is not known to be gone is there."""
    there = object_with(entry("a", "yesterday"), entry("b", "2026-11-21T10:15:00Z"))

    writing = holders.writing(there, "status", "capacity", "x/y")
    assert [owner.manager for owner in writing] == ["a", "b"]
