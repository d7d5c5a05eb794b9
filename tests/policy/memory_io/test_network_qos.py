"""Bandwidth by class: who is in which, what each gets, and when nothing is touched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from koordlet.config import schema
from koordlet.history import series
from koordlet.model import (
    action,
    decision,
    nodeslo,
    plan,
    pod,
    qos,
    queueing,
    snapshot,
    strategies,
    wishes,
)
from koordlet.policy.framework import registry
from koordlet.policy.memory_io import network_qos as policy
from tests.kit import moments

GIGA = 1_000_000_000
Share = strategies.Share
ETH0 = queueing.Link(name="eth0", index=2, egress="mq 0:")


def one(name: str, kind: qos.Qos, *addresses: str, **more: Any) -> pod.Pod:
    """A workload with addresses."""
    made = pod.Pod(uid=name, namespace="ns", name=name, qos=kind, raw_qos=kind, source="test")
    return replace(made, addresses=addresses, **more)


BATCH = one("batch", qos.Qos.BE, "10.0.0.4", "fd00::4")
WEB = one("web", qos.Qos.LS, "10.0.0.3")


def decide(
    *pods: pod.Pod,
    link: queueing.Link = ETH0,
    slo: nodeslo.NodeSlo | None = None,
    annotations: dict[str, str] | None = None,
    **settings: Any,
) -> decision.Decision[policy.State]:
    """A decision about a machine with one link."""
    now: snapshot.Snapshot = moments.moment(moments.machine())
    now = replace(
        now,
        pods=pods,
        slo=slo,
        links=queueing.Links((link,)),
        node=replace(now.node, annotations=annotations or {}),
    )
    asked = policy.Settings(**{"total": GIGA, **settings})
    return policy.decide(now, series.History(), asked, policy.State())


def trees(made: decision.Decision[policy.State]) -> dict[str, queueing.Tree]:
    """What shall be, by target."""
    return {
        each.target: queueing.parse(each.value)
        for each in made.actions
        if isinstance(each, action.SetQdisc)
    }


def test_it_is_off_until_somebody_opts_in() -> None:
    """How packets leave belongs to everybody; and without a total there is nothing to give."""
    [row] = [each for each in registry.POLICIES if each.stem == policy.STEM]

    assert plan.Mode.OFF is row.default_mode
    assert schema.defaults().policies.network_qos.mode == "off"
    assert decide(BATCH, total=0).actions == ()
    assert decide(BATCH, annotations={policy.ANNOTATION: "1e99"}).actions == ()
    assert "no valid total network bandwidth" in decide(total=0).explanation["bandwidth"]


def test_three_classes_and_who_is_in_them() -> None:
    """40, 30 and 30 percent for certain, all of it at most, borrowed in that order."""
    made = trees(decide(BATCH, WEB))

    assert set(made) == {"/net/eth0/egress", "/net/eth0/ingress"}
    for tree in made.values():
        assert tree.default == policy.SYSTEM
        assert {
            policy.ROOT: queueing.Class(0, GIGA, GIGA),
            policy.SYSTEM: queueing.Class(1, 400_000_000, GIGA, 0),
            policy.LS: queueing.Class(1, 300_000_000, GIGA, 1),
            policy.LS_REST: queueing.Class(3, 300_000_000, GIGA, 1),
            policy.BE: queueing.Class(1, 300_000_000, GIGA, 2),
            policy.BE_REST: queueing.Class(4, 300_000_000, GIGA, 2),
        } == tree.classes
        assert tree.addresses == {
            "10.0.0.3": policy.LS_REST,
            "10.0.0.4": policy.BE_REST,
            "fd00::4": policy.BE_REST,
        }


def test_parts_are_percent_or_bits_and_never_more_than_the_whole() -> None:
    """By direction; what is certain is never more than the limit."""
    be = strategies.NetworkQos(
        egress_limit=Share(percent=10),
        egress_request=Share(percent=20),
        ingress_limit=Share(bits=50_000_001),
        ingress_request=Share(bits=9 * GIGA),
    )
    made = trees(decide(classes={policy.BE: be}))

    assert queueing.Class(1, 100_000_000, 100_000_000, 2) == made["/net/eth0/egress"].classes[4]
    assert queueing.Class(1, 50_000_000, 50_000_000, 2) == made["/net/eth0/ingress"].classes[4]


def test_a_pod_with_a_limit_has_a_class_of_its_own() -> None:
    """Below the one of its kind, never wider than it, and with the same number while it lives."""
    asked = wishes.Wishes(network=wishes.Network(ingress=5_000_000, egress=9 * GIGA))
    own = replace(BATCH, wishes=asked)
    alone, beside = trees(decide(own)), trees(decide(replace(own, uid="a"), own, WEB))

    for side, most in (("egress", GIGA), ("ingress", 5_000_000)):
        tree = alone[f"/net/eth0/{side}"]
        number = tree.addresses["10.0.0.4"]
        assert number >= 0x100
        assert queueing.Class(policy.BE, 8_000, most, 2) == tree.classes[number]
        assert number in beside[f"/net/eth0/{side}"].classes


@pytest.mark.parametrize(
    "who",
    [
        one("a", qos.Qos.LS, "10.0.0.9", host_network=True),
        one("b", qos.Qos.SYSTEM, "10.0.0.9"),
        one("c", qos.Qos.LS, "10.0.0.9", phase=pod.Phase.SUCCEEDED),
    ],
)
def test_who_is_nobody_in_particular(who: pod.Pod) -> None:
    """The host's own network, system pods and pods that ended are in the system class."""
    assert trees(decide(who))["/net/eth0/egress"].addresses == {}


def test_who_cannot_be_told_from_the_host_says_so() -> None:
    """Best-effort work, and whoever has a limit of its own: each; the others are shaped."""
    asked = wishes.Wishes(network=wishes.Network(ingress=5_000_000, egress=5_000_000))
    limited = replace(WEB, name="limited", uid="l", wishes=asked)
    there = [replace(each, host_network=True) for each in (BATCH, limited, WEB)]
    made = decide(*there)

    conditions = [(each.type, each.subject) for each in made.conditions]
    assert conditions == [("NetworkNotTold", "ns/batch"), ("NetworkNotTold", "ns/limited")]
    assert len(made.actions) == 2


def test_an_address_that_two_name_is_of_the_first() -> None:
    """By UID, so that it does not change from tick to tick."""
    twice = decide(one("z", qos.Qos.LS, "10.0.0.4"), BATCH)

    assert trees(twice)["/net/eth0/egress"].addresses["10.0.0.4"] == policy.BE_REST


@pytest.mark.parametrize(("egress", "ingress"), [("tbf 7:", "none"), ("mq 0:", "clsact ffff:")])
def test_what_somebody_else_made_is_left_alone(egress: str, ingress: str) -> None:
    """That side only, and the condition names it."""
    made = decide(BATCH, link=replace(ETH0, egress=egress, ingress=ingress))
    foreign = egress if egress != "mq 0:" else ingress

    assert len(made.actions) == 1
    assert [f"another program set {foreign}" in each.message for each in made.conditions] == [True]


def test_nobody_is_limited_to_nothing() -> None:
    """The operator's least is applied last, to classes and to pods; a link with less has less."""
    asked = wishes.Wishes(network=wishes.Network(ingress=8, egress=8))
    be = strategies.NetworkQos(egress_limit=Share(percent=0), egress_request=Share(percent=0))
    own = replace(BATCH, wishes=asked)
    wide = trees(decide(own, classes={policy.BE: be}, least=2_000_000))["/net/eth0/egress"]
    narrow = trees(decide(own, total=500_000))["/net/eth0/egress"]

    assert queueing.Class(1, 8_000, 2_000_000, 2) == wide.classes[policy.BE]
    assert wide.classes[wide.addresses["10.0.0.4"]].ceil == 2_000_000
    assert narrow.classes[narrow.addresses["10.0.0.4"]].ceil == 500_000


def test_only_what_is_sent() -> None:
    """Where the operator does not want a detour for what arrives."""
    assert set(trees(decide(BATCH, ingress=False))) == {"/net/eth0/egress"}


def slo(
    *, enable: bool = True, total: int | None = 2 * GIGA, policy_name: str = "tc"
) -> nodeslo.NodeSlo:
    """An object that says something about the network."""
    be = replace(
        nodeslo.DEFAULTS.classes["BE"],
        network=strategies.NetworkQos(enable=enable, egress_limit=Share(percent=50)),
    )
    return replace(
        nodeslo.DEFAULTS,
        source="NodeSLO",
        network_policy=policy_name,
        classes={**nodeslo.DEFAULTS.classes, "BE": be},
        system=strategies.System(total_network_bandwidth=total),
    )


def test_a_nodeslo_decides_and_the_nodes_annotation_has_the_total() -> None:
    """Classes that are not enabled have the defaults."""
    classes = trees(decide(BATCH, slo=slo()))["/net/eth0/egress"].classes
    wide = trees(decide(slo=slo(), annotations={policy.ANNOTATION: "10G"}))["/net/eth0/egress"]

    assert queueing.Class(1, 600_000_000, GIGA, 2) == classes[policy.BE]
    assert queueing.Class(1, 800_000_000, 2 * GIGA, 0) == classes[policy.SYSTEM]
    assert wide.classes[policy.ROOT].rate == 10 * GIGA


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        (slo(enable=False), "no class"),
        (slo(policy_name="terway-qos"), "terway-qos"),
        (slo(total=0), "no valid total"),
        (slo(total=None), "no valid total"),
    ],
)
def test_when_a_nodeslo_wants_nothing(wish: nodeslo.NodeSlo, why: str) -> None:
    """Nothing is named, so what was made is taken away."""
    made = decide(BATCH, slo=wish)

    assert made.actions == ()
    assert why in made.explanation["bandwidth"]


@pytest.mark.parametrize("text", ["", "much", "-5", "0"])
def test_an_annotation_that_says_nothing_counts_as_none(text: str) -> None:
    """The total of the strategy stays."""
    made = decide(annotations={policy.ANNOTATION: text})

    assert trees(made)["/net/eth0/egress"].classes[policy.ROOT].rate == GIGA
