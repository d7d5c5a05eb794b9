"""Changes of Reservation objects that wait for their node: who is tried again, and when."""

from __future__ import annotations

import json
from typing import Any

import pytest

from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop import reservation_events
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Bind, Hold, Outcome, Refusal
from koordlet.scheduler.objects import nodes
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.reservation import keys
from tests.kit import clusters, reservations

Body = dict[str, Any]
NAME = "default-scheduler"
ENDING = {"name": "r", "uid": "uid-r", "deletionTimestamp": "2026-01-01T00:00:00Z"}


class Scene:
    """A node of four CPUs, and one reservation."""

    def __init__(self, arguments: Body | None = None, **node: Any) -> None:
        self.core = Core({NAME: profile.default(NAME, arguments)})
        self.now = 0.0
        self._body: Body | None = None
        self._node = nodes.decode(clusters.node("n", **node))
        self.core.node(None, self._node, 0.0)

    def reservation(self, *, scheduler: str = NAME, pod: Body | None = None, **more: Any) -> None:
        """The reservation as the store shows it."""
        inner = {"schedulerName": scheduler, **(pod or {})}
        body = reservations.reservation("r", pod=inner, **{"cpu": "1", **more})
        reservation_events.changed(self.core, self._body, body, self.now)
        self._body = body

    def pod(self, name: str, old: Pod | None = None, **more: Any) -> Pod:
        """A pod as the store shows it."""
        pod = self.core.decoder.decode(clusters.pod(name, **more), 0)
        self.core.pod(old, pod, self.now)
        return pod

    def room(self, old: Pod | None, ready: str, cpu: str = "4") -> Pod:
        """A running pod that is room for others."""
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}
        owners = json.dumps([{"labelSelector": {"matchLabels": {"app": "web"}}}])
        meta = {"annotations": {keys.OWNERS: owners}}
        labels = {keys.OPERATING_MODE: "Reservation"}
        return self.pod("room", old, on="n", cpu=cpu, labels=labels, meta=meta, status=status)

    def opened(self) -> None:
        """Everybody may use the node."""
        node = nodes.decode(clusters.node("n"))
        self.core.node(self._node, node, self.now)
        self._node = node

    def tried(self) -> Outcome | None:
        """The next attempt of whoever is awake."""
        self.now += 20.0
        return self.core.step(self.now)


def test_an_edit_that_leaves_the_amounts_alone_is_tried_at_once() -> None:
    """Its template had selected a node that there is not."""
    scene = Scene()
    scene.reservation(pod={"nodeSelector": {"a": "b"}})
    assert isinstance(scene.tried(), Refusal)
    scene.reservation(status={"conditions": [{"type": "Scheduled", "status": "False"}]},
                      pod={"nodeSelector": {"a": "b"}})  # fmt: skip
    assert scene.tried() is None
    scene.reservation()

    assert isinstance(scene.tried(), Hold)


def test_one_that_is_given_to_another_scheduler_is_no_more_ours() -> None:
    """Both would bind it otherwise."""
    scene = Scene(spec={"unschedulable": True})
    scene.reservation()
    assert isinstance(scene.tried(), Refusal)
    scene.reservation(scheduler="another")
    scene.opened()

    assert scene.tried() is None


def test_one_that_is_being_deleted_gets_no_node() -> None:
    """Its finalizers keep it, and nobody wants it any more."""
    scene = Scene()
    scene.reservation(meta=ENDING)
    assert scene.tried() is None

    waiting = Scene(spec={"unschedulable": True})
    waiting.reservation()
    assert isinstance(waiting.tried(), Refusal)
    waiting.reservation(meta=ENDING)
    waiting.opened()
    assert waiting.tried() is None


def test_one_that_preempts_waits_for_its_victims_after_its_own_status_was_written() -> None:
    """The status is an edit like others, and takes no nomination away."""
    scene = Scene({"Reservation": {"enablePreemption": True}})
    scene.pod("low", on="n", cpu="4")
    scene.reservation(cpu="2")
    refusal = scene.tried()
    assert isinstance(refusal, Refusal)
    assert len(refusal.victims) == 1
    condition = {"type": "Scheduled", "status": "False", "message": refusal.message}
    scene.reservation(cpu="2", status={"phase": "Pending", "conditions": [condition]})
    scene.core.node(None, nodes.decode(clusters.node("m")), 0.0)
    scene.pod("lower", on="m", cpu="4", priority=-5)
    scene.now += 400.0
    again = scene.tried()

    assert isinstance(again, Refusal)
    assert again.victims == ()
    assert again.node == refusal.node


@pytest.mark.parametrize("ends", ["deleted", "expired"])
def test_one_that_ends_before_it_had_its_node_gives_up_the_room_that_was_made_for_it(
    ends: str,
) -> None:
    """Its object may stay for long: a finalizer keeps it, or nobody collects it."""
    scene = Scene({"Reservation": {"enablePreemption": True}})
    low = scene.pod("low", on="n", cpu="4")
    scene.reservation(cpu="2", expires="2026-01-01T00:00:00Z")
    assert isinstance(scene.tried(), Refusal)
    if ends == "deleted":
        scene.reservation(cpu="2", meta=ENDING)
    else:
        known = scene.core.reservations.named("r")
        assert known is not None
        assert reservation_events.step(scene.core, known, scene.now, 2e9)
    scene.core.pod(low, None, scene.now)
    scene.pod("next", cpu="4")

    assert isinstance(scene.tried(), Bind)


def test_classes_of_reservations_that_have_gone_are_forgotten() -> None:
    """A place that is held for each preemptor has labels of its own."""
    scene = Scene()
    cache = scene.core.reservations
    for number in range(200):
        meta = {"name": "r", "uid": f"u{number}", "labels": {"of": f"p{number}"}}
        body = reservations.reservation("r", cpu="1", meta=meta)
        reservation_events.changed(scene.core, None, body, 0.0)
    assert len(cache._reserve_pods) == 200
    scene.core.tidy()

    assert len(cache._reserve_pods) == 1
    known = cache.named("r")
    assert known is not None
    again = cache._reserve_pods.make(known.spec, 0)
    assert known.reserve_pod is not None
    assert again.pod_class is known.reserve_pod.pod_class


def test_a_running_pod_takes_its_owners_only_while_it_is_ready() -> None:
    """It stays room for others, and whoever waits is tried again when it is ready again."""
    scene = Scene()
    pod = scene.room(scene.room(None, "True"), "False")
    scene.pod("owner", cpu="4", labels={"app": "web"})
    assert isinstance(scene.tried(), Refusal)
    assert scene.tried() is None
    scene.room(pod, "True")

    outcome = scene.tried()
    assert isinstance(outcome, Bind)
    assert outcome.pod.draws_on == pod.uid


def test_a_running_pod_that_becomes_room_for_others_bars_the_other_policy_at_once() -> None:
    """Nothing that is counted has changed on its node."""
    scene = Scene()
    pod = scene.room(None, "False", cpu="1")
    scene.reservation(cpu="8")
    assert isinstance(scene.tried(), Refusal)
    scene.room(pod, "True", cpu="1")

    outcome = scene.tried()
    assert isinstance(outcome, Refusal)
    assert "reservation allocate policy conflict" in outcome.message
