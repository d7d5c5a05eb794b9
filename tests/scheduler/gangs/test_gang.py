"""One model for all forms."""

from __future__ import annotations

import dataclasses

import pytest

from koordlet.kubeapi import pod_groups
from koordlet.kubeapi.pod_groups import MatchPolicy
from koordlet.scheduler.gangs import gang
from koordlet.scheduler.gangs.gang import Gang, GangDefaults
from tests.kit import gangs


def of_pod(**more: object) -> Gang | None:
    """The gang that a pod configures."""
    membership = gangs.decoded(gangs.member("p", "g", **more)).gang  # type: ignore[arg-type]
    assert membership is not None
    return gang.of_membership(membership, GangDefaults())


def test_a_pod_configures_its_gang_with_defaults() -> None:
    """Ten minutes, strict, once satisfied; the total is never below the minimum."""
    configured = of_pod(minimum=3, notes={pod_groups.TOTAL: "2"})
    assert configured is not None
    assert (configured.min, configured.total, configured.wait_seconds) == (3, 3, 600.0)
    assert configured.strict
    assert configured.match_policy is MatchPolicy.ONCE_SATISFIED
    assert of_pod(minimum="three") is None
    assert of_pod() is None


@pytest.mark.parametrize(
    ("spelled", "seconds"), [("30s", 30.0), ("0", 600.0), ("-5s", 600.0), ("soon", 600.0)]
)
def test_a_waiting_time_that_is_none_is_the_default(spelled: str, seconds: float) -> None:
    """As the peer has it."""
    configured = of_pod(minimum=1, notes={pod_groups.WAITING_TIME: spelled})
    assert configured is not None
    assert configured.wait_seconds == seconds


def test_kubernetes_own_group_counts_waiting_and_running_for_five_minutes() -> None:
    """Its mode is strict and its group is itself."""
    read = gang.of_pod_group(pod_groups.pod_group(gangs.own_group("g", 4)), GangDefaults())
    assert read is not None
    assert (read.native, read.min, read.strict, read.group_ids) == (True, 4, True, ())
    assert (read.match_policy, read.wait_seconds) == (MatchPolicy.WAITING_AND_RUNNING, 300.0)


@pytest.mark.parametrize(
    ("policy", "waiting", "bound", "satisfied", "valid"),
    [
        ("only-waiting", 3, 0, False, True),
        ("only-waiting", 2, 5, True, False),
        ("waiting-and-running", 1, 2, False, True),
        ("waiting-and-running", 1, 1, True, False),
        ("once-satisfied", 1, 2, False, False),
        ("once-satisfied", 0, 0, True, True),
        ("once-satisfied", 3, 0, False, True),
    ],
)
def test_enough_by_policy(
    policy: str, waiting: int, bound: int, satisfied: bool, valid: bool
) -> None:
    """A minimum of three by each match policy."""
    base = of_pod(minimum=3)
    assert base is not None
    counted = dataclasses.replace(base, match_policy=MatchPolicy(policy))
    assert counted.valid(waiting=waiting, bound=bound, satisfied=satisfied) is valid
