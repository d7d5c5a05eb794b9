"""The core alone: who waits for whom after a preemption."""

from __future__ import annotations

from typing import Any

from koordlet.scheduler import nodes, profile
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Refusal
from koordlet.scheduler.pods import Pod
from tests.kit import clusters

Body = dict[str, Any]
WAITS = "not eligible due to a terminating pod on the nominated node."


class Scene:
    """A node of four CPUs; each attempt comes after everybody is tried again."""

    def __init__(self) -> None:
        self.core = Core({"default-scheduler": profile.default("default-scheduler")})
        self.now = 0.0
        self._node = nodes.decode(clusters.node("n"))
        self.core.node(None, self._node, self.now)

    def pod(self, old: Pod | None = None, **more: Any) -> Pod:
        """A pod as the store shows it."""
        body = clusters.pod(**more)
        body["metadata"]["uid"] = body["metadata"]["name"]
        found = self.core.decoder.decode(body, 0)
        self.core.pod(old, found, self.now)
        return found

    def changed(self, **spec: Any) -> None:
        """The node is another than before."""
        new = nodes.decode(clusters.node("n", labels={"turn": str(self.now)}, spec=spec))
        self.core.node(self._node, new, self.now)
        self._node = new

    def refused(self) -> Refusal:
        """The next attempt is one."""
        self.now += 400.0
        found = self.core.step(self.now)
        assert isinstance(found, Refusal)
        return found


def test_who_preempted_waits_for_his_victims() -> None:
    """Until they are gone, unless his node would not take him then either."""
    scene = Scene()
    scene.pod(name="low", on="n", cpu="4")
    scene.pod(name="high", cpu="4", priority=9)

    assert ["low"] == [one.name for one in scene.refused().victims]
    scene.changed()
    again = scene.refused()
    assert again.message.endswith(WAITS)
    assert again.node == "n"
    scene.changed(unschedulable=True)
    assert "1 Preemption is not helpful for scheduling" in scene.refused().message


def test_who_ends_by_himself_is_no_victim() -> None:
    """A nominated pod does not wait for him: others have to go."""
    scene = Scene()
    low = scene.pod(name="low", on="n", cpu="2")
    scene.pod(name="other", on="n", cpu="2")
    scene.pod(name="high", cpu="4", priority=9, status={"nominatedNodeName": "n"})
    ending = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    scene.pod(low, name="low", on="n", cpu="2", meta=ending)

    assert ["other"] == [one.name for one in scene.refused().victims]


def test_a_victim_of_a_scheduler_before_is_waited_for() -> None:
    """Its condition says why it ends."""
    scene = Scene()
    why = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    ending = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    scene.pod(name="low", on="n", cpu="4", meta=ending, status={"conditions": [why]})
    scene.pod(name="high", cpu="4", priority=9, status={"nominatedNodeName": "n"})

    assert scene.refused().message.endswith(WAITS)
