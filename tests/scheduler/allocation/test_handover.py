"""What is left in a reservation after its owners have taken their part."""

from __future__ import annotations

from koordlet.model import cpuset
from koordlet.scheduler.allocation import handover
from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.objects import requests
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.reservation import parsing
from koordlet.scheduler.reservation.info import ReservationInfo
from tests.kit import clusters
from tests.kit.reservations import reservation

CPUS = cpuset.CPUSet.parse


def holding(name: str, cpus: str | None, parts: dict[int, dict[str, int]]) -> Pod:
    """A pod, or a stand-in, that has this of a machine."""
    (made,) = inventory.load([clusters.pod(name)]).pending
    made.cpus, made.parts = None if cpus is None else CPUS(cpus), parts
    return made


def test_owners_take_from_what_was_chosen() -> None:
    """CPUs and amounts go down by what each owner has, never below nothing."""
    info = ReservationInfo(parsing.read(reservation("r")))
    info.reserve_pod = holding("r", "0-3", {0: {requests.CPU: 4000, "memory": 100}})
    info.owners = {
        "d/a": holding("a", "0-1", {0: {requests.CPU: 2000, "memory": 150}, 1: {"memory": 7}}),
        "d/b": holding("b", None, {}),
    }
    left = handover.rest(info)

    assert left is not None
    assert left.cpus == CPUS("2-3")
    assert left.parts == {0: {requests.CPU: 2000, "memory": 0}}
    assert info.reserve_pod.parts == {0: {requests.CPU: 4000, "memory": 100}}


def test_nothing_was_chosen_for_it() -> None:
    """A reservation without a place, or without CPUs and amounts, hands nothing over."""
    info = ReservationInfo(parsing.read(reservation("r")))
    assert handover.rest(info) is None
    info.reserve_pod = holding("r", None, {})
    assert handover.rest(info) is None


def test_restricted_gives_nothing_else() -> None:
    """Of the names that it restricts; an aligned one lets its owners have more."""
    restricted = ReservationInfo(
        parsing.read(reservation("r", cpu="2", allocatePolicy="Restricted"))
    )
    aligned = ReservationInfo(parsing.read(reservation("r", cpu="2", allocatePolicy="Aligned")))

    assert handover.exclusive(restricted, requests.CPU)
    assert not handover.exclusive(restricted, "example.com/other")
    assert not handover.exclusive(aligned, requests.CPU)
