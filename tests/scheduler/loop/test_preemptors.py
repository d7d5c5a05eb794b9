"""Preemptors whose victims are leaving: how often they are tried, and that they miss no room."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from koordlet.scheduler import framework
from koordlet.scheduler.cluster.events import ClusterEvent
from koordlet.scheduler.framework import cycle, profile, queue
from koordlet.scheduler.loop import preemptors
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Bind, Refusal
from koordlet.scheduler.objects import nodes
from koordlet.scheduler.objects.pods import Pod
from tests.kit import clusters


class Cluster:
    """A core, and a store that shows at once what the core has decided."""

    def __init__(self) -> None:
        profiles = {"default-scheduler": profile.default("default-scheduler")}
        self.core = Core(profiles, backoff=queue.Backoff(1.0, 1.0))
        self.now = 0.0
        self.attempts: Counter[str] = Counter()
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, nodes.Node] = {}
        #: Victims that have yet to leave, in the order of the decisions.
        self.leaving: list[str] = []

    def node(self, name: str, **more: Any) -> None:
        """A node of four CPUs comes or changes."""
        new = nodes.decode(clusters.node(name, **more))
        self.core.node(self.nodes.get(name), new, self.now)
        self.nodes[name] = new

    def drop_node(self, name: str) -> None:
        """A node is deleted."""
        self.core.node(self.nodes.pop(name), None, self.now)

    def pod(self, name: str, **more: Any) -> None:
        """A pod comes or changes."""
        body = clusters.pod(name, **more)
        body["metadata"]["uid"] = name
        new = self.core.decoder.decode(body, len(self.pods))
        self.core.pod(self.pods.get(name), new, self.now)
        self.pods[name] = new

    def gone(self, name: str) -> None:
        """A pod is deleted."""
        self.core.pod(self.pods.pop(name), None, self.now)

    def settle(self) -> None:
        """Try everybody who is awake."""
        while (outcome := self.core.step(self.now)) is not None:
            pod = outcome.pod
            self.attempts[pod.name] += 1
            if isinstance(outcome, Bind):
                self.core.bound(pod, self.now)
            elif isinstance(outcome, Refusal):
                self.leaving += [victim.name for victim in outcome.victims]

    def place(self, name: str) -> str:
        """The node of a pod; empty: none."""
        pod = self.core.pod_cache.get(f"d/{name}")
        return "" if pod is None else pod.node


def full(count: int, priority: int = 0) -> Cluster:
    """So many nodes, each with two pods of two CPUs."""
    cluster = Cluster()
    for number in range(count):
        cluster.node(f"n{number}")
        for half in "ab":
            cluster.pod(f"low{number}{half}", on=f"n{number}", cpu="2", priority=priority)
    return cluster


def test_a_preemptor_is_tried_twice_however_many_others_wait_for_their_victims() -> None:
    """Of twenty preemptors each is tried when it comes and when its own victims have left."""
    cluster = full(20)
    for number in range(20):
        cluster.pod(f"high{number}", cpu="4", priority=9)
    cluster.settle()
    leaving = list(cluster.leaving)
    assert len(leaving) == 40
    for name in leaving:
        cluster.gone(name)
        cluster.settle()

    assert cluster.attempts == Counter({f"high{number}": 2 for number in range(20)})
    assert len({cluster.place(f"high{number}") for number in range(20)}) == 20
    assert cluster.core.measures.preemptions == 20


def test_room_on_another_node_is_taken_while_the_victims_are_leaving() -> None:
    """Pods that no preemption sent away leave a node: the preemptor does not wait any longer."""
    cluster = full(2, priority=9)
    cluster.node("n2")
    cluster.pod("victim", on="n2", cpu="4")
    cluster.pod("high", cpu="4", priority=9)
    cluster.settle()
    assert cluster.leaving == ["victim"]
    cluster.gone("low0a")
    cluster.gone("low0b")
    cluster.settle()

    assert cluster.place("high") == "n0"


def test_a_preemptor_that_lost_its_node_goes_where_it_is_best_like_anybody() -> None:
    """The node shrank, and no victims help; what was promised there is no reason any more."""
    cluster = full(1)
    cluster.pod("high", cpu="4", priority=9)
    cluster.settle()
    cluster.node("n0", allocatable={"cpu": "3", "memory": "8Gi"})
    cluster.settle()
    assert cluster.core.nominated.node(cluster.pods["high"]) == ""
    for name in cluster.leaving:
        cluster.gone(name)
    cluster.node("n0", allocatable={"cpu": "4", "memory": "8Gi"})
    cluster.node("n1", allocatable={"cpu": "40", "memory": "80Gi"})
    cluster.now += 30.0
    cluster.settle()

    assert cluster.place("high") == "n1"


class CountingCycle(cycle.Cycle):
    """Counts how often a node is judged with those who are nominated for it."""

    judged = 0

    def beside(self, pod: Pod, row: int, guests: Sequence[Pod]) -> framework.Verdict | None:
        """As it is."""
        self.judged += 1
        return super().beside(pod, row, guests)


def test_nodes_that_are_promised_are_judged_once_and_not_for_each_pod() -> None:
    """Ten wait to be bound where their victims have left; the first that comes looks at all."""
    cluster = full(10)
    for number in range(10):
        cluster.pod(f"high{number}", cpu="4", priority=9)
    cluster.settle()
    for name in cluster.leaving:
        cluster.gone(name)
    columns, name = cluster.core.pod_cache.columns, "default-scheduler"
    counting = cluster.core.cycles[name] = CountingCycle(columns, profile.default(name))
    judged = []
    for number in range(3):
        cluster.pod(f"late{number}", cpu="4")
        late = cluster.core.queue.take(f"d/late{number}")
        assert late is not None
        assert isinstance(cluster.core.attempt(late, cluster.now), Refusal)
        judged.append(counting.judged)

    assert judged == [10, 11, 12]


def test_a_node_outside_stays_so_whatever_is_remembered_of_it_as_a_promised_one() -> None:
    """A gang whose domain it is not in would preempt there: a lack of amounts can be resolved."""
    cluster = full(2)
    for number in range(2):
        cluster.pod(f"high{number}", cpu="4", priority=9)
    cluster.settle()
    for name in cluster.leaving:
        cluster.gone(name)
    cluster.pod("late", cpu="4", priority=1)
    core, late = cluster.core, cluster.pods["late"]
    scheduling = core.cycles["default-scheduler"]
    _, alone = core.choose(scheduling, late)
    assert [verdict.resolvable for verdict in alone.values()] == [True, True]
    elsewhere = framework.Verdict(("node(s) are outside",), resolvable=False)
    row, promised = core.choose(scheduling, late, {0: elsewhere})

    assert row == -1
    assert (promised[0], promised[1]) == (elsewhere, alone[1])


def _deleted(cluster: Cluster) -> None:
    cluster.gone("high0")


def _elsewhere(cluster: Cluster) -> None:
    cluster.node("new")
    cluster.pod("high0", on="new", cpu="4", priority=9)


@pytest.mark.parametrize("withdraw", [_deleted, _elsewhere])
def test_room_that_a_nominated_pod_gives_up_is_taken(withdraw: Callable[[Cluster], None]) -> None:
    """The room of a pod that was deleted or bound elsewhere goes to one whose victims linger."""
    cluster = full(3)
    for name in ("low2a", "low2b"):
        cluster.pod(name, on="n2", cpu="2", priority=9)
    cluster.pod("high0", cpu="4", priority=9)
    cluster.pod("high1", cpu="4", priority=9)
    cluster.settle()
    freed = cluster.core.pod_cache.columns
    promised = cluster.core.nominated.node(cluster.pods["high0"])
    for name in [name for name in cluster.leaving if cluster.place(name) == promised]:
        cluster.gone(name)
    assert not freed.pods[freed.rows[promised]]
    withdraw(cluster)
    cluster.gone("low2a")
    cluster.settle()

    assert cluster.place("high1") == promised


def test_a_preemptor_whose_node_is_cordoned_or_deleted_is_tried_again_at_once() -> None:
    """It does not wait until victims have left a node that it cannot have."""
    cluster = full(3)
    cluster.pod("high", cpu="4", priority=9)
    cluster.settle()
    first = cluster.core.nominated.node(cluster.pods["high"])
    cluster.node(first, spec={"unschedulable": True})
    cluster.settle()
    second = cluster.core.nominated.node(cluster.pods["high"])
    assert second not in {"", first}
    cluster.drop_node(second)
    cluster.settle()

    assert cluster.core.nominated.node(cluster.pods["high"]) not in {"", first, second}


def test_a_preemptor_whose_victim_was_spared_is_tried_when_anybody_leaves() -> None:
    """It waits for nobody: another preemption is its way to a node."""
    cluster = full(2)
    cluster.pod("high", cpu="4", priority=9)
    cluster.settle()
    for name in cluster.leaving:
        cluster.core.spared(cluster.pods[name], cluster.now)
    place = cluster.core.nominated.node(cluster.pods["high"])
    cluster.gone(next(name for name in cluster.pods if cluster.place(name) not in {"", place}))
    cluster.settle()

    assert cluster.attempts["high"] == 2


def _life(seed: int) -> dict[str, str]:
    """Where the pods of a random life are in its end, and who was sent away."""
    chance = random.Random(seed)
    cluster = full(6)
    for step in range(60):
        cluster.now += 3.0  # the backoff of all has ended: priorities alone order them
        match chance.choice(["come", "come", "leave", "leave", "leave", "end"]):
            case "come":
                cpu, priority = chance.choice("1234"), chance.randrange(10**6)
                cluster.pod(f"p{step}", cpu=cpu, priority=priority)
            case "leave" if cluster.leaving:
                name = cluster.leaving.pop(chance.randrange(len(cluster.leaving)))
                if name in cluster.pods:
                    cluster.gone(name)
            case "end":
                cluster.gone(chance.choice(sorted(cluster.pods)))
        cluster.settle()
    return {name: cluster.place(name) for name in cluster.pods}


def test_nobody_else_is_chosen_than_if_everybody_were_tried_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Random lives end with the same pods on the same nodes as if each departure woke all."""
    lives = [_life(seed) for seed in range(40)]
    monkeypatch.setattr(preemptors, "waits", lambda _core, _event: None)

    assert [_life(seed) for seed in range(40)] == lives


def test_a_nomination_that_is_withdrawn_wakes_whom_its_port_kept_away() -> None:
    """Not only those who lacked an amount."""
    cluster = Cluster()
    cluster.node("n")
    port = {"ports": [{"hostPort": 80, "containerPort": 80}]}
    cluster.pod("low", on="n", container=port)
    cluster.pod("high", container=port, priority=9)
    cluster.settle()
    cluster.gone("low")
    cluster.pod("equal", container=port, priority=9)
    equal = cluster.core.queue.take("d/equal")
    assert equal is not None
    refused = cluster.core.attempt(equal, cluster.now)
    assert isinstance(refused, Refusal)
    assert "free ports" in refused.message
    cluster.gone("high")
    cluster.now += 20.0

    outcome = cluster.core.step(cluster.now)
    assert isinstance(outcome, Bind)
    assert outcome.pod.name == "equal"


def test_room_that_a_smaller_pod_was_promised_in_place_of_a_larger_is_tried_for() -> None:
    """The one is deleted, and before anybody is tried the store shows the other again."""
    cluster = Cluster()
    cluster.node("n")
    nominated: dict[str, Any] = {
        "status": {"nominatedNodeName": "n"},
        "schedulingGates": [{"name": "g"}],
        "priority": 9,
    }
    cluster.pod("large", cpu="3", **nominated)
    cluster.pod("small", cpu="1", **nominated)
    cluster.pod("waits", cpu="2")
    cluster.now += 20.0
    assert isinstance(cluster.core.step(cluster.now), Refusal)
    cluster.gone("large")
    cluster.pod("small", cpu="1", **nominated)
    cluster.now += 20.0

    outcome = cluster.core.step(cluster.now)
    assert isinstance(outcome, Bind)
    assert outcome.pod.name == "waits"


def test_nominations_of_like_pods_that_are_withdrawn_together_wake_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each look asks about everybody who waits, and one answer is that of all."""
    cluster = Cluster()
    cluster.node("n")
    gated: dict[str, Any] = {
        "status": {"nominatedNodeName": "n"},
        "schedulingGates": [{"name": "g"}],
        "priority": 9,
    }
    for number in range(3):
        cluster.pod(f"like-{number}", cpu="1", **gated)
    cluster.pod("larger", cpu="2", **gated)
    woken: list[str] = []

    def wake(event: ClusterEvent, _now: float, _waits: object) -> None:
        assert event.pod is not None
        woken.append(event.pod.name)

    monkeypatch.setattr(cluster.core, "wake", wake)
    for pod in list(cluster.pods.values()):
        cluster.core.nominated.drop(pod.key)
    preemptors.wake_by_withdrawn(cluster.core, cluster.now)
    assert woken == ["like-2", "larger"]


def test_a_pod_that_preempts_nobody_keeps_the_place_that_it_was_nominated_for() -> None:
    """Somebody else has nominated it; of one that may preempt the place is withdrawn."""
    cluster = Cluster()
    cluster.node("n", cpu="2")
    nominated: dict[str, Any] = {"status": {"nominatedNodeName": "n"}, "cpu": "3"}
    cluster.pod("patient", preemptionPolicy="Never", **nominated)
    cluster.pod("usual", **nominated)

    for name, place in (("patient", "n"), ("usual", "")):
        refusal = cluster.core.step(cluster.now)
        assert isinstance(refusal, Refusal)
        assert (refusal.pod.name, refusal.node) == (name, place)
        assert cluster.core.nominated.node(cluster.pods[name]) == place


def test_reasons_of_a_node_that_refuses_a_pod_anyway_include_its_nominated_pods() -> None:
    """kube-scheduler looks at such a node with them on it first, unless they are less important."""
    cluster = Cluster()
    cluster.node("n")
    cluster.pod("full", on="n", cpu="4", priority=9)
    gated: dict[str, Any] = {
        "status": {"nominatedNodeName": "n"},
        "schedulingGates": [{"name": "g"}],
    }
    cluster.pod("guest", memory="7Gi", priority=5, **gated)
    for priority, reasons in (
        (5, "1 Insufficient cpu, 1 Insufficient memory"),
        (6, "1 Insufficient cpu"),
    ):
        cluster.pod(f"late-{priority}", cpu="1", memory="2Gi", priority=priority)
        refusal = cluster.core.step(cluster.now)
        assert isinstance(refusal, Refusal)
        assert refusal.message.startswith(f"0/1 nodes are available: {reasons}. ")


def test_a_node_that_is_promised_to_others_counts_in_no_score() -> None:
    """Taints are compared with the worst of the nodes that are feasible: four here, or one."""
    cluster = Cluster()

    def taints(count: int) -> list[Any]:
        return [{"key": f"k{at}", "effect": "PreferNoSchedule"} for at in range(count)]

    for name, count in (("loaded", 0), ("tainted", 1), ("promised", 4)):
        cluster.node(name, spec={"taints": taints(count)})
    cluster.pod("runs", on="loaded", cpu="3600m", memory="7Gi")
    nominated: dict[str, Any] = {"status": {"nominatedNodeName": "promised"}}
    cluster.pod("guest", cpu="4", priority=9, schedulingGates=[{"name": "g"}], **nominated)
    cluster.pod("late", cpu="100m", memory="100Mi")
    cluster.settle()

    assert cluster.place("late") == "loaded"
