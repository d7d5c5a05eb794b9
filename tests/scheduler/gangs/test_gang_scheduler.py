"""Gangs in the loop: admission again, outcomes one by one, what is ignored."""

from __future__ import annotations

from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Bind
from koordlet.scheduler.objects import nodes, unserved
from tests.kit import clusters, gangs
from tests.kit.gang_scene import Scene


def test_keys_that_the_operator_ignores_make_no_gang_but_a_field_does() -> None:
    """The option places members alone; the field of the specification is never ignored."""
    judge = unserved.UnservedKeys(ignores_keys=True)
    core = Core({"default-scheduler": profile.default("default-scheduler")}, judge=judge)
    core.node(None, nodes.decode(clusters.node("n")), 0.0)
    for place, body in enumerate((gangs.member("a", "g", 5), gangs.own("k", "g"))):
        core.pod(None, core.decoder.decode(body, place), 0.0)
    outcomes = {outcome.pod.name: outcome for _ in "ab" if (outcome := core.step(1.0))}
    assert isinstance(outcomes["a"], Bind)
    assert not isinstance(outcomes["k"], Bind)


def test_a_member_hears_of_a_change_once_and_again_only_when_the_reason_differs() -> None:
    """A gang that becomes unreadable says so, and is silent until something changes."""
    scene = Scene(clusters.node("n"), gangs.pod_group("g", 2), gangs.labelled("a", "g"))
    assert scene.decided() == {"a": ""}
    scene.put(gangs.pod_group("g", 2))
    assert scene.decided() == {}
    scene.put(gangs.pod_group("g", "two"))
    assert scene.decided(0.1) == {"a": ""}
    assert scene.messages["a"] == "gang has not init, gangName: d/g, podName: d/a"


def test_a_gang_that_must_be_gathered_is_refused_by_name_and_no_member_is_bound() -> None:
    """A constraint that is not served is not passed over; without it the gang goes."""
    near = [{"layer": "Block", "strategy": "MustGather"}]
    pods = [gangs.labelled(name, "g") for name in "ab"]
    group = gangs.pod_group("g", 2, gather={"gatherStrategy": near})
    scene = Scene(clusters.node("n"), group, *pods)
    assert scene.decided() == {"a": "", "b": ""}
    assert "topology of gang 'g'" in scene.messages["b"]
    scene.put(gangs.pod_group("g", 2))
    assert scene.decided() == {"a": "n", "b": "n"}
