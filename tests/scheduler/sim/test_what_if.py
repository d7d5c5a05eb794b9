"""Two simulations of one cluster."""

from __future__ import annotations

from koordlet.scheduler.sim import simulation, what_if
from tests.kit.quotas import quota


def test_an_object_takes_the_place_of_that_of_its_kind_and_name() -> None:
    """Others stay, and one that was not there is added."""
    old, new = quota("q", {}, {"cpu": 1}), quota("q", {}, {"cpu": 2})
    pod = {"kind": "Pod", "metadata": {"name": "q", "namespace": "default"}}
    more = quota("r")
    assert what_if.replaced([old, pod], [new, more]) == [pod, new, more]


def test_pods_that_are_elsewhere_are_listed_and_those_that_stay_are_not() -> None:
    """A pod that waits has no node."""
    before, after = simulation.Result(), simulation.Result()
    before.placements += [{"pod": "d/a", "node": "n1"}, {"pod": "d/b", "node": "n1"}]
    after.placements += [{"pod": "d/a", "node": "n1"}]
    after.pending += [{"pod": "d/b", "message": "no"}]
    after.quotas = [{"quota": "q"}]
    assert what_if.document(before, after) == {
        "pods": [{"pod": "d/b", "before": "n1", "after": None}],
        "before": [],
        "after": [{"quota": "q"}],
    }
