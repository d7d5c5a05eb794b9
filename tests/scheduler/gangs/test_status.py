"""The status of PodGroups, as a function of counts and of the stored status."""

from __future__ import annotations

import dataclasses

import pytest

from koordlet.kubeapi import pod_groups
from koordlet.scheduler.gangs import status
from koordlet.scheduler.gangs.book import GangBook
from koordlet.scheduler.gangs.gang import Obstacle
from tests.kit import clusters, gangs

Counts = status.PodGroupCounts
#: Four members of a minimum of four, all on nodes.
BOUND = Counts(children=4, scheduled=4, tried=True)


@pytest.mark.parametrize(
    ("stored", "counts", "expected"),
    [
        ("", Counts(), "Pending"),
        ("Pending", Counts(children=3), "Pending"),
        ("Pending", Counts(children=4), "PreScheduling"),
        ("PreScheduling", Counts(children=4, tried=True), "Scheduling"),
        ("PreScheduling", Counts(children=4, scheduled=1), "Scheduling"),
        ("Scheduling", Counts(children=3), "Scheduling"),
        ("Scheduling", BOUND, "Scheduled"),
        ("Scheduled", dataclasses.replace(BOUND, running=4), "Running"),
        ("Running", Counts(children=2, scheduled=2, running=2, succeeded=2), "Running"),
        ("Running", Counts(children=3, scheduled=3, running=3), "Scheduling"),
        ("Running", Counts(), "Pending"),
        ("Running", Counts(succeeded=4), "Finished"),
        ("Running", Counts(children=2, scheduled=2, running=2, succeeded=1, failed=1), "Failed"),
        ("Running", Counts(children=2, scheduled=2, running=2, failed=1), "Scheduling"),
        ("Finished", Counts(), "Finished"),
        ("Failed", Counts(children=2, scheduled=2), "Failed"),
        ("Finished", Counts(children=1, renewed=True), "Pending"),
    ],
)
def test_each_phase_follows_from_the_stored_one_and_the_counts(
    stored: str, counts: status.PodGroupCounts, expected: str
) -> None:
    """Row by row; what was derived once is derived again, unless new members are counted."""
    known = status.phase(stored, 4, counts)
    assert known == expected
    if not counts.renewed:
        assert status.phase(known, 4, counts) == known


def test_a_group_without_a_minimum_is_pending_with_its_counts() -> None:
    """Its pods pass alone; nothing is reached."""
    assert status.phase("", 0, BOUND) == "Pending"


def test_only_what_differs_is_written_and_zero_is_as_good_as_missing() -> None:
    """Owners of the first child, and the moment that scheduling began, are written once."""
    book = GangBook()
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    book.put(gangs.decoded(gangs.labelled("a", "g")))
    entry = book.get("d/g")
    assert entry is not None
    assert status.changes(entry, Counts(), 0.0) == {}  # there is no PodGroup yet
    body = gangs.pod_group("g", 1)
    book.put_pod_group(pod_groups.pod_group(body))
    assert status.changes(entry, Counts(), 0.0) == {"phase": "Pending"}
    tried = Counts(children=1, tried=True)
    wanted = status.changes(entry, tried, 0.0)
    assert wanted == {"phase": "Scheduling", "scheduleStartTime": "1970-01-01T00:00:00Z"}
    book.put_pod_group(pod_groups.pod_group({**body, "status": {**wanted, "failed": 0}}))
    assert status.changes(entry, tried, 60.0) == {}
    labels = {pod_groups.POD_GROUP: "g"}
    pod = clusters.pod("a", labels=labels, meta={"uid": "a", "ownerReferences": [owner]})
    book.put(gangs.decoded(pod))
    assert status.changes(entry, tried, 60.0) == {"occupiedBy": "d/j"}


def test_the_condition_of_a_group_that_was_scheduled_never_becomes_false() -> None:
    """The time changes with the status alone; an error has its own reason."""
    own = pod_groups.pod_group(gangs.own_group("g", 2))
    assert status.condition(own, None, scheduled=False, now=0.0) is None
    waits = status.condition(own, Obstacle("d/a", "no room"), scheduled=False, now=0.0)
    assert waits == {
        "type": "PodGroupScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "pod group is unschedulable: d/a: no room",
        "observedGeneration": 1,
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }
    own = dataclasses.replace(own, status={"conditions": [waits]})
    assert status.condition(own, Obstacle("d/a", "no room"), scheduled=False, now=9.0) is None
    broken = Obstacle("d/a", "two domains", error=True)
    erred = status.condition(own, broken, scheduled=False, now=9.0)
    assert erred is not None
    assert (erred["reason"], erred["lastTransitionTime"]) == (
        "SchedulerError",
        "1970-01-01T00:00:00Z",
    )
    done = status.condition(own, None, scheduled=True, now=9.0)
    assert done is not None
    assert (done["status"], done["lastTransitionTime"]) == ("True", "1970-01-01T00:00:09Z")
    own = dataclasses.replace(own, status={"conditions": [done]})
    assert status.condition(own, broken, scheduled=False, now=20.0) is None


def test_the_condition_of_a_group_without_a_generation_is_written_once() -> None:
    """A real server gives these PodGroups none, and stores no ``observedGeneration`` of 0."""
    body = gangs.own_group("g", 2)
    del body["metadata"]["generation"]
    own = pod_groups.pod_group(body)
    done = status.condition(own, None, scheduled=True, now=0.0)
    assert done is not None
    stored = {key: value for key, value in done.items() if value}
    own = dataclasses.replace(own, status={"conditions": [stored]})
    assert status.condition(own, None, scheduled=True, now=9.0) is None


def test_only_a_gang_that_was_broken_has_the_condition_and_a_restart_knows_it() -> None:
    """Other conditions stay; an equal one is not written again."""
    own = pod_groups.pod_group(gangs.own_group("g", 2))
    assert status.broken_condition(own, is_broken=False, left=0, now=0.0) is None
    changed = status.broken_condition(own, is_broken=True, left=1, now=0.0)
    assert changed is not None
    assert (changed["status"], changed["reason"]) == ("True", "BindingFailed")
    other = {"type": "PodGroupScheduled", "status": "True"}
    several = status.with_condition(
        dataclasses.replace(own, status={"conditions": [other]}), changed
    )
    assert several == [other, changed]
    own = dataclasses.replace(own, status={"conditions": several})
    assert status.broken(own)
    assert status.broken_condition(own, is_broken=True, left=1, now=9.0) is None
    whole = status.broken_condition(own, is_broken=False, left=2, now=9.0)
    assert whole is not None
    assert (whole["status"], whole["lastTransitionTime"]) == ("False", "1970-01-01T00:00:09Z")
