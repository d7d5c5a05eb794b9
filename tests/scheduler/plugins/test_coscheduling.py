"""Arguments of the plugins of gangs."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.kubeapi.pod_groups import MatchPolicy
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.plugins import coscheduling


def test_arguments_of_both_peers_are_read_and_unknown_ones_are_named() -> None:
    """Go's duration of one, whole seconds of the other; what is unknown is a warning."""
    read = coscheduling.arguments(
        {
            "defaultTimeout": "1m30s",
            "defaultMatchPolicy": "only-waiting",
            "enablePreemption": False,
            "skipCheckScheduleCycle": True,
            "colour": "red",
        }
    )
    assert (read.wait_seconds, read.match_policy) == (90.0, MatchPolicy.ONLY_WAITING)
    assert (read.preempts, read.gathers) == (False, True)
    assert read.warnings == (
        "Coscheduling: 'colour' is unknown and ignored",
        "Coscheduling: skipCheckScheduleCycle has no effect: there are no cycles of gangs to check",
    )
    assert coscheduling.arguments({"permitWaitingTimeSeconds": 60}).wait_seconds == 60.0
    assert coscheduling.arguments({}).wait_seconds == 600.0
    assert not coscheduling.arguments({"awareNetworkTopology": False}).gathers


@pytest.mark.parametrize(
    "args",
    [
        {"controllerWorkers": 4},
    ],
)
def test_an_argument_without_effect_is_a_warning_that_names_it(args: Any) -> None:
    """Nobody believes that it works; the values that ask for nothing are silent."""
    [key] = args
    [warning] = coscheduling.arguments(args).warnings
    assert warning.startswith(f"Coscheduling: {key} has no effect: ")
    harmless = {"awareNetworkTopology": True, "controllerWorkers": 1, "podGroupBackoffSeconds": 0}
    assert coscheduling.arguments(harmless).warnings == ()


def test_arguments_about_waiting_are_read_and_without_them_no_strict_gang_holds_room() -> None:
    """A share as a number, a percentage, seconds; the peer's default percentage is not ours."""
    read = coscheduling.arguments(
        {
            "nonStrictHoldShare": 0.3,
            "podGroupBackoffSeconds": 5,
            "podGroupRejectPercentage": 10,
        }
    )
    assert (read.hold_share, read.backoff_seconds, read.reject_share) == (0.3, 5.0, 0.1)
    assert read.warnings == ()
    plain = coscheduling.arguments({})
    assert (plain.hold_share, plain.backoff_seconds, plain.reject_share) == (0.5, 0.0, 0.0)


@pytest.mark.parametrize(
    "args",
    [
        {"defaultTimeout": "soon"},
        {"defaultMatchPolicy": "never"},
        {"nonStrictHoldShare": 2},
        {"podGroupRejectPercentage": 101},
        {"enablePreemption": "yes"},
    ],
)
def test_an_argument_that_cannot_be_used_is_an_error_that_names_it(args: Any) -> None:
    """As every argument of a plugin."""
    with pytest.raises(BadObjectError, match=next(iter(args))):
        coscheduling.arguments(args)
