"""Phases, conditions and times: what becomes of a reservation."""

from __future__ import annotations

from typing import Any

from koordlet.scheduler.reservation import lifecycle, parsing
from koordlet.scheduler.reservation.info import ReservationInfo
from koordlet.scheduler.reservation.spec import Condition, Phase, ReservationStatus
from tests.kit.clusters import node
from tests.kit.reservations import NOW, reservation, states

CREATED = {"creationTimestamp": "2023-11-14T22:13:20Z"}


def info(phase: Phase = Phase.PENDING, **more: Any) -> ReservationInfo:
    """One created at ``NOW``."""
    return ReservationInfo(parsing.read(reservation("r", meta=CREATED, **more)), phase=phase)


def test_age_ends_it() -> None:
    """A day by default; one that never found a node ends as well."""
    day = 24 * 3600

    assert lifecycle.advanced(info(), NOW + day, node_exists=True) is Phase.PENDING
    assert lifecycle.advanced(info(), NOW + day + 1, node_exists=True) is Phase.FAILED
    assert lifecycle.advanced(info(ttl="0"), NOW + 99 * day, node_exists=True) is Phase.PENDING
    available = info(Phase.AVAILABLE, ttl="1h")
    assert lifecycle.advanced(available, NOW + 3601, node_exists=True) is Phase.FAILED
    assert lifecycle.advanced(available, NOW, node_exists=False) is Phase.FAILED


def test_what_is_over_stays() -> None:
    """Neither age nor a lost node changes it."""
    for phase in (Phase.SUCCEEDED, Phase.FAILED):
        assert lifecycle.advanced(info(phase), NOW * 2, node_exists=False) is phase


def test_times_of_conditions() -> None:
    """Expiry moves the transition, success does not; the same again writes nothing."""
    room = info(Phase.AVAILABLE)
    room.node = "n"
    first = lifecycle.status(room, NOW)
    room.stored = first
    assert lifecycle.status(room, NOW + 60) == first

    room.phase = Phase.SUCCEEDED
    ready = lifecycle.status(room, NOW + 60).condition("Ready")
    assert ready is not None
    assert (ready.changed, ready.probed) == ("2023-11-14T22:13:20Z", "2023-11-14T22:14:20Z")

    room.phase = Phase.FAILED
    ready = lifecycle.status(room, NOW + 60).condition("Ready")
    assert ready is not None
    assert ready.changed == "2023-11-14T22:14:20Z"


def test_binding_replaces_what_was_said_before() -> None:
    """No message of an earlier failure is left."""
    failed = Condition(type="Scheduled", status=False, reason="Unschedulable", message="no room")
    room = info(Phase.AVAILABLE)
    room.node, room.stored = "n", ReservationStatus(conditions=(failed,))

    kinds = [(c.type, c.status, c.message) for c in lifecycle.status(room, NOW).conditions]
    assert kinds == [("Scheduled", True, ""), ("Ready", True, "")]


def over(reason: str, *, changed: str, probed: str) -> ReservationStatus:
    """A status that is over."""
    ready = Condition(type="Ready", status=False, reason=reason, changed=changed, probed=probed)
    return ReservationStatus(phase=Phase.FAILED, node="n", conditions=(ready,))


def test_removal() -> None:
    """A day after expiry, a day after the last probe of success, at once without its node."""
    rules = lifecycle.GarbageCollection()
    early, late = "2023-11-13T22:13:19Z", "2023-11-14T00:00:00Z"
    expired, fresh = (
        over("Expired", changed=early, probed=late),
        over("Expired", changed=late, probed=early),
    )

    assert lifecycle.removable(expired, rules, NOW, node_exists=True)
    assert not lifecycle.removable(fresh, rules, NOW, node_exists=True)
    assert lifecycle.removable(fresh, rules, NOW, node_exists=False)
    done = over("Succeeded", changed=early, probed=late)
    assert not lifecycle.removable(done, rules, NOW, node_exists=True)
    assert not lifecycle.removable(
        expired, lifecycle.GarbageCollection(collects=False), NOW, node_exists=True
    )


def test_expired_in_a_simulation() -> None:
    """Expires in the past: failed, never placed, its time in the message."""
    state = states(node("n"), reservation("r", cpu="1", expires="2020-01-01T00:00:00Z"))["r"]

    assert (state["phase"], state["node"]) == ("Failed", None)
    assert state["conditions"][0]["reason"] == "Expired"
    assert "2020-01-01T00:00:00Z" in state["conditions"][0]["message"]
