"""The reservation of a migration job: what is made of a pod, what is read of one."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.model import moment
from koordlet.scheduler.migration import room
from koordlet.scheduler.migration.job import MigrationJob, PodRef
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.reservation import service
from koordlet.scheduler.store import merging

NOW = 1_800_000_000.0
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "r",
         "controller": True}  # fmt: skip


def pod(**spec: Any) -> dict[str, Any]:
    """A pod on node n1 with all that a scheduler wrote on it."""
    return {
        "metadata": {
            "name": "web-1", "namespace": "shop", "uid": "u-1", "resourceVersion": "7",
            "labels": {"app": "web"}, "ownerReferences": [OWNER], "managedFields": [{}],
            "annotations": {
                "team": "a",
                "scheduling.koordinator.sh/resource-status": "{}",
                "scheduling.koordinator.sh/device-allocated": "{}",
                "scheduling.koordinator.sh/reservation-allocated": "{}",
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
            },
        },
        "spec": {
            "nodeName": "n1",
            "schedulingGates": [{"name": "g"}],
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
            **spec,
        },
    }  # fmt: skip


def job(**more: Any) -> MigrationJob:
    """A job of that pod."""
    return MigrationJob(name="j", uid="j-1", pod=PodRef("shop", "web-1", "u-1"), **more)


def test_the_replacement_is_reserved_as_its_controller_would_make_it() -> None:
    """Without what was done with the old pod; closed, for that controller, a little longer."""
    made = room.body(job(ttl=300.0), pod(), NOW)
    service.check({**made, "metadata": {**made["metadata"], "uid": "x"}}, "made")
    template = made["spec"]["template"]
    assert template["metadata"] == {
        "namespace": "shop", "labels": {"app": "web"}, "annotations": {"team": "a"},
    }  # fmt: skip
    assert "nodeName" not in template["spec"]
    assert "schedulingGates" not in template["spec"]
    assert made["spec"]["owners"] == [{"controller": {**OWNER, "namespace": "shop"}}]
    assert (made["metadata"]["name"], made["spec"]["ttl"]) == ("j-1", "6m0s")
    assert (made["spec"]["unschedulable"], made["spec"]["allocateOnce"]) == (True, True)


def test_its_own_node_is_excluded_in_each_alternative() -> None:
    """Terms are ORed: one that is left out would let it back."""
    terms: list[dict[str, Any]] = [
        {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
        {"matchFields": [1]},
    ]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": terms}}}  # fmt: skip
    other = {"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}
    for given, expected in (
        (affinity, [{**terms[0], "matchFields": [other]}, {"matchFields": [1, other]}]),
        ({}, [{"matchFields": [other]}]),
    ):
        spec = room.body(job(), pod(affinity=given), NOW)["spec"]["template"]["spec"]
        required = spec["affinity"]["nodeAffinity"]
        (selector,) = required.values()
        assert selector["nodeSelectorTerms"] == expected


def test_the_author_of_a_job_has_the_last_word_but_for_its_single_use() -> None:
    """Such as the node where the room is to be."""
    template = {"spec": {"template": {"spec": {"nodeName": "n7"}}, "allocateOnce": False}}
    made = room.body(job(template=template), pod(), NOW)["spec"]
    assert made["template"]["spec"]["nodeName"] == "n7"
    assert made["allocateOnce"] is True


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ({"spec": "small"}, "spec.reservationOptions.template: spec is not an object: 'small'"),
        ({"metadata": [1]}, "spec.reservationOptions.template: metadata is not an object: [1]"),
        ({"metadata": {"annotations": 5}}, "template: annotations is not an object: 5"),
    ],
)
def test_a_template_that_is_no_reservation_names_the_field(template: Any, words: str) -> None:
    """The job says so, and is tried again after a pause."""
    with pytest.raises(BadObjectError) as raised:
        room.body(job(template=template), pod(), NOW)
    assert words in str(raised.value)


@pytest.mark.parametrize("template", [{"metadata": None}, {"metadata": {"annotations": None}}])
def test_whatever_a_template_takes_away_the_room_is_known_as_that_of_its_job(template: Any) -> None:
    """Or nobody would give it back."""
    made = room.body(job(template=template), pod(), NOW)["metadata"]
    assert (made["name"], made["annotations"]) == ("j-1", {room.JOB: "j"})


def test_nobody_reserves_for_a_pod_that_nobody_creates_again() -> None:
    """The peer makes a reservation that is invalid, and tries for ever."""
    bare = pod()
    bare["metadata"]["ownerReferences"] = []
    with pytest.raises(BadObjectError, match="nobody would create pod shop/web-1 again"):
        room.body(job(), bare, NOW)


def test_a_pod_without_a_node_gets_the_room_itself() -> None:
    """And is open from the start."""
    waits = pod()
    del waits["spec"]["nodeName"]
    made = room.body(job(), waits, NOW)
    assert made["spec"]["owners"][0]["object"]["uid"] == "u-1"
    held = room.read({**made, "metadata": {**made["metadata"], "uid": "x"}})
    assert (held.for_pod, held.closed) == (True, False)


def test_opening_lets_the_replacement_in_for_long_enough() -> None:
    """What is written is what is read."""
    made = room.body(job(ttl=300.0), pod(), NOW)
    made["metadata"] |= {"uid": "x", "creationTimestamp": moment.spell(NOW)}
    held = room.read(made)
    assert (held.closed, held.ends_soon(NOW), held.job) == (True, True, "j")
    assert held.controller == ("shop", "ReplicaSet", "web")
    opened = room.read(merging.merge(made, room.opening(NOW, NOW)))
    assert (opened.closed, opened.opened, opened.expires) == (False, NOW, NOW + room.GIVEN)
    assert not opened.ends_soon(NOW)
    assert opened.ends_soon(NOW + room.GIVEN - room.LEAST + 1)
