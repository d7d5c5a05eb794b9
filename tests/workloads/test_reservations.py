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
    decoded = reservations.decode(
        {
            "metadata": {"name": "spare", "uid": "u1"},
            "spec": {"owners": [owner]},
            "status": {"nodeName": "n1", "phase": "Available"},
        }
    )

    assert decoded == reservation.Reservation(
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
    decoded = reservations.decode({"metadata": {"name": "r"}, **rest})

    wrong = [name for name, part in rest.items() if part is not None and not isinstance(part, dict)]
    assert wrong == [problem.partition(":")[0] for problem in decoded.problems]
    assert dataclasses.replace(decoded, problems=()) == reservation.Reservation(name="r")


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
    decoded = reservations.decode(body)
    assert (str(decoded.cpus), decoded.cpu_count, decoded.match) == ("2-3", 2, "unit=db.service")

    [workload] = reservations.workloads([decoded])
    assert (workload.key, workload.match, str(workload.cpus)) == (
        "reservation/db",
        "unit=db.service",
        "2-3",
    )
    assert workload.requests == {"cpu": 2000}
    assert workload.raw_qos is qos.Qos.LSE

    del notes["scheduling.koordinator.sh/resource-status"]
    [workload] = reservations.workloads([reservations.decode(body)])
    assert (workload.cpus, workload.cpu_count) == (None, 2)
    body["status"]["phase"] = "Failed"
    assert reservations.workloads([reservations.decode(body)]) == ()


def test_used_up_is_not_yet_handed_over() -> None:
    """Its owner has a minute to arrive; who is here already is not waited for."""
    ready = {"type": "Ready", "reason": "Succeeded", "lastProbeTime": "2026-01-01T00:00:00Z"}
    owner = {"namespace": "d", "name": "web", "uid": "u"}
    status = {"phase": "Succeeded", "conditions": [None, ready], "currentOwners": [owner, 3]}
    decoded = reservations.decode({"metadata": {"name": "r"}, "status": status})
    at = moment.parse("2026-01-01T00:00:00Z")

    assert (decoded.drawn_by, decoded.used_at) == (("u",), at)
    moments = [(at + 1, ()), (at + 1, ("u",)), (at + 61, ()), (at - 1, ())]
    assert [decoded.arriving(wall, uids) for wall, uids in moments] == [True, False, False, False]
    ready["lastProbeTime"] = "noon"
    assert reservations.decode({"metadata": {}, "status": status}).used_at == 0.0


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("scheduling.koordinator.sh/resource-status", '{"cpuset":"7-2"}', "resource-status"),
        ("scheduling.koordinator.sh/resource-status", "{", "not JSON"),
        ("koordlet.io/match", '{"pid":"1"}', "neither one unit nor one cgroup"),
    ],
)
def test_annotations_that_make_no_sense(key: str, value: str, problem: str) -> None:
    """They cost themselves, and are said."""
    decoded = reservations.decode({"metadata": {"name": "r", "annotations": {key: value}}})

    assert (decoded.cpus, decoded.match) == (None, "")
    assert problem in decoded.problems[0]


def test_memory_is_asked_for_and_kept() -> None:
    """What is reserved counts as the workload's request, and all of it is protected."""
    body = {
        "metadata": {"name": "db", "annotations": {"koordlet.io/match": '{"cgroup":"db"}'}},
        "status": {"phase": "Available", "nodeName": "n", "allocatable": {"memory": "64Mi"}},
    }
    [workload] = reservations.workloads([reservations.decode(body)])

    assert workload.requests == {"memory": 64 << 20}
    assert workload.wishes.memory_qos is not None
    assert memory_qos.protection(workload.wishes.memory_qos, 64 << 20).min == 64 << 20
