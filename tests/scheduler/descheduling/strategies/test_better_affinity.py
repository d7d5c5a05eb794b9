"""BetterAffinity: whose preferences another node fulfils better goes there, after some rounds."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from koordlet.model import errors
from koordlet.scheduler.descheduling import configuration, dump
from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.disruption.settings import Aggressiveness
from koordlet.scheduler.sim.descheduling import DeschedulingSimulation
from tests.kit.descheduling import NOW, Searches, everybody, evicted, node, play, pod, policy

AT_ONCE = {"dryRun": False, "consecutiveRounds": 1}
ZONE = "zone"


def acting(**more: Any) -> dict[str, Any]:
    """A configuration that moves pods in its first round."""
    return policy({"BetterAffinity": {**AT_ONCE, **more}})


def zoned(name: str, zone: str, **more: Any) -> dict[str, Any]:
    """A node in a zone."""
    return node(name, labels={ZONE: zone}, **more)


def prefers_zone(zone: str, weight: int = 100) -> dict[str, Any]:
    """A preference of a node."""
    wish = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    terms = [{"weight": weight, "preference": wish}]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


def prefers_pods(app: str, weight: int = 100, *, kind: str = "podAffinity") -> dict[str, Any]:
    """A preference of neighbours in a zone, or that there are none."""
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": app}}}
    terms = [{"weight": weight, "podAffinityTerm": term}]
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


def wishing(name: str, on: str, affinity: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A pod with preferences."""
    return pod(name, on, spec={"affinity": affinity}, **more)


NODES = [zoned("a", "x"), zoned("b", "y")]


@pytest.mark.parametrize(
    ("affinity", "neighbour"),
    [
        (prefers_zone("y"), "a"),
        (prefers_pods("db"), "b"),
        (prefers_pods("db", kind="podAntiAffinity"), "a"),
    ],
    ids=["node", "near", "far"],
)
def test_a_pod_goes_where_its_preference_is_fulfilled(
    affinity: dict[str, Any], neighbour: str
) -> None:
    """Of a node, of neighbours, of having none."""
    db = pod("db", neighbour, labels={"app": "db"})
    result = play([*NODES, wishing("p", "a", affinity), db], acting())
    assert result.failures == []
    [move] = result.evicted
    assert (move.resident.pod.name, move.target, move.shadow) == ("p", "b", False)
    assert move.reason.endswith("gain 1.00")


def test_a_pod_that_is_as_well_off_where_it_is_stays() -> None:
    """Nor does one that has no preference, or whose better node has no room."""
    bodies = [
        zoned("a", "x"), zoned("b", "y", cpu="1"), pod("full", "b", cpu="1"),
        wishing("there", "a", prefers_zone("x")), wishing("no-room", "a", prefers_zone("y")),
        pod("none", "a"),
    ]  # fmt: skip
    assert evicted(bodies, acting()) == []


def test_the_gain_is_the_part_of_its_preferences_that_is_newly_fulfilled() -> None:
    """A tenth of the weights is below the least gain of 0.15, and not below one of 0.1."""
    light = prefers_zone("y", weight=1)["nodeAffinity"]
    (term,) = light["preferredDuringSchedulingIgnoredDuringExecution"]
    (heavy,) = prefers_zone("elsewhere", weight=9)["nodeAffinity"].values()
    both = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term, *heavy]}}
    bodies = [*NODES, wishing("p", "a", both)]
    assert evicted(bodies, acting()) == []
    assert evicted(bodies, acting(minGain=0.1)) == ["p"]


def test_a_pod_stays_where_the_whole_score_keeps_it() -> None:
    """Its zone is the other one, and the taint that it would have there costs more."""
    soft = [{"key": "k", "effect": "PreferNoSchedule"}]
    lesser = prefers_zone("y", weight=1)
    bodies = [zoned("a", "x"), zoned("b", "y", taints=soft), wishing("p", "a", lesser)]
    assert evicted(bodies, acting()) == []
    assert evicted([*NODES, wishing("p", "a", lesser)], acting()) == ["p"]


def test_it_only_shows_unless_it_is_told_to_act() -> None:
    """Shadow first."""
    bodies = [*NODES, wishing("p", "a", prefers_zone("y"))]
    result = play(bodies, policy({"BetterAffinity": {"consecutiveRounds": 1}}))
    assert [(each.resident.pod.name, each.shadow) for each in result.evicted] == [("p", True)]


def moved(body: dict[str, Any], times: int, dial: Aggressiveness, gap: int = -1) -> list[int]:
    """How many pods each of several rounds moves; in round ``gap`` the pod is well off."""
    settings = configuration.read(body, "test")
    counts = []
    for number in range(times):
        where = "b" if number == gap else "a"
        state, _ = dump.state([*NODES, wishing("p", where, prefers_zone("y"))], NOW)
        state = dataclasses.replace(state, aggressiveness=dial)
        played = rounds.DeschedulingRound(settings.profiles, settings.limits, state)
        counts.append(len(played.play(everybody).evicted))
    return counts


def test_it_acts_when_several_rounds_in_a_row_have_seen_the_gain() -> None:
    """As many as the dial says, unless the argument does; one without it begins anew."""
    body = policy({"BetterAffinity": {"dryRun": False}})
    assert moved(body, 3, Aggressiveness.HIGH) == [0, 1, 1]
    assert moved(body, 6, Aggressiveness.NORMAL) == [0, 0, 0, 0, 1, 1]
    assert moved(body, 7, Aggressiveness.NORMAL, gap=3) == [0] * 7
    three = policy({"BetterAffinity": {"dryRun": False, "consecutiveRounds": 3}})
    assert moved(three, 3, Aggressiveness.LOW) == [0, 0, 1]


def test_five_pods_go_in_a_round_the_largest_gain_first() -> None:
    """The others have their turn in the next one."""
    nodes = [zoned("a", "x", cpu="9"), zoned("b", "y", cpu="9")]
    (least,) = prefers_zone("elsewhere")["nodeAffinity"].values()
    half = prefers_zone("y")
    half["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] += least
    several = [wishing(f"half-{at}", "a", half) for at in range(3)]
    several += [wishing(f"whole-{at}", "a", prefers_zone("y")) for at in range(4)]
    gone = evicted([*nodes, *several], acting())
    assert gone == [*(f"whole-{at}" for at in range(4)), "half-0"]


def test_a_move_that_an_earlier_one_has_made_needless_is_not_made() -> None:
    """Two pods that want to be together do not change places."""
    bodies = [
        zoned("a", "x", cpu="9"), zoned("b", "y", cpu="9"),
        wishing("p", "a", prefers_pods("q"), labels={"app": "p"}),
        wishing("q", "b", prefers_pods("p"), labels={"app": "q"}),
    ]  # fmt: skip
    assert evicted(bodies, acting()) == ["p"]


def test_where_no_pod_has_a_preference_no_node_is_looked_at() -> None:
    """It costs a look at each pod."""
    searches = Searches()
    state, _ = dump.state([*NODES, pod("p", "a"), pod("q", "b")], NOW, searches.served())
    settings = configuration.read(acting(), "test")
    played = rounds.DeschedulingRound(settings.profiles, settings.limits, state)
    played.play(everybody)
    assert searches.number == 0


def test_a_dump_is_taken_to_have_been_so_for_long() -> None:
    """``koordlet sim --deschedule`` shows what would go, whatever the dial."""
    body = policy({"BetterAffinity": {"dryRun": False}})
    simulated = DeschedulingSimulation(
        [*NODES, wishing("p", "a", prefers_zone("y"))], configuration.read(body, "test"), NOW
    )
    assert [move["pod"] for move in simulated.run()["moves"]] == ["default/p"]


def test_arguments_are_judged() -> None:
    """A part of the weights, and a number of rounds."""
    with pytest.raises(errors.ConfigError, match="minGain"):
        configuration.read(acting(minGain=2), "test")
    with pytest.raises(errors.ConfigError, match="consecutiveRounds"):
        configuration.read(acting(consecutiveRounds=0), "test")
