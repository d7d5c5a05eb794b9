"""What a node knows of a reservation."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from koordlet.model import moment, qos, reservation
from koordlet.policy.memory_io import memory_qos
from koordlet.workloads import reservations


def test_a_reservation() -> None:
    """Name, phase and node; its owners as they are."""
    owner = {"labelSelector": {"matchLabels": {"app": "web"}}}
    found = reservations.decode(
        {
            "metadata": {"name": "spare", "uid": "u1"},
            "spec": {"owners": [owner]},
            "status": {"nodeName": "n1", "phase": "Available"},
        }
    )

    assert found == reservation.Reservation(
        name="spare", uid="u1", phase="Available", node="n1", owners=(owner,)
    )


@pytest.mark.parametrize(
    "rest",
    [
        {},
        {"spec": None, "status": []},
        {"spec": "nonsense", "status": None},
        {"spec": {"owners": {}}, "status": {"phase": 3}},
        {"spec": {"owners": ["all", None]}, "status": {"nodeName": {}}},
    ],
)
def test_parts_of_a_wrong_type(rest: dict[str, Any]) -> None:
    """They are as if they were not there; where no part of them can be read that is said."""
    found = reservations.decode({"metadata": {"name": "r"}, **rest})

    wrong = [name for name, part in rest.items() if part is not None and not isinstance(part, dict)]
    assert wrong == [one.partition(":")[0] for one in found.problems]
    assert dataclasses.replace(found, problems=()) == reservation.Reservation(name="r")


def test_cpus_by_number_and_for_a_unit() -> None:
    """What a scheduler chose; the unit is a workload that holds its CPUs alone."""
    notes = {
        "scheduling.koordinator.sh/resource-status": '{"cpuset":"2-3"}',
        "koordlet.io/match": '{"unit":"db.service"}',
    }
    body = {
        "metadata": {"name": "db", "uid": "u", "annotations": notes},
        "status": {"phase": "Available", "nodeName": "n", "allocatable": {"cpu": "2"}},
    }
    found = reservations.decode(body)
    assert (str(found.cpus), found.cpu_count, found.match) == ("2-3", 2, "unit=db.service")

    [one] = reservations.workloads([found])
    assert (one.key, one.match, str(one.cpus)) == ("reservation/db", "unit=db.service", "2-3")
    assert one.requests == {"cpu": 2000}
    assert one.raw_qos is qos.Qos.LSE

    del notes["scheduling.koordinator.sh/resource-status"]
    [one] = reservations.workloads([reservations.decode(body)])
    assert (one.cpus, one.cpu_count) == (None, 2)
    body["status"]["phase"] = "Failed"
    assert reservations.workloads([reservations.decode(body)]) == ()


def test_used_up_is_not_yet_handed_over() -> None:
    """Its owner has a minute to arrive; who is here already is not waited for."""
    ready = {"type": "Ready", "reason": "Succeeded", "lastProbeTime": "2026-01-01T00:00:00Z"}
    owner = {"namespace": "d", "name": "web", "uid": "u"}
    status = {"phase": "Succeeded", "conditions": [None, ready], "currentOwners": [owner, 3]}
    found = reservations.decode({"metadata": {"name": "r"}, "status": status})
    at = moment.parse("2026-01-01T00:00:00Z")

    assert (found.drawn_by, found.used_at) == (("u",), at)
    asked = [(at + 1, ()), (at + 1, ("u",)), (at + 61, ()), (at - 1, ())]
    assert [found.arriving(wall, there) for wall, there in asked] == [True, False, False, False]
    ready["lastProbeTime"] = "noon"
    assert reservations.decode({"metadata": {}, "status": status}).used_at == 0.0


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("scheduling.koordinator.sh/resource-status", '{"cpuset":"7-2"}', "resource-status"),
        ("scheduling.koordinator.sh/resource-status", "{", "not JSON"),
        ("koordlet.io/match", '{"pid":"1"}', "neither one unit nor one cgroup"),
    ],
)
def test_annotations_that_make_no_sense(key: str, value: str, said: str) -> None:
    """They cost themselves, and are said."""
    found = reservations.decode({"metadata": {"name": "r", "annotations": {key: value}}})

    assert (found.cpus, found.match) == (None, "")
    assert said in found.problems[0]


def test_memory_is_asked_for_and_kept() -> None:
    """What is reserved counts as the workload's request, and all of it is protected."""
    body = {
        "metadata": {"name": "db", "annotations": {"koordlet.io/match": '{"cgroup":"db"}'}},
        "status": {"phase": "Available", "nodeName": "n", "allocatable": {"memory": "64Mi"}},
    }
    [one] = reservations.workloads([reservations.decode(body)])

    assert one.requests == {"memory": 64 << 20}
    assert one.wishes.memory_qos is not None
    assert memory_qos.protection(one.wishes.memory_qos, 64 << 20).min == 64 << 20
