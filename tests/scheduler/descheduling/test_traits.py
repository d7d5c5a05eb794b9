"""What only a descheduler asks of a pod: nonsense says nothing, and hides nothing."""

from __future__ import annotations

import pytest

from koordlet.scheduler.descheduling import traits
from koordlet.scheduler.objects.wire import BadObjectError
from tests.kit.descheduling import containers, pod


def test_states_volumes_and_annotations_are_read() -> None:
    """Containers of all kinds, claims that are made for the pod, costs."""
    body = pod(
        "p",
        "n1",
        annotations={
            "scheduling.koordinator.sh/eviction-cost": "-5",
            "controller.kubernetes.io/pod-deletion-cost": "7",
        },
        spec={
            "containers": [{"image": "b"}, {"image": "a"}],
            "volumes": [
                {"name": "e", "ephemeral": {}},
                {"name": "c", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "h", "hostPath": {"path": "/"}},
            ],
        },
        status={
            "initContainerStatuses": containers(2, terminated={"reason": "Error", "exitCode": 3}),
            "containerStatuses": containers(1, waiting={"reason": "CrashLoopBackOff"}),
        },
    )
    known = traits.decode(body)
    assert (known.images, known.claims) == (("a", "b"), ("p-e", "data"))
    assert (known.local_storage, known.eviction_cost, known.deletion_cost) == (True, -5, 7)
    init, main = known.containers
    assert (init.kind, init.restarts, init.terminated, init.exit_code) == ("init", 2, "Error", 3)
    assert (main.kind, main.waiting, main.exit_code) == ("", "CrashLoopBackOff", None)


@pytest.mark.parametrize("cost", ["+5", "05", "05x", "", "99999999999", 5, None])
def test_a_cost_that_is_none_is_zero(cost: object) -> None:
    """A typing error neither protects a pod nor gives it up."""
    body = pod("p", "n1", annotations={"scheduling.koordinator.sh/eviction-cost": cost})
    assert traits.decode(body).eviction_cost == 0


@pytest.mark.parametrize(
    ("label", "policy"),
    [
        ("Delete", "Delete"),
        ("SoftEviction", "SoftEviction"),
        ("delete", ""),
        ("Sofly", ""),
        (7, ""),
    ],
)
def test_a_policy_that_is_none_is_that_of_the_configuration(label: object, policy: str) -> None:
    """The peer's, too: a job that names it would fail in each round anew."""
    body = pod("p", "n1", labels={traits.POLICY: label})
    assert traits.decode(body).policy == policy


@pytest.mark.parametrize("part", ["metadata", "spec", "status"])
def test_a_pod_that_cannot_be_read_is_an_error(part: str) -> None:
    """Nobody knows whether it is protected, so it is not looked at."""
    with pytest.raises(BadObjectError, match=part):
        traits.decode({**pod("p", "n1"), part: ["nonsense"]})


@pytest.mark.parametrize(
    ("phase", "ended"),
    [("Succeeded", True), ("Failed", True), ("Running", False), ("Pending", False), ("", False)],
)
def test_a_pod_has_ended_in_two_phases(phase: str, *, ended: bool) -> None:
    """Whatever its containers are: an evictor goes round its limits for it."""
    assert traits.decode(pod("p", "n1", status={"phase": phase})).ended is ended
