"""Cookies of cores over the lives of agents: given, kept, followed, found again, and taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from koordlet.model import wishes
from koordlet.model.qos import KubeQos, Qos
from tests.kit import agents, living_pods

CONFIG = "policies: {{core_scheduling: {{mode: {}}}}}\n"


class Scene(living_pods.LivingPods):
    """A machine with a pod of each kind, and cookies."""

    def __init__(self, folder: Path) -> None:
        kinds = {"web": (KubeQos.BURSTABLE, Qos.LS), "job": (KubeQos.BEST_EFFORT, Qos.BE)}
        super().__init__(folder, CONFIG.format("enforce"), kinds)

    def cookie(self, name: str) -> int:
        """Of the first process of a pod."""
        return self.host.cookies.of.get(self.pids[name], 0)


@pytest.fixture
def scene(ram: Path) -> Scene:
    """A machine without an agent."""
    return Scene(ram)


def test_given_kept_and_taken_back(scene: Scene) -> None:
    """Classes are apart; the next agent changes nothing; at the end nobody has one, as before."""
    scene.settle()
    first = dict(scene.host.cookies.of)
    assert scene.host.cookies.together(scene.pids["web"])
    assert scene.host.cookies.together(scene.pids["job"])
    scene.settle()
    assert first == scene.host.cookies.of
    done = scene.site.restore()
    assert (list(done.failed), [scene.cookie(name) for name in scene.pids]) == ([], [0, 0])
    before = list(scene.host.cookies.changes)
    scene.site.restore()
    assert before == scene.host.cookies.changes


def test_newcomers_and_those_who_change_their_minds(scene: Scene) -> None:
    """A new process of a pod gets its cookie; a pod that wants none loses it."""
    scene.settle()
    late = scene.run("web")
    scene.settle()
    assert scene.host.cookies.together(scene.pids["web"], late)
    none = wishes.Wishes(core_sharing=wishes.CoreSharing(policy="none"))
    scene.wish("web", none)
    scene.settle()
    assert (scene.cookie("web"), scene.host.cookies.of[late]) == (0, 0)
    assert scene.cookie("job")


def test_cookies_go_when_the_policy_is_switched_off(scene: Scene) -> None:
    """What was given is taken back with the next pass."""
    scene.settle()
    scene.site.config = CONFIG.format("off")
    scene.settle()
    assert [scene.cookie(name) for name in scene.pids] == [0, 0]


def test_a_refusal_forgets_no_cookie(scene: Scene) -> None:
    """SMT that is off for a while: whoever has one of ours loses it as soon as that can be done."""
    scene.settle()
    given = dict(scene.host.cookies.of)
    scene.host.cookies.built = False
    scene.settle()
    assert [failure.verdict.name for failure in scene.site.restore().failed] == ["REFUSED"] * 2
    assert given == scene.host.cookies.of
    scene.host.cookies.built = True
    done = scene.site.restore()

    assert (done.failed, [scene.cookie(name) for name in scene.pids]) == ((), [0, 0])


def test_in_the_shadow_nothing_is_given(scene: Scene) -> None:
    """It is only shown."""
    scene.site.config = CONFIG.format("shadow")
    scene.settle()
    assert scene.host.cookies.changes == []


def test_pods_are_named_where_the_kernel_has_no_cookies(scene: Scene) -> None:
    """Whoever is concerned is named, and nothing else suffers."""
    scene.host.cookies.built = False
    scene.site.pods = tuple(scene.pods.values())
    with scene.site.agent() as who:
        agents.settle(who, scene.site.clock)
        made = who.tick._before
    assert made is not None
    (message,) = (
        condition.message
        for condition in made.draft.plan.conditions
        if condition.type == "CoreSchedulingUnsupported"
    )
    assert all(pod.key in message for pod in scene.pods.values())
