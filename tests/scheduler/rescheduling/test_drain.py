"""The calendar of a drain: budgets and rates hold at each moment, room is there first."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.kubeapi import pod_groups
from koordlet.model import moment
from koordlet.scheduler.rescheduling.drain import DrainCalendar
from koordlet.scheduler.sim import drain
from tests.kit import gangs
from tests.kit.descheduling import NOW, node, pod

Body = dict[str, Any]


def replica_set(name: str, replicas: int) -> Body:
    """The controller of pods."""
    meta = {"name": name, "namespace": "default"}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}}
    return {"kind": "ReplicaSet", "metadata": meta, "spec": spec}


def web(number: int, on: str, **more: Any) -> Body:
    """A ready pod of the ReplicaSet ``web``."""
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return pod(
        f"web-{number}", on, owner="ReplicaSet/web", labels={"app": "web"}, status=status, **more
    )


def rate(*limits: Body, **spec: Any) -> Body:
    """A DisruptionRate of those pods."""
    meta = {"name": "web", "namespace": "default"}
    selector = {"matchLabels": {"app": "web"}}
    body = {"selector": selector, "limits": list(limits), **spec}
    return {"kind": "DisruptionRate", "metadata": meta, "spec": body}


def budget(allowed: int) -> Body:
    """A PodDisruptionBudget of those pods."""
    meta = {"name": "web", "namespace": "default"}
    spec = {"selector": {"matchLabels": {"app": "web"}}}
    status = {"disruptionsAllowed": allowed}
    return {"kind": "PodDisruptionBudget", "metadata": meta, "spec": spec, "status": status}


def played(*bodies: Body, loses_data: bool = False) -> DrainCalendar:
    """The drain of node ``a``."""
    scene = drain.LimitedDump(bodies, NOW)
    calendar = scene.drain("a", ready_seconds=60.0, loses_data=loses_data)
    assert calendar is not None
    return calendar


def times(calendar: DrainCalendar) -> list[tuple[str, float]]:
    """The name of each pod that goes, and the seconds after which it does."""
    return [(each.pod.name, each.at - NOW) for each in calendar.departures]


THREE = [replica_set("web", 3), *(web(number, "a") for number in range(3))]


def test_without_bounds_all_go_at_once_by_priority_and_room_is_named() -> None:
    """Lower priority first; neither node rate, cool-down nor the bound of a minute holds."""
    bodies = [pod(f"p{n}", "a", cpu="50m", spec={"priority": -n}) for n in range(12)]
    calendar = played(node("a"), node("b", pods=20), replica_set("rs", 12), *bodies)
    assert times(calendar) == [(f"p{n}", 0.0) for n in reversed(range(12))]
    assert {each.target for each in calendar.departures} == {"b"}
    assert (calendar.obstacles, calendar.staying) == ((), ())


def test_a_rate_spreads_a_drain_over_its_windows() -> None:
    """Two windows: one an hour, two a day."""
    limits = {"count": 1, "window": "1h"}, {"count": 2, "window": "24h"}
    calendar = played(node("a"), node("b"), *THREE, rate(*limits))
    assert times(calendar) == [("web-0", 0.0), ("web-1", 3600.0), ("web-2", 86400.0)]
    assert calendar.departures[0].waits_for == ""
    last = calendar.departures[2].waits_for
    assert last.startswith("RateSpent: DisruptionRate default/web allows 2 in 1d")


def test_a_disruption_before_the_drain_counts() -> None:
    """The ledger of the status is the memory."""
    before = {"pod": "old", "uid": "u", "time": moment.spell(NOW - 600), "cause": "Eviction"}
    body = {**rate({"count": 1, "window": "1h"}), "status": {"disruptions": [before]}}
    assert times(played(node("a"), node("b"), *THREE[:2], body)) == [("web-0", 3000.0)]


@pytest.mark.parametrize(
    ("allowed", "wanted"), [(1, [0.0, 60.0, 120.0]), (2, [0.0, 0.0, 60.0]), (3, [0.0, 0.0, 0.0])]
)
def test_a_budget_waits_for_replacements_to_be_up(allowed: int, wanted: list[float]) -> None:
    """A minute each, as was assumed."""
    calendar = played(node("a"), node("b"), *THREE, budget(allowed))
    assert [at for _, at in times(calendar)] == wanted


def test_min_up_waits_for_replacements_too() -> None:
    """Two of three stay up."""
    calendar = played(node("a"), node("b"), *THREE, rate({"count": 9, "window": "1h"}, minUp=2))
    assert [at for _, at in times(calendar)] == [0.0, 60.0, 120.0]


def test_a_budget_that_allows_nothing_is_an_obstacle_that_is_named() -> None:
    """Waiting is in vain, and the others go."""
    calendar = played(node("a"), node("b"), *THREE, pod("other", "a"), budget(0))
    assert [name for name, _ in times(calendar)] == ["other"]
    assert [each.reason for each in calendar.obstacles] == ["PDB"] * 3


def test_without_room_elsewhere_a_pod_stays_and_the_rest_goes() -> None:
    """Capacity comes first: what has gone already takes room from the next."""
    small = node("b", cpu="250m")
    calendar = played(node("a"), small, *THREE)
    assert [name for name, _ in times(calendar)] == ["web-0", "web-1"]
    [obstacle] = calendar.obstacles
    assert (obstacle.pod.name, obstacle.reason) == ("web-2", "NoRoom")


def test_who_belongs_to_the_node_stays_and_who_would_be_lost_is_an_obstacle() -> None:
    """DaemonSets and static pods; bare pods; data on the node; whoever a gang needs."""
    data = {"volumes": [{"name": "v", "emptyDir": {}}]}
    bodies = [
        pod("agent", "a", owner="DaemonSet/agent"),
        pod("static", "a", owner="", annotations={"kubernetes.io/config.mirror": "x"}),
        pod("bare", "a", owner=""),
        pod("cache", "a", spec=data),
        pod("kept", "a", annotations={"koordlet.io/movable": "false"}),
        pod("critical", "a", spec={"priority": 2_000_000_000}),
        pod("worker", "a", labels={pod_groups.POD_GROUP: "g"}),
        gangs.pod_group("g", 1, namespace="default"),
    ]
    calendar = played(node("a"), node("b"), *bodies)
    assert [(each.name, why) for each, why in calendar.staying] == [
        ("agent", "of a DaemonSet"),
        ("static", "static pod"),
    ]
    assert [name for name, _ in times(calendar)] == ["critical"]
    assert [(each.pod.name, each.reason) for each in calendar.obstacles] == [
        ("bare", "Protected"),
        ("cache", "LocalData"),
        ("kept", "Protected"),
        ("worker", "GangStays"),
    ]
    careless = played(node("a"), node("b"), *bodies, loses_data=True)
    assert [name for name, _ in times(careless)] == ["cache", "critical"]
