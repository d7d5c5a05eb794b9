"""Pods find what was reserved for them, and nobody else does: the rules, end to end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Refusal
from koordlet.scheduler.objects import nodes
from tests.kit import reservations
from tests.kit.clusters import HOST, node, pod, tried
from tests.kit.reservations import affinity, drawn, drew, message, reservation, states

WEB = {"app": "web"}
KEY = "scheduling.koordinator.sh/"


def web(name: str, **more: Any) -> Any:
    """A pod that the kit's reservations mean."""
    return pod(name, labels={**WEB, **more.pop("labels", {})}, **more)


def example(*bodies: Any, policy: str = "", owner: bool = True) -> list[Any]:
    """32 CPUs; ordinary pods have 24; a reservation holds 6 of which an owner uses 2."""
    kind: dict[str, Any] = {"allocatePolicy": policy} if policy else {}
    held = reservation("r", cpu="6", allocateOnce=False, on="n", **kind)
    room = {"cpu": "32", "memory": "64Gi"}
    mine = [web("mine", on="n", cpu="2", meta={"annotations": drawn("r")})] if owner else []
    return [node("n", allocatable=room), pod("others", on="n", cpu="24"), *mine, held, *bodies]


def test_others_find_what_is_not_held() -> None:
    """32 less 24 of pods less 6 held: two are free for somebody else, not three."""
    assert drew(*example(pod("x", cpu="2"))) == {"x": ("n", None)}
    assert message("x", *example(pod("x", cpu="3"))) == (
        "0/1 nodes are available: 1 Insufficient cpu."
    )


@pytest.mark.parametrize(
    ("policy", "cpu", "drawn_on"),
    [("", "6", "r"), ("Aligned", "5", "r"), ("Aligned", "6", "r"), ("Restricted", "4", "r")],
)
def test_owners_fit_by_policy(policy: str, cpu: str, drawn_on: str) -> None:
    """The surplus comes from the node, except where the reservation is Restricted."""
    assert drew(*example(web("x", cpu=cpu), policy=policy)) == {"x": ("n", drawn_on)}


@pytest.mark.parametrize(("policy", "cpu"), [("", "7"), ("Aligned", "7"), ("Restricted", "5")])
def test_owners_that_do_not_fit_are_told_of_the_node(policy: str, cpu: str) -> None:
    """A pod that need not have a reservation hears the node's reasons."""
    refusal = message("x", *example(web("x", cpu=cpu), policy=policy))

    assert refusal == "0/1 nodes are available: 1 Insufficient cpu by node."


def test_what_is_lacking_with_a_reservation_is_told_and_no_more() -> None:
    """The reservation has memory for it, and there is none beside; CPUs are short either way."""
    held = reservation("r", cpu="6", memory="8Gi", allocateOnce=False, on="n")
    bodies = (node("n", allocatable={"cpu": "8", "memory": "8Gi"}), held)
    refusal = message("x", *bodies, web("x", cpu="9", memory="8Gi"))

    assert refusal == "0/1 nodes are available: 1 Insufficient cpu by node."


def test_restricted_and_required() -> None:
    """A pod that must have one hears what the reservation lacks; in figures where it named it."""
    wanting = web("x", cpu="5", meta={"annotations": affinity(reservationSelector={})})
    naming = web("x", cpu="5", meta={"annotations": affinity(name="r")})

    assert message("x", *example(wanting, policy="Restricted")) == (
        "0/1 nodes are available: 1 Reservation(s) Insufficient cpu."
    )
    assert message("x", *example(naming, policy="Restricted")) == (
        "0/1 nodes are available: 1 Reservation(s) Insufficient cpu,"
        " requested: 5000, used: 2000, capacity: 6000."
    )


def test_restricted_options() -> None:
    """Only the named resources are restricted."""
    loose = {"annotations": {f"{KEY}reservation-restricted-options": '{"resources":["memory"]}'}}
    held = reservation("r", cpu="1", memory="1Gi", allocatePolicy="Restricted", on="n", meta=loose)

    assert drew(node("n"), held, web("x", cpu="3", memory="1Gi")) == {"x": ("n", "r")}
    assert drew(node("n"), held, web("x", cpu="1", memory="2Gi")) == {"x": ("n", None)}


def test_what_is_kept_inside_is_not_for_owners() -> None:
    """The annotation of reserved amounts takes them out of the reservation."""
    keeps = {"annotations": {"node.koordinator.sh/reservation": '{"resources":{"cpu":"1"}}'}}
    held = reservation("r", cpu="4", on="n", meta=keeps)

    assert drew(node("n"), held, web("x", cpu="3")) == {"x": ("n", "r")}
    assert drew(node("n"), held, web("x", cpu="4")) == {}


def test_the_fullest_afterwards_is_taken() -> None:
    """Without an order, the reservation that is used best."""
    big, small = reservation("big", cpu="3", on="n"), reservation("small", cpu="1", on="n")

    assert drew(node("n"), big, small, web("x", cpu="1")) == {"x": ("n", "small")}


def test_the_order_comes_first() -> None:
    """The smallest number wins over every score, on the node and among nodes; 0 is no order."""

    def at(name: str, order: str, where: str, cpu: str) -> Any:
        labels = {f"{KEY}reservation-order": order}
        return reservation(name, cpu=cpu, on=where, meta={"labels": labels})

    bodies = [at("a", "2", "n1", "1"), at("b", "1", "n2", "3"), at("z", "0", "n1", "1")]

    assert drew(node("n1"), node("n2"), *bodies, web("x", cpu="1")) == {"x": ("n2", "b")}
    first = at("c", "-1", "n1", "3")
    assert drew(node("n1"), node("n2"), *bodies, first, web("x", cpu="1")) == {"x": ("n1", "c")}


def test_the_score_outweighs_all_others() -> None:
    """The node with the reservation wins however full it is; 100 of 100 times 5000."""
    held = reservation("r", cpu="1", on="n1")
    outcome = reservations.tried(
        node("n1"), node("n2"), pod("others", on="n1", cpu="2"), held, web("x", cpu="500m")
    )
    [placed] = outcome["placements"]

    assert placed["node"] == "n1"
    assert 500_000 <= placed["scores"]["n1"] < 502_000
    assert placed["scores"]["n2"] < 2_000


def test_once_means_once() -> None:
    """The first owner ends it; what it did not use is everybody's again."""
    outcome = reservations.tried(
        node("n", cpu="4"),
        reservation("r", cpu="4", on="n"),
        web("a", cpu="1"),
        web("b", cpu="1"),
        pod("c", cpu="2"),
    )

    assert {placement["pod"]: placement["reservation"] for placement in outcome["placements"]} == {
        "d/a": "r",
        "d/b": None,
        "d/c": None,
    }
    assert outcome["reservations"][0]["phase"] == "Succeeded"


def test_owners() -> None:
    """By name, by controller, by labels: one entry is enough, all of an entry must hold."""
    owners = [
        {"object": {"namespace": "d", "name": "named"}},
        {"controller": {"kind": "ReplicaSet", "name": "rs", "apiVersion": "apps/v1", "uid": "u"}},
        {"labelSelector": {"matchLabels": WEB}, "controller": {"name": "other"}},
    ]
    held = reservation("r", cpu="4", owners=owners, allocateOnce=False, on="n")
    owned = {"kind": "ReplicaSet", "name": "rs", "apiVersion": "apps/v1", "uid": "u"}
    pods = [
        pod("named", cpu="1"),
        pod("named", cpu="1", namespace="other"),
        pod("child", cpu="1", meta={"ownerReferences": [owned]}),
        pod("stranger", cpu="0", meta={"ownerReferences": [{**owned, "uid": "v"}]}),
        web("half", cpu="0"),
    ]
    outcome = reservations.tried(node("n", cpu="8"), held, *pods)

    assert {placement["pod"]: placement["reservation"] for placement in outcome["placements"]} == {
        "d/named": "r",
        "other/named": None,
        "d/child": "r",
        "d/stranger": None,
        "d/half": None,
    }


def test_who_is_named_does_not_speak_for_his_equals() -> None:
    """Two pods of one class; the reservation names one of them."""
    held = reservation("r", cpu="1", owners=[{"object": {"name": "b", "namespace": "d"}}], on="n")
    both = [pod("a", cpu="1"), pod("b", cpu="1")]

    assert drew(node("n"), held, *both) == {"a": ("n", None), "b": ("n", "r")}


def test_a_required_reservation_is_required() -> None:
    """Room elsewhere is no help; by name, by labels, by terms, with the node's labels under."""
    held = reservation("r", cpu="2", on="n1", allocateOnce=False, meta={"labels": {"tier": "a"}})
    nodes = [node("n1", labels={"zone": "z"}), node("n2")]
    terms = [{"matchExpressions": [{"key": "tier", "operator": "In", "values": ["a"]}]}]
    required = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"reservationSelectorTerms": terms}
    }
    for good in ({"name": "r"}, {"reservationSelector": {"tier": "a", "zone": "z"}}, required):
        taken = web("x", cpu="1", meta={"annotations": affinity(**good)})
        assert drew(*nodes, held, taken) == {"x": ("n1", "r")}
    for bad in ({"name": "other"}, {"reservationSelector": {"tier": "b"}}):
        refused = web("x", cpu="1", meta={"annotations": affinity(**bad)})
        assert message("x", *nodes, held, refused) == (
            "0/2 nodes are available: 2 node(s) no reservations match reservation affinity."
        )


def test_taints_and_unschedulable() -> None:
    """Tolerated by the affinity where there is one, by the pod itself where there is none."""
    taints = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    bears = [{"key": "k", "operator": "Exists"}]
    tainted = reservation("r", cpu="2", on="n", taints=taints)
    closed = reservation("r", cpu="2", on="n", unschedulable=True)
    cordon = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
    demanding = web("x", cpu="1", meta={"annotations": affinity(tolerations=[*bears, cordon])})

    assert drew(node("n"), tainted, web("x", cpu="1")) == {"x": ("n", None)}
    assert drew(node("n"), tainted, web("x", cpu="1", tolerations=bears)) == {"x": ("n", "r")}
    assert drew(node("n"), closed, web("x", cpu="1")) == {"x": ("n", None)}
    assert drew(node("n"), tainted, demanding) == {"x": ("n", "r")}
    assert drew(node("n"), closed, demanding) == {"x": ("n", "r")}


def test_exact_amounts() -> None:
    """Listed resources must be equal; those that neither has are."""
    exact = {f"{KEY}exact-match-reservation": '{"resourceNames":["example.com/gpu","cpu"]}'}
    held = reservation("r", cpu="2", on="n")

    assert drew(node("n"), held, web("x", cpu="2", meta={"annotations": exact})) == {
        "x": ("n", "r")
    }
    assert drew(node("n"), held, web("x", cpu="1", meta={"annotations": exact})) == {
        "x": ("n", None)
    }


def test_ignoring_reservations() -> None:
    """Such a pod uses what is held, and is booked nowhere."""
    ignoring = pod("x", cpu="3", labels={f"{KEY}reservation-ignored": "true"})
    held = reservation("r", cpu="3", on="n")
    outcome = reservations.tried(node("n"), pod("y", on="n", cpu="1"), held, ignoring)

    assert [
        (placement["node"], placement["reservation"]) for placement in outcome["placements"]
    ] == [("n", None)]
    assert outcome["reservations"][0]["allocated"] == {}


def test_a_broken_annotation_is_named() -> None:
    """The pod waits and its message says which annotation and why."""
    broken = web("x", cpu="1", meta={"annotations": {f"{KEY}reservation-affinity": "{"}})

    assert "annotation scheduling.koordinator.sh/reservation-affinity is not JSON" in message(
        "x", node("n"), broken
    )


def test_ports_and_neighbours_of_a_reservation_do_not_keep_its_owners_away() -> None:
    """What the template demands it has for them: a port, and no second of its kind on the node."""
    ports = {"ports": [{"containerPort": 80, "hostPort": 80}]}
    alone = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": HOST, "labelSelector": {"matchLabels": WEB}}
            ]
        }
    }
    inner = {
        "containers": [{"name": "c", **ports, "resources": {"requests": {"cpu": "1"}}}],
        "affinity": alone,
    }
    held = reservation("r", pod=inner, template_meta={"labels": WEB}, allocateOnce=False, on="n")
    mine = web("mine", cpu="1", container={**ports, "name": "c"}, affinity=alone)
    other = pod("other", container={**ports, "name": "c"})
    outcome = reservations.tried(node("n"), held, mine, other)

    assert [placement["pod"] for placement in outcome["placements"]] == ["d/mine"]
    assert outcome["placements"][0]["reservation"] == "r"
    assert "free ports" in outcome["pending"][0]["message"]


def test_a_second_owner_meets_the_port_of_the_first() -> None:
    """The reservation's port is hidden from its owners, that of an owner is not."""
    ports = {"ports": [{"containerPort": 80, "hostPort": 80}], "name": "c"}
    inner = {"containers": [{**ports, "resources": {"requests": {"cpu": "2"}}}]}
    held = reservation("r", pod=inner, allocateOnce=False, on="n")
    both = [web("a", container=ports), web("b", container=ports)]
    outcome = reservations.tried(node("n"), held, *both)

    assert [placement["pod"] for placement in outcome["placements"]] == ["d/a"]


def test_a_reservation_that_no_node_serves_says_so() -> None:
    """Pending, with the message of the scheduler as a condition."""
    [condition] = states(node("n", cpu="1"), reservation("r", cpu="2"))["r"]["conditions"]

    assert (condition["type"], condition["status"]) == ("Scheduled", "False")
    assert condition["reason"] == "Unschedulable"
    assert condition["message"] == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_pinned_reservation() -> None:
    """Its node or none, and its node must have room."""
    pinned = reservation("r", cpu="2", pod=_pinned("b"))

    assert states(node("a"), node("b"), pinned)["r"]["node"] == "b"
    assert (
        "1 node(s) didn't match the nodeName specified by reservation"
        in states(node("a"), node("b", cpu="1"), pinned)["r"]["conditions"][0]["message"]
    )


def _pinned(name: str) -> Any:
    asked = {"requests": {"cpu": "2"}}
    return {"nodeName": name, "containers": [{"name": "c", "resources": asked}]}


def test_policies_that_conflict_do_not_share_a_node() -> None:
    """Default beside Aligned or Restricted is refused."""
    here = reservation("a", cpu="1", on="n")
    more = reservation("b", cpu="1", allocatePolicy="Aligned")

    assert "node(s) reservation allocate policy conflict" in json.dumps(
        states(node("n"), here, more)["b"]
    )
    assert (
        states(node("n"), more, reservation("c", cpu="1", allocatePolicy="Restricted"))["c"][
            "phase"
        ]
        == "Available"
    )


def test_priority_decides_who_comes_first() -> None:
    """Without one a reservation comes before every pod; with a low one it waits its turn."""
    low = reservation("r", cpu="4", meta={"labels": {"koordinator.sh/priority": "1"}})
    urgent = pod("x", cpu="4", priority=10)

    assert drew(node("n"), reservation("r", cpu="4"), urgent) == {}
    assert drew(node("n"), low, urgent) == {"x": ("n", None)}


def test_outsiders_do_not_preempt_for_what_is_held() -> None:
    """Evicting a pod inside a reservation gives its room back to the reservation alone."""
    held = reservation("r", cpu="4", allocateOnce=False, on="n")
    inside = web("inside", on="n", cpu="4", priority=1, meta={"annotations": drawn("r")})
    outsider, owner = pod("x", cpu="2", priority=9), web("x", cpu="2", priority=9)

    assert tried(node("n"), held, inside, outsider)["preemptions"] == []
    [told] = tried(node("n"), held, inside, owner)["preemptions"]
    assert told["victims"] == ["d/inside"]


def test_a_resized_reservation_holds_what_the_annotation_says() -> None:
    """The annotation replaces the template's amounts, upwards and downwards."""
    grown = {"annotations": {f"{KEY}reservation-resize-allocatable": '{"resources":{"cpu":"3"}}'}}
    held = reservation("r", cpu="1", on="n", meta=grown)

    assert states(node("n"), held)["r"]["allocatable"] == {"cpu": "3"}
    assert drew(node("n"), held, pod("x", cpu="2")) == {}


def test_a_node_that_is_gone_fails_its_reservation() -> None:
    """Available on a node that is not there: expired."""
    [_, ready] = states(node("n"), reservation("r", cpu="1", on="away"))["r"]["conditions"]

    assert (ready["type"], ready["reason"]) == ("Ready", "Expired")
    assert ready["message"] == "node away was deleted"


def test_a_pod_in_operating_mode_is_room_for_another() -> None:
    """One consumer draws on it; nothing is counted twice; it is no Reservation object."""
    owners = json.dumps([{"labelSelector": {"matchLabels": WEB}}])
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    meta = {"uid": "op", "annotations": {f"{KEY}reservation-owners": owners}}
    mode = {f"{KEY}operating-mode": "Reservation"}
    holder = pod("op", on="n", cpu="3", labels=mode, meta=meta)
    holder["status"] = status
    outcome = reservations.tried(
        node("n"), holder, web("a", cpu="3"), web("b", cpu="1"), pod("x", cpu="1")
    )
    taken = {placement["pod"]: placement["reservation"] for placement in outcome["placements"]}

    assert taken == {"d/a": "op", "d/b": None}
    assert outcome["reservations"] == []
    holder["status"] = {"phase": "Pending"}
    assert reservations.drew(node("n"), holder, web("a", cpu="2")) == {}


def test_who_waits_for_a_reservation_is_woken_by_no_service_or_controller() -> None:
    """Every rollout makes a ReplicaSet: all who wait would be tried again for each."""
    core = Core({"default-scheduler": profile.default("default-scheduler")})
    core.node(None, nodes.decode(node("n")), 0.0)
    body = web("x", cpu="1", meta={"annotations": affinity(name="r")})
    core.pod(None, core.decoder.decode(body, 0), 0.0)
    assert isinstance(core.step(0.0), Refusal)
    core.wake(ClusterEvent(ActionType.OWNERS, namespace="d"), 20.0)
    assert core.step(40.0) is None
    core.wake(ClusterEvent(ActionType.NODE_NEW), 60.0)
    assert isinstance(core.step(80.0), Refusal)
