"""Real-time services over the lives of agents: given, kept, followed, and taken back."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from koordlet.model import real_time, wishes
from koordlet.model.qos import KubeQos, Qos
from tests.kit import living_pods

CONFIG = "policies: {{real_time: {{mode: {}}}}}\n"
KINDS = {"web": (KubeQos.BURSTABLE, Qos.LS), "api": (KubeQos.BURSTABLE, Qos.LS)}
ASKS = wishes.Wishes(real_time=True)


class Scene(living_pods.LivingPods):
    """Two services of which one asks."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, CONFIG.format("enforce"), KINDS)
        self.wish("web", ASKS)

    def classes(self, *pids: int) -> list[tuple[int, int]]:
        """Of processes."""
        return [self.host.scheduling.policy(pid) for pid in pids]


@pytest.fixture
def scene(ram: Path) -> Scene:
    """A machine without an agent."""
    return Scene(ram)


def test_given_kept_and_taken_back(scene: Scene) -> None:
    """One service is, over several agents; a new process becomes it; at the end nobody is."""
    scene.settle()
    web, api = scene.pids["web"], scene.pids["api"]
    assert scene.classes(web, api) == [real_time.GIVEN, real_time.ORDINARY]
    late = scene.run("web")
    scene.settle()
    assert scene.classes(web, late, api) == [real_time.GIVEN] * 2 + [real_time.ORDINARY]
    assert not scene.site.restore().failed
    assert scene.classes(web, late, api) == [real_time.ORDINARY] * 3


def test_who_asks_no_more_is_ordinary(scene: Scene) -> None:
    """Also where the policy is switched off."""
    scene.settle()
    scene.wish("web", wishes.NONE)
    scene.settle()
    assert scene.classes(scene.pids["web"]) == [real_time.ORDINARY]
    scene.wish("web", ASKS)
    scene.settle()
    assert scene.classes(scene.pids["web"]) == [real_time.GIVEN]
    scene.site.config = CONFIG.format("off")
    scene.settle()
    assert scene.classes(scene.pids["web"]) == [real_time.ORDINARY]


def test_killed_before_it_remembered(scene: Scene) -> None:
    """The journal knows what was given: threads are ordinary for a pass, and then real-time."""
    scene.settle()
    for kept in scene.site.paths.checkpoints.glob("real_time*"):
        kept.unlink()
    scene.settle()
    assert scene.classes(scene.pids["web"]) == [real_time.GIVEN]
    assert not scene.site.restore().failed
    assert scene.classes(scene.pids["web"]) == [real_time.ORDINARY]


def test_what_is_refused_is_not_forgotten(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread refuses the class, then the way back: the next restore finds all the same."""
    late, real = scene.run("web"), scene.host.scheduling.set_policy

    def refuse(*refused: int) -> None:
        def set_policy(tid: int, policy: int, priority: int) -> None:
            if tid in refused:
                raise PermissionError(errno.EPERM, "sched_setscheduler")
            real(tid, policy, priority)

        monkeypatch.setattr(scene.host.scheduling, "set_policy", set_policy)

    refuse(late)
    scene.settle()
    web = scene.pids["web"]
    assert scene.classes(web, late) == [real_time.GIVEN, real_time.ORDINARY]
    refuse(web)
    assert scene.site.restore().failed
    assert scene.classes(web, late) == [real_time.GIVEN, real_time.ORDINARY]
    refuse()
    assert not scene.site.restore().failed
    assert scene.classes(web, late) == [real_time.ORDINARY] * 2


def test_another_group_of_the_same_name(scene: Scene) -> None:
    """A service that was started anew and chose the class itself keeps it when it asks no more."""
    scene.settle()
    group = f"/sys/fs/cgroup/{scene.group('web')}"
    scene.host.exit(scene.pids["web"])
    for path in (group, group.rpartition("/")[0]):
        scene.host.rmdir(scene.host.at(path))
    scene.pids["web"] = scene.run("web")
    scene.host.scheduling.classes[scene.pids["web"]] = real_time.GIVEN
    scene.wish("web", wishes.NONE)
    scene.settle()
    assert scene.classes(scene.pids["web"]) == [real_time.GIVEN]


def test_in_the_shadow_nothing_is_given(scene: Scene) -> None:
    """It is only shown."""
    scene.site.config = CONFIG.format("shadow")
    scene.settle()
    assert scene.host.scheduling.classes == {}


def test_a_kernel_that_refuses(scene: Scene) -> None:
    """Nobody is real-time, and nothing is left that could not be put back."""
    scene.host.scheduling.grouped = True
    scene.settle()
    assert scene.host.scheduling.classes == {}
    assert not scene.site.restore().failed
    scene.host.scheduling.grouped = False
    scene.settle()
    assert scene.classes(scene.pids["web"]) == [real_time.GIVEN]
