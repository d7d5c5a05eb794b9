"""CustomPriority: levels of nodes, both modes, the thresholds that the peer does not use."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.model import errors
from koordlet.scheduler.descheduling.round import EvictionProposal
from koordlet.scheduler.disruption.answers import Deny
from tests.kit.descheduling import evicted, node, play, pod, policy

LEVELS = [
    {"name": "dear", "nodeSelector": {"matchLabels": {"price": "dear"}}},
    {"name": "mid", "nodeSelector": {"matchLabels": {"price": "mid"}}},
    {"name": "cheap", "nodeSelector": {"matchLabels": {"price": "cheap"}}},
]


def priced(name: str, price: str, **more: Any) -> dict[str, Any]:
    """A node of a level."""
    return node(name, labels={"price": price}, **more)


def strategy(**more: Any) -> dict[str, Any]:
    """The configuration."""
    return policy({"CustomPriority": {"evictionOrder": LEVELS, **more}})


NODES = (priced("d1", "dear"), priced("m1", "mid", cpu="1"), priced("c1", "cheap", cpu="4"))


def test_the_smallest_pods_leave_expensive_nodes_for_whichever_is_cheaper() -> None:
    """In the order of levels, and nobody leaves the cheapest."""
    pods = (
        pod("large", "d1", cpu="1500m"), pod("small", "d1", cpu="200m"),
        pod("mid", "m1", cpu="300m"), pod("there", "c1", cpu="100m"),
    )  # fmt: skip
    result = play([*NODES, *pods], strategy())
    moves = [(each.resident.pod.name, each.target) for each in result.evicted]
    assert [name for name, _ in moves] == ["small", "large", "mid"]
    assert dict(moves)["large"] == "c1"
    assert result.evicted[0].reason == (
        "evicting from dear priority resource to lower priority resource"
    )


def test_a_pod_that_no_cheaper_node_takes_stays() -> None:
    """Unless fitting is not asked for."""
    pods = [pod("huge", "d1", cpu="1900m"), pod("full", "c1", cpu="3900m")]
    assert evicted([*NODES, *pods], strategy()) == []
    assert evicted([*NODES, *pods], strategy(nodeFit=False)) == ["huge"]


def test_a_node_is_drained_only_if_all_its_pods_fit_together() -> None:
    """With what was promised to the node before it; it is cordoned where that is wanted."""
    several = [priced("d1", "dear"), priced("d2", "dear"), priced("c1", "cheap", cpu="2")]
    pods = [pod(f"a{n}", "d1", cpu="600m") for n in range(2)]
    pods += [pod(f"b{n}", "d2", cpu="600m") for n in range(2)]
    settings = strategy(mode="DrainNode", autoCordon=True)
    result = play([*several, *pods], settings)
    # The cordon comes before the first of them.
    assert [(each.resident.pod.name, each.cordon) for each in result.evicted] == [
        ("a0", True), ("a1", False),
    ]  # fmt: skip
    assert result.evicted[0].reason == "drain node d1 (sourcePriority=dear)"
    why = "node d2 is not drained: its pods do not all fit on cheaper nodes"
    assert ("p", "CustomPriority", why) in result.notes


def test_two_nodes_are_drained_where_a_target_has_room_for_exactly_their_pods() -> None:
    """What moved is counted once."""
    several = [priced("d1", "dear"), priced("d2", "dear"), priced("c1", "cheap", cpu="1200m")]
    pods = [pod("a", "d1", cpu="600m"), pod("b", "d2", cpu="600m")]
    assert evicted([*several, *pods], strategy(mode="DrainNode")) == ["a", "b"]


def test_a_drain_ends_with_the_first_pod_that_is_refused() -> None:
    """The other nodes are drained all the same, and the cordon is the business of the first."""
    several = [priced("d1", "dear"), priced("d2", "dear", unschedulable=True), NODES[2]]
    pods = [pod(f"{node}{number}", f"d{node}") for node in (1, 2) for number in (0, 1)]
    asked = []

    def answer(proposal: EvictionProposal) -> Deny | None:
        asked.append((proposal.resident.pod.name, proposal.cordon))
        return None if proposal.node == "d2" else Deny("PDB", "it stays")

    play([*several, *pods], strategy(mode="DrainNode", autoCordon=True), answer)
    assert asked == [("10", True), ("20", False), ("21", False)]


def test_thresholds_keep_a_source_and_reject_a_target() -> None:
    """In percent of what is requested; the peer reads them and uses neither."""
    pods = [pod("small", "d1", cpu="200m"), pod("there", "c1", cpu="2")]
    keep = [{**LEVELS[0], "keepThreshold": {"cpu": 10}}, LEVELS[2]]
    assert evicted([*NODES, *pods], strategy(evictionOrder=keep)) == []
    reject = [LEVELS[0], {**LEVELS[2], "rejectThreshold": {"cpu": 40}}]
    assert evicted([*NODES, *pods], strategy(evictionOrder=reject)) == []
    assert evicted([*NODES, *pods], strategy(evictionOrder=[LEVELS[0], LEVELS[2]])) == ["small"]


def test_it_says_why_it_does_nothing() -> None:
    """Paused, or levels without nodes; a dry run only shows."""
    pods = [pod("small", "d1", cpu="200m")]
    for bodies, more, words in (
        ([*NODES, *pods], {"paused": True}, "it is paused"),
        ([NODES[0], NODES[0] | {"metadata": {**NODES[0]["metadata"], "name": "d2"}}, *pods], {},
         "fewer than two levels have nodes"),
    ):  # fmt: skip
        result = play(bodies, strategy(**more))
        assert [note[2] for note in result.notes] == [words]

    shadows = []

    def answer(proposal: EvictionProposal) -> None:
        shadows.append(proposal.shadow)

    play([*NODES, *pods], strategy(dryRun=True), answer)
    assert shadows == [True]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"evictionOrder": LEVELS[:1]}, "1 levels, and two are needed"),
        ({"autoCordon": True}, "needs mode DrainNode"),
        ({"evictionOrder": [{"nodeSelector": {}}, LEVELS[0]]}, "name: is missing"),
        ({"evictionOrder": [LEVELS[0], {"name": "rest"}]}, "nodeSelector: is missing"),
        ({"evictionOrder": [LEVELS[0], LEVELS[0]]}, "two levels have the same name"),
    ],
)
def test_a_configuration_that_cannot_be_meant_is_refused(more: dict[str, Any], words: str) -> None:
    """With the path of what is wrong."""
    with pytest.raises(errors.ConfigError, match=words):
        play(NODES, strategy(**more))
