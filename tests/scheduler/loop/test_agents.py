"""What agents report: pressure, use and CPUs count while the agent is heard, and no longer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from koordlet.model import cpuset, decision, ledger, nodereport
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop import agents, core
from koordlet.scheduler.loop.outcomes import Bind, Outcome, Refusal
from koordlet.scheduler.objects import nodes, usage
from tests.kit import clusters, views

NAME = "s"


@dataclass
class Scene:
    """A core, what it hears of agents, and clocks that go as told."""

    now: float = 1000.0
    count: int = 0
    core: core.Core = field(init=False)
    agents: agents.Agents = field(init=False)

    def __post_init__(self) -> None:
        profiles = {NAME: profile.default(NAME)}
        self.core = core.Core(profiles)
        self.agents = agents.Agents(self.core, profiles, lambda: self.now, lambda: self.now)
        for plugin in profiles[NAME].plugins:
            if hasattr(plugin, "wall"):
                plugin.wall = lambda: self.now

    def node(self, name: str, **more: Any) -> None:
        """A node comes."""
        self.core.node(None, nodes.decode(clusters.node(name, **more)), self.now)

    def tried(self, **more: Any) -> Outcome:
        """What becomes of a new pod."""
        self.count += 1
        body = clusters.pod(f"p{self.count}", **{"schedulerName": NAME, **more})
        self.core.pod(None, self.core.decoder.decode(body, self.count), self.now)
        outcome = self.core.step(self.now)
        assert outcome is not None
        return outcome

    def placed(self, **more: Any) -> str:
        """The node of a new pod."""
        outcome = self.tried(**more)
        assert isinstance(outcome, Bind), outcome
        return outcome.node

    def message(self, **more: Any) -> str:
        """Why a new pod has none."""
        outcome = self.tried(**more)
        assert isinstance(outcome, Refusal), outcome
        return outcome.message


def pressed(node: str, *, met: bool = True) -> nodereport.NodeReport:
    """A node that is short of memory, or not any more."""
    signal = decision.Signal(name="memory.available", observed="1", threshold="2", met=met)
    return nodereport.NodeReport(node=node, signals=(signal,))


def test_pressure_keeps_pods_away_at_once_and_as_long_as_it_lasts() -> None:
    """The next decision knows; who tolerates the taint that will come is let in."""
    scene = Scene()
    scene.node("n")
    assert scene.placed() == "n"
    scene.agents.report(pressed("n"))
    why = scene.message()
    assert why.startswith("0/1 nodes are available: 1 node(s) reported memory pressure.")
    bears = [{"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}]
    assert scene.placed(tolerations=bears) == "n"
    scene.agents.report(pressed("n", met=False))
    assert scene.placed() == "n"


def test_who_was_refused_for_pressure_is_tried_when_it_ends() -> None:
    """A report is an event that wakes."""
    scene = Scene()
    scene.node("n")
    scene.agents.report(pressed("n"))
    assert scene.message()
    scene.agents.report(pressed("n", met=False))
    outcome = scene.core.step(scene.now + 2)
    assert isinstance(outcome, Bind)


def test_a_silent_agent_is_not_believed() -> None:
    """After the limit the node is what the API says; a heartbeat is enough to be believed."""
    scene = Scene()
    scene.node("n")
    scene.agents.report(pressed("n"))
    scene.now += agents.SILENCE - 1
    scene.agents.heard("n")
    scene.now += agents.SILENCE - 1
    scene.agents.look()
    assert scene.message()
    scene.now += 2
    scene.agents.look()
    assert scene.placed() == "n"


def test_a_wall_clock_that_jumps_changes_nothing() -> None:
    """Silence is counted by the clock that only goes forward."""
    scene = Scene()
    wall = [5e9]
    profiles = {NAME: profile.default(NAME)}
    scene.agents = agents.Agents(scene.core, profiles, lambda: scene.now, lambda: wall[0])
    scene.agents.report(pressed("n"))
    wall[0] = 0.0
    scene.agents.look()
    assert set(scene.agents.reporting()) == {"n"}


def test_the_newer_word_on_use_counts() -> None:
    """A report makes a node busy or idle before its NodeMetric does; silence gives that back."""
    scene = Scene()
    scene.node("busy")
    scene.node("idle")
    for name in ("busy", "idle"):
        metric = usage.NodeUsage(updated=scene.now - 60, reported=True, node={"cpu": 100})
        scene.agents.measured(name, metric)
    full = nodereport.NodeReport(node="busy", used={"cpu": 3900, "memory": 1})
    scene.agents.report(full)
    assert scene.placed() == "idle"
    assert "cpu usage exceed threshold" in scene.message(nodeSelector={}, affinity=_only("busy"))
    scene.now += agents.SILENCE + 1
    scene.agents.look()
    assert scene.placed(affinity=_only("busy")) == "busy"


def test_a_node_whose_clock_is_ahead_is_believed_no_longer_than_others() -> None:
    """Its NodeMetric is as old as it is here, and what its agent says later counts."""
    scene = Scene()
    scene.node("n")
    metric = usage.NodeUsage(updated=scene.now + 3600, reported=True, node={"cpu": 3900})
    scene.agents.measured("n", metric)
    assert "cpu usage exceed threshold" in scene.message()
    scene.now += 1
    scene.agents.report(nodereport.NodeReport(node="n", used={"cpu": 100, "memory": 1}))
    assert scene.placed() == "n"
    assert scene.agents.usages["n"].updated == scene.now


def _only(name: str) -> dict[str, Any]:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    required = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def test_pods_of_before_the_report_are_not_counted_twice() -> None:
    """What they use is in the use of the node."""
    scene = Scene()
    scene.node("n", cpu="8")
    body = clusters.pod("old", on="n", cpu="4")
    since = {"status": "True", "lastTransitionTime": "1970-01-01T00:00:10Z"}
    body["status"] = {"conditions": [{"type": "PodScheduled", **since}]}
    scene.core.pod(None, scene.core.decoder.decode(body, 0), scene.now)
    scene.agents.report(nodereport.NodeReport(node="n", used={"cpu": 4000, "memory": 1}))
    assert scene.placed(cpu="1") == "n"


def test_cpus_of_a_machine_without_an_object_come_from_its_agent() -> None:
    """They are chosen among those that nobody holds whom the scheduler does not see."""
    scene = Scene()
    scene.node("n", cpu="8")
    bound = {
        "labels": {"koordinator.sh/qosClass": "LSR"},
        "priority": 9500,
        "cpu": "2",
    }
    assert "cpu topology" in scene.message(**bound).lower()
    owner, cpus = ledger.Owner.LSE, cpuset.CPUSet.parse("0-3")
    held = ledger.Claim(owner=owner, cpus=cpus, holder="declared/db", policy="p", reason="r")
    scene.agents.report(nodereport.NodeReport(node="n", topology=views.machine(), claims=(held,)))
    outcome = scene.tried(**bound)
    assert isinstance(outcome, Bind)
    assert outcome.pod.cpus is not None
    assert len(outcome.pod.cpus) == 2
    assert outcome.pod.cpus.isdisjoint(cpuset.CPUSet.parse("0-3"))


def test_a_condition_that_is_no_pressure_keeps_nobody_away() -> None:
    """An agent says much of its node; only three things keep pods away."""
    scene = Scene()
    scene.node("n")
    condition = decision.Condition(type="RuntimeObserved", status=True, reason="r")
    scene.agents.report(nodereport.NodeReport(node="n", conditions=(condition,)))
    assert scene.placed() == "n"


def test_a_report_of_an_unknown_node_harms_nobody() -> None:
    """It counts as soon as the node is there."""
    scene = Scene()
    scene.agents.report(pressed("n"))
    scene.node("n")
    assert "memory pressure" in scene.message()
