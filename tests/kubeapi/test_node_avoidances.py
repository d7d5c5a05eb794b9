"""NodeAvoidances: entries as objects spell them, which give way, how long they last."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.kubeapi import node_avoidances
from koordlet.kubeapi.node_avoidances import Avoidance

START = 1767225600.0


def entry(name: str = "web", at: float = 0.0, seconds: float = 3600.0, **fields: Any) -> Avoidance:
    """An entry of a Deployment that begins at a moment."""
    since = START + at
    workload = ("shop", "Deployment", name)
    return Avoidance(workload=workload, since=since, until=since + seconds, **fields)


def test_an_entry_is_read_as_it_is_written() -> None:
    """Everything of it, for any number of entries."""
    entries = (
        entry(reason="Interference", message="noisy", by="descheduler/x", weight=7),
        entry("db", at=5.0),
    )
    body = {"metadata": {"name": "n1"}, "spec": node_avoidances.spec(entries)}

    known = node_avoidances.node_avoidance(body)
    assert (known.node, known.entries, known.faults) == ("n1", entries, ())


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"weight": 0}, "weight: expected 1 to 100, found 0"),
        ({"weight": True}, "weight: expected 1 to 100, found True"),
        ({"signature": {"kind": "Deployment"}}, "signature: namespace, kind and name"),
        ({"until": "2026-01-03T00:00:00Z"}, "until: expected a time of at most 24 hours"),
        ({"until": "2025-12-31T00:00:00Z"}, "until: expected a time of at most 24 hours"),
        ({"since": "yesterday"}, "yesterday"),
    ],
)
def test_an_entry_that_cannot_be_read_costs_itself_and_is_named(
    change: dict[str, Any], fault: str
) -> None:
    """By its place in the list."""
    body = {
        "metadata": {"name": "n1"},
        "spec": {"entries": [{**entry().body(), **change}, entry("db").body()]},
    }

    known = node_avoidances.node_avoidance(body)
    assert known.entries == (entry("db"),)
    assert len(known.faults) == 1
    assert known.faults[0].startswith("spec.entries[0]: ")
    assert fault in known.faults[0]


def test_the_same_workload_again_is_avoided_twice_as_long_up_to_a_day() -> None:
    """Counted from the newer eviction; one that had expired has no memory."""
    entries: tuple[Avoidance, ...] = ()
    lasting = []
    for round_ in range(6):
        entries, dropped = node_avoidances.added(entries, entry(at=60.0 * round_))
        lasting.append((entries[0].until - entries[0].since) / 3600)
        assert (len(entries), dropped) == (1, ())
    assert lasting == [1, 2, 4, 8, 16, 24]

    late = entry(at=300.0 + 86400.0)
    assert node_avoidances.added(entries, late)[0] == (late,)


@pytest.mark.parametrize(("seconds", "lasts"), [(1.0, 60.0), (1e9, 86400.0)])
def test_an_entry_lasts_from_a_minute_to_a_day(seconds: float, lasts: float) -> None:
    """Whatever a mover asks for."""
    [made], _ = node_avoidances.added((), entry(seconds=seconds))
    assert made.until - made.since == lasts


def test_of_too_many_entries_the_first_to_expire_gives_way() -> None:
    """Its place is the new one's."""
    entries = tuple(entry(f"w{number}", seconds=600.0 + number) for number in range(32))

    kept, dropped = node_avoidances.added(entries, entry("new", seconds=61.0))
    assert len(kept) == 32
    assert kept[0].workload[2] == "new"
    assert [each.workload[2] for each in dropped] == ["w0"]
