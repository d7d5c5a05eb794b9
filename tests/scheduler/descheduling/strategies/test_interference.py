"""Interference: best-effort neighbours leave, else the cheapest; local means first."""

from __future__ import annotations

import dataclasses
from typing import Any

from koordlet.model import decision
from koordlet.model.nodereport import NodeReport
from koordlet.scheduler.descheduling import configuration, dump
from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.disruption.answers import Clock
from tests.kit.descheduling import NOW, everybody, node, pod, policy

NODES = [node("a", cpu="9"), node("b", cpu="9")]
HOUR = 3600.0


def labelled(name: str, qos: str, **more: Any) -> Any:
    """A pod on node a of a workload of its own, with the peers' QoS class."""
    labels = {"koordinator.sh/qosClass": qos}
    return pod(name, "a", labels=labels, owner=f"ReplicaSet/{name}", **more)


def report(slowed: tuple[str, ...], suspected: tuple[str, ...]) -> dict[str, NodeReport]:
    """What the agent of node a tells of its pods."""
    conditions = [
        decision.Condition(type=name, reason="CyclesPerInstruction", subject=f"default/{pod}")
        for name, pods in (("LatencySensitiveSlowed", slowed), ("DisturbsNeighbours", suspected))
        for pod in pods
    ]
    of_node = decision.Condition(type="LatencySensitiveSlowed", reason="CyclesPerInstruction")
    return {"a": NodeReport(node="a", conditions=(of_node, *conditions))}


class Rounds:
    """Rounds of one strategy, some minutes apart."""

    def __init__(self, *bodies: Any, args: Any = None) -> None:
        given = {"dryRun": False} if args is None else args
        self._settings = configuration.read(policy({"Interference": given}), "test")
        self._bodies = [*NODES, *bodies]

    def play(
        self, minutes: float, reports: dict[str, NodeReport], **more: Any
    ) -> rounds.RoundResult:
        """One round so many minutes after the first; ``more``: what else it sees."""
        state, _ = dump.state(self._bodies, NOW)
        seconds = 60 * minutes
        clock = Clock(wall=NOW + seconds, steady=seconds)
        state = dataclasses.replace(state, now=clock, reports=reports, **more)
        played = rounds.DeschedulingRound(self._settings.profiles, self._settings.limits, state)
        result = played.play(everybody)
        assert result.failures == []
        return result


def moved(*bodies: Any, **about: tuple[str, ...]) -> list[tuple[str, str, float]]:
    """Who goes and whose workload avoids the node, after five minutes of the same report."""
    made, reports = Rounds(*bodies), report(about["slowed"], about["suspected"])
    assert made.play(0, reports).evicted == []
    result = made.play(5, reports)
    return [
        (kind, each.resident.pod.name, each.avoid_seconds)
        for kind, several in (("goes", result.evicted), ("avoids", result.avoided))
        for each in several
    ]


def test_a_best_effort_suspect_leaves_whatever_it_costs() -> None:
    """Before a cheaper one that is not, and before the one that is slowed."""
    job = labelled("job", "BE", cpu="8")
    batch = labelled("batch", "LS")
    web = labelled("web", "LS")
    assert moved(web, batch, job, slowed=("web",), suspected=("batch", "job")) == [
        ("goes", "job", HOUR)
    ]


def test_else_the_cheapest_move_of_both_sides() -> None:
    """Where the slowed one leaves, they are not to meet again there: both avoid the node."""
    web, big = labelled("web", "LS"), labelled("big", "LS", cpu="5")
    assert moved(web, big, slowed=("web",), suspected=("big",)) == [
        ("goes", "web", HOUR),
        ("avoids", "big", HOUR),
    ]
    own = labelled("web", "LSR")
    assert moved(own, big, slowed=("web",), suspected=("big",)) == [("goes", "big", HOUR)]


def test_while_one_of_them_leaves_the_others_stay() -> None:
    """Jobs, live moves and long ends last for several rounds in which the report is the same."""
    web, big, reports = (
        labelled("web", "LS"),
        labelled("big", "LS", cpu="5"),
        report(("web",), ("big",)),
    )
    ends = labelled("big", "LS", cpu="5", meta={"deletionTimestamp": "2027-01-15T08:00:00Z"})
    job: Any = lambda resident: "a job" * (resident.pod.name == "big")  # noqa: E731
    evacuates = {"evacuating": {big["metadata"]["uid"]}}
    for suspect, more in ((big, {"held": job}), (big, evacuates), (ends, {})):
        made = Rounds(web, suspect)
        made.play(0, reports)
        result = made.play(5, reports, **more)
        assert (result.evicted, result.avoided) == ([], [])


def test_only_after_five_minutes_in_each_round() -> None:
    """Until then the agent's own means are at work; a round without it begins anew."""
    made = Rounds(labelled("web", "LS"), labelled("job", "BE"))
    blamed, calm = report(("web",), ("job",)), report((), ())
    several = [(0, blamed), (4, blamed), (5, calm), (6, blamed), (10, blamed), (11, blamed)]
    assert [len(made.play(*each).evicted) for each in several] == [0, 0, 0, 0, 0, 1]
    assert made.play(12, {}).evicted == [], "its agent is silent"
    (note,) = made.play(13, blamed).notes
    assert note[2] == "1 pods are suspected, for less than 5 minutes"


def test_it_only_shows_unless_it_is_told_to_act_and_heeds_its_selectors() -> None:
    """Shadow first; a workload that is not in view stays."""
    bodies = labelled("web", "LS"), labelled("job", "BE")
    blamed = report(("web",), ("job",))
    selector = {"podSelectors": [{"selector": {"matchLabels": {"app": "other"}}}]}
    for args, expected in (({}, [True]), ({"dryRun": False}, [False]), (selector, [])):
        made = Rounds(*bodies, args=args)
        made.play(0, blamed)
        assert [each.shadow for each in made.play(5, blamed).evicted] == expected


def test_a_pod_that_stays_lets_the_next_one_go() -> None:
    """One of a node in a round; who may not be evicted is passed over."""
    bare = pod("bare", "a", labels={"koordinator.sh/qosClass": "BE"}, owner="")
    job, other = labelled("job", "BE"), labelled("other", "BE")
    about: Any = {"slowed": ("web",), "suspected": ("bare", "job", "other")}
    assert moved(bare, job, other, labelled("web", "LS"), **about) == [("goes", "job", HOUR)]
