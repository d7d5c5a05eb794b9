"""PoorService: who does badly on a node while others of its workload do well elsewhere leaves."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from koordlet.scheduler.descheduling import configuration, dump
from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.disruption.answers import Clock
from tests.kit.descheduling import NOW, ago, containers, everybody, node, play, pod, policy

NODES = [node("a", cpu="9"), node("b", cpu="9"), node("c", cpu="9")]
ACTS = policy({"PoorService": {"dryRun": False}})
HOUR = 3600.0


def restarting(name: str, on: str, restarts: int, **more: Any) -> dict[str, Any]:
    """A pod that has restarted so often; half an hour old at most, unless ``age`` says more."""
    status = {"containerStatuses": containers(restarts)}
    return pod(name, on, status=status, **{"age": 1700, **more})


def waiting(name: str, on: str, what: str = "ImagePullBackOff", **more: Any) -> dict[str, Any]:
    """A pod that has not been ready for some seconds; ``since``: 1000."""
    since = more.pop("since", 1000)
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": ago(since)}
    state = containers(waiting={"reason": what})
    status = {"phase": "Pending", "conditions": [ready], "containerStatuses": state}
    return pod(name, on, status=status, **more)


def moves(*bodies: dict[str, Any], body: Any = ACTS) -> list[tuple[str, float]]:
    """Who goes, and for how long its node is avoided."""
    result = play([*NODES, *bodies], body)
    assert result.failures == []
    return [(each.resident.pod.name, each.avoid_seconds) for each in result.evicted]


def test_a_crash_loop_on_one_node_alone_moves_the_pod() -> None:
    """Five restarts in half an hour, while half of the others have less than two."""
    others = [restarting("q", "b", 1), restarting("r", "c", 2)]
    assert moves(restarting("p", "a", 5), *others) == [("p", 2 * HOUR)]
    assert moves(restarting("p", "a", 4), *others) == []


def test_a_workload_that_crashes_everywhere_stays() -> None:
    """It is not the node; nor does anybody know that where there is no other pod."""
    others = [restarting("q", "b", 1), restarting("r", "c", 2), restarting("s", "c", 2)]
    assert moves(restarting("p", "a", 5), *others) == []
    assert moves(restarting("p", "a", 5)) == []
    assert moves(restarting("p", "a", 5), restarting("x", "b", 0, owner="ReplicaSet/other")) == []


def played(*looks: tuple[float, int]) -> list[bool]:
    """Whether an old pod goes in rounds at these seconds, with so many restarts until then."""
    settings = configuration.read(ACTS, "test")
    gone = []
    for seconds, restarts in looks:
        bodies = [*NODES, restarting("p", "a", restarts, age=86400), restarting("q", "b", 0)]
        state, _ = dump.state(bodies, NOW)
        clock = Clock(wall=NOW + seconds, steady=seconds)
        state = dataclasses.replace(state, now=clock)
        played = rounds.DeschedulingRound(settings.profiles, settings.limits, state)
        gone.append(bool(played.play(everybody).evicted))
    return gone


def test_only_restarts_within_half_an_hour_count() -> None:
    """What an old pod had before is nobody's guess; what lies further back counts no more."""
    assert played((0, 50)) == [False]
    assert played((0, 50), (600, 54), (1200, 55)) == [False, False, True]
    slow = [(400.0 * at, 50 + at) for at in range(12)]
    assert played(*slow) == [False] * 12


def test_of_rounds_that_are_further_apart_than_half_an_hour_the_last_counts() -> None:
    """Of a pod that no round has seen, still nothing is guessed."""
    assert played((0, 50), (2000, 55)) == [False, True]
    assert played((0, 50), (2000, 54), (4000, 58)) == [False, False, False]


@pytest.mark.parametrize("what", ["ImagePullBackOff", "ErrImagePull", "ContainerCreating"])
def test_an_image_or_a_volume_that_fails_here_alone_moves_the_pod(what: str) -> None:
    """For a quarter of an hour, while another of the workload is up elsewhere."""
    assert moves(waiting("p", "a", what), pod("q", "b")) == [("p", HOUR)]
    assert moves(waiting("p", "a", what, since=800), pod("q", "b")) == []


def test_who_waits_for_what_comes_nowhere_stays() -> None:
    """Another that waits elsewhere, or none that is up, says nothing of this node."""
    assert moves(waiting("p", "a"), pod("q", "b"), waiting("r", "c", "ContainerCreating")) == []
    assert moves(waiting("p", "a"), pod("q", "a")) == []
    assert moves(waiting("p", "a"), waiting("q", "a"), pod("r", "b")) == [("p", HOUR), ("q", HOUR)]
    assert moves(waiting("p", "a", "CreateContainerError"), pod("q", "b")) == []


def killed(name: str, on: str, *seconds: float, limits: Any = None, **more: Any) -> dict[str, Any]:
    """A pod whose container was killed for lack of memory so long ago, the last time first."""
    states = [
        {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": ago(second)}}
        for second in seconds
    ]
    status = {"name": "c", "restartCount": len(states), "lastState": states[0]}
    if len(states) > 1:
        status["state"] = states[1]
    box = {"name": "c", "image": "i", "resources": {"limits": limits or {}}}
    return pod(name, on, status={"containerStatuses": [status]}, spec={"containers": [box], **more})


def test_who_is_killed_for_lack_of_the_nodes_memory_leaves() -> None:
    """Twice in an hour; a kill at a limit of its own is no fault of the node."""
    assert moves(killed("p", "a", 100, 3500)) == [("p", HOUR)]
    assert moves(killed("p", "a", 100)) == []
    assert moves(killed("p", "a", 100, 3700)) == []
    assert moves(killed("p", "a", 100, 200, limits={"memory": "1Gi"})) == []
    assert moves(killed("p", "a", 100, 200, limits={"cpu": "1"})) == [("p", HOUR)]
    whole = {"limits": {"memory": "1Gi"}}
    assert moves(killed("p", "a", 100, 200, resources=whole)) == []


def test_kills_are_remembered_from_round_to_round() -> None:
    """A status has only the last ones, or none of them after another end."""
    settings = configuration.read(ACTS, "test")
    gone = []
    kill, again, other = killed("p", "a", 3000), killed("p", "a", 100), pod("p", "a")
    for body in (kill, kill, other, again):
        state, _ = dump.state([*NODES, body], NOW)
        result = rounds.DeschedulingRound(settings.profiles, settings.limits, state)
        gone.append(len(result.play(everybody).evicted))
    assert gone == [0, 0, 0, 1]


def test_it_only_shows_unless_it_is_told_to_act() -> None:
    """Shadow first."""
    result = play([*NODES, waiting("p", "a"), pod("q", "b")], policy({"PoorService": None}))
    assert [(each.resident.pod.name, each.shadow) for each in result.evicted] == [("p", True)]
