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
    room = "no member holds room while it waits for others"
    assert read.warnings == (
        "Coscheduling: 'colour' is unknown and ignored",
        f"Coscheduling: defaultTimeout has no effect: {room}",
        "Coscheduling: skipCheckScheduleCycle has no effect: there are no cycles of gangs to check",
    )
    assert coscheduling.arguments({"permitWaitingTimeSeconds": 60}).wait_seconds == 60.0
    assert coscheduling.arguments({}).wait_seconds == 600.0
    assert not coscheduling.arguments({"awareNetworkTopology": False}).gathers


@pytest.mark.parametrize(
    "args",
    [
        {"controllerWorkers": 4},
        {"nonStrictHoldShare": 0.3},
        {"permitWaitingTimeSeconds": 60},
        {"podGroupBackoffSeconds": 5},
        {"podGroupRejectPercentage": 10},
    ],
)
def test_an_argument_without_effect_is_a_warning_that_names_it(args: Any) -> None:
    """Nobody believes that it works; the values that ask for nothing are silent."""
    [key] = args
    [warning] = coscheduling.arguments(args).warnings
    assert warning.startswith(f"Coscheduling: {key} has no effect: ")
    harmless = {"awareNetworkTopology": True, "controllerWorkers": 1, "podGroupBackoffSeconds": 0}
    assert coscheduling.arguments(harmless).warnings == ()


@pytest.mark.parametrize(
    "args",
    [
        {"defaultTimeout": "soon"},
        {"defaultMatchPolicy": "never"},
        {"nonStrictHoldShare": 2},
        {"enablePreemption": "yes"},
    ],
)
def test_an_argument_that_cannot_be_used_is_an_error_that_names_it(args: Any) -> None:
    """As every argument of a plugin."""
    with pytest.raises(BadObjectError, match=next(iter(args))):
        coscheduling.arguments(args)
