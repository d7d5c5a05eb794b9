"""The core alone: who waits for whom after a preemption, what is known of whom meanwhile."""

from __future__ import annotations

import json
from typing import Any

import pytest

from koordlet.kubeapi import selectors
from koordlet.scheduler.framework.queue import QueuePlace
from koordlet.scheduler.loop import reservation_events
from koordlet.scheduler.loop.outcomes import Bind, Hold, Refusal
from koordlet.scheduler.objects import disruption, machines, nodes
from koordlet.scheduler.plugins.numa import NodeNUMAResource
from tests.kit import clusters, reservations
from tests.kit.core_scene import Scene
from tests.kit.numa import topology

Body = dict[str, Any]
#: Who tolerates every taint, and who is meant by an owner entry.
EVERY = {"operator": "Exists"}
SELECTING = {"labelSelector": {"matchLabels": {"app": "web"}}}
WAITS = "not eligible due to a terminating pod on the nominated node."


def test_who_preempted_waits_for_his_victims() -> None:
    """Until they are gone, unless his node would not take him then either."""
    scene = Scene()
    scene.pod(name="low", on="n", cpu="4")
    scene.pod(name="high", cpu="4", priority=9)

    assert [victim.name for victim in scene.refused().victims] == ["low"]
    scene.changed()
    again = scene.refused()
    assert again.message.endswith(WAITS)
    assert again.node == "n"
    scene.changed(unschedulable=True)
    assert "1 Preemption is not helpful for scheduling" in scene.refused().message


def test_a_resize_that_is_given_up_wakes_who_waits_and_a_deferred_one_keeps_its_room() -> None:
    """The kubelet tries what is deferred again: nobody else may have the room until then."""

    def resizing(reason: str) -> Body:
        has = {"name": "c", "allocatedResources": {"cpu": "1"}}
        pending = {"type": "PodResizePending", "status": "True", "reason": reason}
        return {"conditions": [pending], "containerStatuses": [has]}

    scene = Scene()
    grows = scene.pod(name="grows", on="n", cpu="4", status=resizing("Deferred"))
    scene.pod(name="waits", cpu="3")
    assert "1 Insufficient cpu" in scene.refused().message
    scene.now += 20.0  # less than after which everybody is tried again
    assert scene.core.step(scene.now) is None
    scene.pod(old=grows, name="grows", on="n", cpu="4", status=resizing("Infeasible"))
    assert scene.bound().name == "waits"


def test_a_pod_that_is_changed_is_tried_again_after_its_backoff() -> None:
    """Whatever was changed; a gate that goes lets it enter at once."""
    scene = Scene()
    before = scene.pod(name="p", cpu="9")
    assert "1 Insufficient cpu" in scene.refused().message
    scene.now += 0.1
    scene.pod(old=before, name="p", cpu="1")
    assert len(scene.core.queue) == 0
    assert scene.core.queue.count(QueuePlace.BACKOFF) == 1
    scene.now += 2.0
    assert scene.bound().name == "p"

    gated = scene.pod(name="q", schedulingGates=[{"name": "g"}])
    scene.pod(old=gated, name="q")
    assert scene.bound().name == "q"


def test_who_ends_by_himself_is_no_victim() -> None:
    """A nominated pod does not wait for him: others have to go."""
    scene = Scene()
    low = scene.pod(name="low", on="n", cpu="2")
    scene.pod(name="other", on="n", cpu="2")
    scene.pod(name="high", cpu="4", priority=9, status={"nominatedNodeName": "n"})
    ending = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    scene.pod(low, name="low", on="n", cpu="2", meta=ending)

    assert [victim.name for victim in scene.refused().victims] == ["other"]


def test_a_victim_of_a_scheduler_before_is_waited_for() -> None:
    """Its condition says why it ends."""
    scene = Scene()
    why = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    ending = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    scene.pod(name="low", on="n", cpu="4", meta=ending, status={"conditions": [why]})
    scene.pod(name="high", cpu="4", priority=9, status={"nominatedNodeName": "n"})

    assert scene.refused().message.endswith(WAITS)


def test_an_assumed_pod_that_is_edited_keeps_what_was_chosen_for_it() -> None:
    """Its CPUs are given to nobody else while the store does not show it on its node."""
    scene = Scene()
    for plugin in scene.profile.plugins:
        if isinstance(plugin, NodeNUMAResource):
            plugin.machines["n"] = machines.decode(topology("n", cpus=4, sockets=1))[1]
    own: Body = {"labels": {"koordinator.sh/qosClass": "LSR"}, "cpu": "2"}
    waiting = scene.pod(name="a", **own)
    first = scene.bound()
    had = first.cpus
    scene.pod(old=waiting, name="a", meta={"annotations": {"seen": "by somebody"}}, **own)
    scene.pod(name="b", **own)
    second = scene.bound()

    assert had is not None
    assert second.cpus is not None
    assert not had & second.cpus
    known = scene.core.pod_cache.get("d/a")
    assert known is not None
    assert known.cpus == had


def test_namespaces_that_come_later_are_seen() -> None:
    """A term that selects namespaces by their labels means those that came after the start."""
    scene = Scene()
    scene.core.pod_cache.namespaces["x"] = {"team": "a"}
    scene.pod(name="there", namespace="x", on="n", labels={"app": "web"})
    selector = {"matchLabels": {"team": "a"}}
    apart = clusters.affinity("podAntiAffinity", clusters.HOST, namespaceSelector=selector)
    scene.pod(name="p", affinity=apart)

    assert "didn't match pod anti-affinity rules" in scene.refused().message


def test_a_refused_pod_keeps_no_room_from_others() -> None:
    """What it was nominated for before it was refused is anybody's."""
    scene = Scene()
    gang = {"pod-group.scheduling.sigs.k8s.io": "g"}
    status = {"nominatedNodeName": "n"}
    scene.pod(name="member", cpu="4", priority=9, labels=gang, status=status)
    scene.pod(name="p", cpu="4")

    assert "can't find gang" in scene.refused().message
    assert scene.bound().name == "p"


def test_a_reservation_whose_template_is_in_a_gang_waits_for_the_gang_as_its_pods_do() -> None:
    """A reserve pod takes no room before there is a gang of which it can be a member."""
    scene = Scene()
    body = reservations.reservation("r", cpu="1")
    body["spec"]["template"].setdefault("metadata", {})["labels"] = {
        "pod-group.scheduling.sigs.k8s.io": "g"
    }
    body["spec"]["template"]["spec"]["schedulerName"] = "default-scheduler"
    reservation_events.changed(scene.core, None, body, 0.0)

    assert scene.refused().message == (
        "can't find gang, gangName: default/g, podName: default/uid-r"
    )


def test_preemptions_that_the_store_has_not_shown_yet_count_against_a_budget() -> None:
    """Of five protected pods with a budget of one, four preemptors take one and the others none."""
    scene = Scene()
    for name in ("b", "c", "d", "e"):
        scene.core.node(None, nodes.decode(clusters.node(name)), 0.0)
    for name in ("n", "b", "c", "d"):
        scene.pod(name=f"web-{name}", on=name, cpu="4", labels={"app": "web"})
    for name in ("x", "y", "z"):
        scene.pod(name=name, on="e", cpu="1", priority=1)
    scene.pod(name="w", on="e", cpu="1", priority=1)
    compiled = selectors.Selector(labels="app=web").compiled()
    scene.core.budgets.put("d/web", disruption.DisruptionBudget("d", compiled, 1))
    for number in range(3):
        scene.pod(name=f"high-{number}", cpu="2", priority=9)
    taken = [victim.name for _ in range(3) for victim in scene.refused().victims]

    assert sum(name.startswith("web") for name in taken[:3]) == 1, taken


@pytest.mark.parametrize("first", ["a", "b"])
def test_an_annotation_that_is_configured_decides_in_the_loop(first: str) -> None:
    """Of two jobs the one is adopted whose annotation, under the configured key, is higher."""
    key = "example.com/early"
    adopting = {"enableClusterMode": True, "clusterPriorityAnnotationKey": key}
    scene = Scene({"Reservation": {"preAllocationConfig": adopting}})
    for name in ("a", "b"):
        meta = {"annotations": {key: "9" if name == first else "1"}}
        labels = {"pod.koordinator.sh/is-pre-allocatable": "true"}
        scene.pod(name=name, on="n", cpu="2", labels=labels, meta=meta)
    early: Body = {"preAllocation": True, "preAllocationPolicy": {"mode": "Cluster"}}
    body = reservations.reservation("r", cpu="2", **early)
    reservation_events.changed(scene.core, None, body, 0.0)

    assert isinstance(scene.core.step(scene.now), Hold)
    held = scene.core.reservations.named("r")
    assert held is not None
    assert [first] == [owner.name for owner in held.owners.values()]


def test_room_that_is_promised_to_a_more_important_pod_is_a_reason() -> None:
    """The node counts in the message, and preemption looks for victims there."""
    scene = Scene()
    low = scene.pod(name="low", on="n", cpu="3", priority=1)
    scene.pod(name="small", on="n", cpu="1", priority=1)
    scene.pod(name="high", cpu="3", priority=9)
    assert [victim.name for victim in scene.refused().victims] == ["low"]
    scene.core.pod(low, None, scene.now)

    scene.pod(name="equal", cpu="3", priority=1)
    refused = scene.core.step(scene.now)
    assert isinstance(refused, Refusal)
    assert refused.message == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption:"
        " 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )
    scene.pod(name="middle", cpu="1", priority=5)
    refused = scene.core.step(scene.now)
    assert isinstance(refused, Refusal)
    assert [victim.name for victim in refused.victims] == ["small"]


@pytest.mark.parametrize("known", [False, True])
def test_an_owner_is_tried_again_when_its_reservation_was_bound_elsewhere(*, known: bool) -> None:
    """Whether the reservation was known before another scheduler gave it a node, or was not."""
    scene = Scene()
    body = reservations.reservation("r", cpu="1", unschedulable=False)
    if known:
        scene.changed(unschedulable=True)
        reservation_events.changed(scene.core, None, body, scene.now)
        assert scene.refused().pod.reserve_pod_of == "uid-r"
    meta = {"annotations": reservations.affinity(name="r")}
    scene.pod(name="owner", cpu="1", labels={"app": "web"}, meta=meta, tolerations=[EVERY])
    assert isinstance(scene.core.step(scene.now), Refusal)
    assert scene.core.step(scene.now) is None

    bound = {**body, "status": {"phase": "Available", "nodeName": "n"}}
    reservation_events.changed(scene.core, body, bound, scene.now)
    assert scene.bound().draws_on == "uid-r"


def test_a_running_pod_that_becomes_room_for_others_wakes_its_owners() -> None:
    """It says so of itself when it is ready, and nothing else about it has changed."""
    scene = Scene()
    notes = {"scheduling.koordinator.sh/reservation-owners": json.dumps([SELECTING])}
    meta = {"annotations": notes}
    labels = {"scheduling.koordinator.sh/operating-mode": "Reservation"}
    old = scene.pod(name="room", on="n", cpu="4", labels=labels, meta=meta)
    scene.pod(name="owner", cpu="4", labels={"app": "web"})
    scene.refused()
    assert scene.core.step(scene.now) is None

    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    scene.pod(old, name="room", on="n", cpu="4", labels=labels, meta=meta, status=ready)
    assert scene.bound().name == "owner"


def test_a_binding_that_fails_gives_a_reservation_back_what_the_pod_drew() -> None:
    """Refused by the store, deleted, or bound elsewhere: the reservation holds all of it again."""
    for end in ("unbound", "gone", "elsewhere"):
        scene = Scene()
        body = reservations.reservation("r", cpu="4", on="n", allocateOnce=False)
        body["spec"]["template"]["spec"]["schedulerName"] = "default-scheduler"
        reservation_events.changed(scene.core, None, body, 0.0)
        pod = scene.pod(name="p", cpu="2", labels={"app": "web"})
        outcome = scene.core.step(400.0)
        assert isinstance(outcome, Bind)
        assert outcome.pod.drawn_name == "r"
        other = nodes.decode(clusters.node("m"))
        scene.core.node(None, other, 400.0)
        if end == "unbound":
            scene.core.unbound(pod, 401.0)
        elif end == "gone":
            scene.core.pod(pod, None, 401.0)
        else:
            scene.pod(pod, name="p", cpu="2", labels={"app": "web"}, on="m")
        info = scene.core.reservations.named("r")
        assert info is not None
        assert info.owners == {}
        assert scene.core.pod_cache.columns.requested[0, 0] == 4000


def test_a_pod_that_was_bound_elsewhere_wakes_who_waits_for_the_room_that_it_was_to_have() -> None:
    """Its place here is free, though nobody has left the node that it has now."""
    scene = Scene()
    closed = nodes.decode(clusters.node("m", spec={"unschedulable": True}))
    scene.core.node(None, closed, scene.now)
    pod = scene.pod(name="p", cpu="4")
    scene.bound()
    scene.pod(name="waits", cpu="4")
    scene.refused()
    assert scene.core.step(scene.now) is None

    scene.pod(pod, name="p", cpu="4", on="m")
    assert scene.bound().name == "waits"


@pytest.mark.parametrize("edit", [{"meta": {"annotations": {"a": "b"}}}, {"labels": {"a": "b"}}])
def test_a_preemptor_that_is_edited_keeps_what_the_store_has_yet_to_hear(edit: Body) -> None:
    """The edit was written before the nomination: it says nothing about it."""
    scene = Scene()
    scene.pod(name="low", on="n", cpu="4")
    high = scene.pod(name="high", cpu="4", priority=9)
    assert scene.refused().node == "n"
    scene.pod(high, name="high", cpu="4", priority=9, **edit)
    scene.pod(name="small", cpu="1")

    assert scene.refused().message.endswith(WAITS)
    assert scene.core.nominated.on("n") == ("d/high",)


def test_a_nomination_that_the_store_has_heard_of_goes_when_the_store_says_so() -> None:
    """Somebody took it from the pod's status."""
    scene = Scene()
    scene.pod(name="low", on="n", cpu="4")
    high = scene.pod(name="high", cpu="4", priority=9, status={"nominatedNodeName": "n"})
    assert scene.core.nominated.on("n") == ("d/high",)
    scene.pod(high, name="high", cpu="4", priority=9)

    assert scene.core.nominated.on("n") == ()


def test_a_preemptor_is_tried_again_when_its_victim_could_not_be_deleted() -> None:
    """Not only after the minutes after which everybody is."""
    scene = Scene()
    scene.pod(name="low", on="n", cpu="4")
    scene.pod(name="high", cpu="4", priority=9)
    [victim] = scene.refused().victims
    assert scene.core.step(scene.now + 20.0) is None
    scene.core.spared(victim, scene.now)

    again = scene.core.step(scene.now + 20.0)
    assert isinstance(again, Refusal)
    assert [each.name for each in again.victims] == ["low"]


def test_absurd_amounts_on_a_node_cost_nobody_the_scheduler() -> None:
    """So many that they cannot be added: what was there has its place again, in any order."""
    scene = Scene()
    small = scene.pod(name="small", on="n", cpu="1")
    for number in range(70):
        scene.pod(name=f"huge-{number}", on="n", memory="64Pi")
    scene.core.victims.take((small,), 0.0)
    assert small.terminating
    body = reservations.reservation("r", cpu="1", memory="1Gi", on="n")
    reservation_events.changed(scene.core, None, body, 0.0)
    info = scene.core.reservations.named("r")
    assert info is not None
    assert info.row == -1

    for number in range(70):
        scene.core.pod(scene.core.pod_cache.get(f"d/huge-{number}"), None, 1.0)
    reservation_events.step(scene.core, info, 1.0, 1.0)
    assert info.row == 0
    assert scene.core.pod_cache.columns.requested[0, 0] == 2000


def test_a_pod_that_ends_before_it_had_a_node_keeps_no_room_from_others() -> None:
    """A finalizer may keep it for ever."""
    scene = Scene()
    status = {"nominatedNodeName": "n"}
    high = scene.pod(name="high", cpu="4", priority=9, status=status)
    ending = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    scene.pod(high, name="high", cpu="4", priority=9, status=status, meta=ending)
    scene.pod(name="p", cpu="4")

    assert scene.bound().name == "p"
