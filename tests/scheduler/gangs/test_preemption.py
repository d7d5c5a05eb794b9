"""Victims leave for the whole minimum, or nobody leaves."""

from __future__ import annotations

import functools
from typing import Any

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Refusal
from koordlet.scheduler.objects.pods import Pod
from tests.kit import clusters, gangs
from tests.kit.gang_scene import Scene
from tests.scheduler.gangs.test_attempt import of

Body = dict[str, Any]


def low(name: str, on: str, cpu: str = "4", **more: Any) -> Body:
    """A running pod of priority 5."""
    meta = {"uid": name, **more.pop("meta", {})}
    return clusters.pod(name, on=on, cpu=cpu, priority=5, meta=meta, **more)


def crowded(number: int = 4, **more: Any) -> list[Body]:
    """Nodes that are full with one pod each."""
    bodies: list[Body] = [clusters.node(f"n{place}") for place in range(number)]
    return bodies + [low(f"low{place}", f"n{place}", **more) for place in range(number)]


def outcome(scene: Scene) -> Refusal:
    """The first refusal of the next cycle, which carries the victims."""
    scene.now += 400
    refusal = scene.core.step(scene.now)
    assert isinstance(refusal, Refusal)
    return refusal


def test_victims_leave_for_the_whole_minimum_and_no_more_of_them() -> None:
    """Two members, four pods of lower priority: two leave, then both members are bound there."""
    scene = Scene(*crowded(), *of("g", 2, 2, cpu="3", priority=10))
    refusal = outcome(scene)
    assert refusal.message == "pod group is waiting for preemption to complete"
    victims = [victim.name for victim in refusal.victims]
    assert len(victims) == 2
    assert refusal.group == "d/g"
    scene.decided(0.1)
    awaiting = outcome(scene)
    assert awaiting.victims == ()
    assert "not eligible due to terminating pod on the nominated node." in awaiting.message
    scene.decided(0.1)
    for name in victims:
        scene.drop(name)
    places = scene.decided()
    assert sorted(places.values()) == sorted(f"n{name.removeprefix('low')}" for name in victims)


def test_victims_of_a_gang_that_begin_to_end_wake_whom_they_kept_from_their_domain() -> None:
    """Spreading does not count them from then on."""
    zones = [
        clusters.node(f"n-{zone}", labels={"zone": zone}, spec=spec)
        for zone, spec in (("a", {}), ("b", {"taints": [{"key": "t", "effect": "NoSchedule"}]}))
    ]
    web = {"app": "web"}
    placed = [low(name, "n-a", "1", labels=web) for name in ("low0", "low1")]
    scene = Scene(*zones, *placed)
    alike = [clusters.spread("zone")]
    scene.put(
        clusters.pod("waits", cpu="1", priority=20, labels=web, topologySpreadConstraints=alike,
                     preemptionPolicy="Never")
    )  # fmt: skip
    assert scene.decided() == {"waits": ""}
    scene.put(*of("g", 2, 2, cpu="2", priority=10))

    assert scene.decided(20.0) == {"g1": "", "g2": "", "waits": "n-a"}
    assert all(pod["spec"]["nodeName"] in scene.core.victims.leaving for pod in placed)


def test_a_pod_whose_victims_a_gang_takes_over_makes_room_elsewhere_at_once() -> None:
    """Nothing that happens on the node of those victims is worth waiting for."""
    scene = Scene(*crowded(2))
    scene.put(clusters.pod("single", cpu="4", priority=8))
    assert scene.decided() == {"single": ""}
    [victim] = [pod for pod in scene.core.pod_cache if pod.terminating]
    chosen = {"nodeSelector": {clusters.HOST: victim.node}}
    scene.put(*of("g", 2, 2, cpu="2", priority=10, **chosen))

    assert scene.decided(20.0) == {"g1": "", "g2": "", "single": ""}
    assert [pod.terminating for pod in scene.core.pod_cache] == [True, True]


def test_nobody_leaves_where_the_minimum_would_not_fit_without_them_either() -> None:
    """Five members on four nodes: nothing is deleted, and every pod is where it was."""
    scene = Scene(*crowded(), *of("g", 5, 5, cpu="3", priority=10))
    before = scene.requested()
    refusal = outcome(scene)
    assert refusal.victims == ()
    assert refusal.message.endswith(
        "preemption: No preemption victims found for incoming preemptor"
    )
    scene.decided(0.1)
    assert scene.requested() == before
    assert all(not pod.terminating for pod in scene.core.pod_cache)


def test_a_protected_pod_stays_where_others_can_leave() -> None:
    """A budget of none allowed for one of four: the three others are enough for three members."""
    bodies = crowded()
    for body in bodies:
        if body["metadata"]["name"] == "low1":
            body["metadata"]["labels"] = {"app": "web"}
    scene = Scene(*bodies, *of("g", 3, 3, cpu="3", priority=10))
    budget = {
        "metadata": {"name": "b", "namespace": "d"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 0},
    }
    scene.core.budgets.put("d/b", inventory.budget(budget))
    assert sorted(victim.name for victim in outcome(scene).victims) == ["low0", "low2", "low3"]


def test_a_group_is_as_important_as_its_least_member_and_never_means_never() -> None:
    """A launcher of high priority preempts nobody for workers of low priority."""
    pods = [gangs.member("g1", "g", 2, cpu="3", priority=10), gangs.member("g2", "g", 2, cpu="3")]
    scene = Scene(*crowded(), *pods)
    assert outcome(scene).victims == ()
    shy = of("g", 2, 2, cpu="3", priority=10, preemptionPolicy="Never")
    assert outcome(Scene(*crowded(), *shy)).victims == ()


def test_pods_that_a_label_exempts_stay() -> None:
    """By either label of the peer."""
    for key in ("quota.scheduling.koordinator.sh", "scheduling.koordinator.sh"):
        exempt = crowded(labels={f"{key}/preemptible": "false"})
        assert outcome(Scene(*exempt, *of("g", 1, 1, cpu="3", priority=10))).victims == ()


def test_a_gang_that_is_disrupted_as_a_whole_leaves_as_a_whole() -> None:
    """One place would do, and both of its pods leave; beside it a single pod is preferred."""
    whole = gangs.own_group("w", 1, disruptionMode="PodGroup")
    nodes = [clusters.node(name) for name in ("n0", "n1", "n2")]
    pods = [gangs.own(f"w{place}", "w", on=f"n{place}", cpu="4", priority=5) for place in (0, 1)]
    other = low("single", "n2")
    wanting = of("g", 1, 1, cpu="3", priority=10)
    scene = Scene(*nodes, whole, *pods, other, *wanting)
    assert [victim.name for victim in outcome(scene).victims] == ["single"]
    scene = Scene(*nodes[:2], whole, *pods, *wanting)
    assert sorted(victim.name for victim in outcome(scene).victims) == ["w0", "w1"]


def test_a_whole_of_one_pod_is_no_more_important_than_a_pod() -> None:
    """Of the two that are equal in priority and size the one that started last leaves."""
    lone = gangs.own_group("w", 1, disruptionMode="PodGroup")
    pod, whole = low("pod", "n0"), gangs.own("lone", "w", on="n1", cpu="4", priority=5)
    nodes = [clusters.node("n0"), clusters.node("n1")]
    for first, second in ((pod, whole), (whole, pod)):
        first["status"] = {"startTime": "2026-01-01T00:00:00Z"}
        second["status"] = {"startTime": "2026-01-01T00:00:01Z"}
        scene = Scene(*nodes, lone, whole, pod, *of("g", 1, 1, cpu="3", priority=10))
        [victim] = outcome(scene).victims
        assert victim.name == second["metadata"]["name"]


def test_of_equal_gangs_the_one_leaves_whose_workload_was_disrupted_less() -> None:
    """Both are of two pods and started at once: whichever stands first, the disrupted one stays."""
    whole = [gangs.own_group(name, 1, disruptionMode="PodGroup") for name in "vw"]
    for harmed, leaves in (("v", "w"), ("w", "v")):
        scene = Scene()
        scene.core = Core(
            {"default-scheduler": profile.default()},
            disrupted=functools.partial(_times, f"{harmed}1"),
        )
        pods = [
            gangs.own(f"{name}{place}", name, on=f"n{place}", cpu="2", priority=5)
            for name in "vw"
            for place in (0, 1)
        ]
        scene.put(*(clusters.node(f"n{place}") for place in (0, 1)), *whole, *pods)
        scene.put(*of("g", 2, 2, cpu="2", priority=10))
        assert sorted(victim.name for victim in outcome(scene).victims) == [
            *(f"{leaves}0", f"{leaves}1"),
        ]


def _times(harmed: str, pod: Pod) -> float:
    """One pod's workload was disrupted twice of late, that of all others never."""
    return 2.0 if pod.name == harmed else 0.0


def test_a_large_group_spares_the_nodes_that_it_does_not_use() -> None:
    """Of two hundred full nodes 150 are used; small pods beside the victims stay."""
    small = [low(f"small{place}", f"n{place}", cpu="1") for place in range(200)]
    scene = Scene(*crowded(200, cpu="3"), *small, *of("g", 150, 150, cpu="3", priority=10))
    victims = [victim.name for victim in outcome(scene).victims]
    assert len(victims) == 150
    assert all(name.startswith("low") for name in victims)
    assert len(list(scene.core.nominated)) == 150
