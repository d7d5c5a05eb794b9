"""Gangs: the scheduler and the oracle bind the same pods to the same nodes, life after life."""

from __future__ import annotations

import copy
import json
import random
from typing import ClassVar

import pytest

from tests.kit import clusters, gangs
from tests.kit.gang_scene import Scene
from tests.oracle.gangs import GangOracle, named
from tests.oracle.objects import Body

LIVES, SOAK, ROUNDS = 80, 2000, 6
#: Members that wait may hold the whole cluster.
ALL = {"nonStrictHoldShare": 1}
POLICIES = ("once-satisfied", "waiting-and-running", "only-waiting")
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": clusters.HOST, "labelSelector": {"matchLabels": {"apart": "yes"}}}
        ]
    }
}


class Life:
    """A cluster whose pods come, go and end, under a scheduler that dies now and then."""

    #: The layers of the network by their labels; ``None``: nobody describes it.
    layers: ClassVar[dict[str, str] | None] = None

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        number = self._chance.randint(2, 5)
        self._nodes = [self._node(f"n{place}") for place in range(number)]
        self._oracle = GangOracle(copy.deepcopy(self._nodes), self.layers)
        self._scene = self._new_scene()
        #: Whether a gang of this life waits with its room held: two could block each other.
        self._open = False
        self._serial = 0
        #: By gang: its priority, its notes, whether it has an object.
        self._gangs: dict[str, tuple[int, Body, bool]] = {}
        #: No two gangs are equally important: their order is no matter of time, also when the one
        #: that named the others has gone and its group is several units.
        self._priorities = list(range(1, 400))
        self._chance.shuffle(self._priorities)

    def _node(self, name: str) -> Body:
        return clusters.node(name, cpu=str(self._chance.randint(2, 8)), allocatable={"pods": "9"})

    def _new_scene(self, *bodies: Body) -> Scene:
        networks = [] if self.layers is None else [gangs.network(*self.layers)]
        return Scene(*self._nodes, *networks, *copy.deepcopy(bodies), arguments=ALL)

    def run(self) -> None:
        """A few rounds."""
        for _ in range(ROUNDS):
            for _ in range(self._chance.randint(1, 4)):
                self._change()
            self._decide()

    def _decide(self) -> None:
        expected = named(self._oracle.decide(self._scene.now + 400.0))
        places = {name: node for name, node in self._scene.decided().items() if node}
        assert places == expected
        assumed = self._scene.core.pod_cache.assumed
        held = {key: pod.node for key, pod in assumed.items() if key in self._scene.core.gangs.held}
        assert held == {key: node for key, (node, _) in self._oracle.held.items()}
        died = self._chance.random() < 0.3
        bound = [name for name in sorted(places) if not died or self._chance.random() < 0.5]
        for name in bound:
            body = copy.deepcopy(self._oracle.pods[f"d/{name}"])
            body["spec"]["nodeName"] = places[name]
            self._oracle.put(body)
            if not died:
                self._scene.put(copy.deepcopy(body))
        if died:
            objects = [*self._oracle.objects.values(), *self._oracle.pods.values()]
            self._scene = self._new_scene(*objects)
            self._oracle.restart()

    def _put(self, body: Body) -> None:
        self._oracle.put(copy.deepcopy(body))
        self._scene.put(copy.deepcopy(body))

    def _change(self) -> None:
        chance = self._chance.random()
        names = sorted(self._oracle.pods)
        if chance < 0.25 or not self._gangs:
            self._new_gangs()
        elif chance < 0.4:
            self._put(self._pod(self._chance.choice(sorted(self._gangs))))
        elif chance < 0.5:
            self._put(self._plain())
        elif chance < 0.8 and names:
            gone = self._chance.choice(names)
            self._oracle.drop(gone)
            self._scene.drop(gone.partition("/")[2])
        elif chance < 0.9 and names:
            ending = self._chance.choice(names)
            self._oracle.ends(ending)
            self._scene.put(copy.deepcopy(self._oracle.pods[ending]))
        else:
            self._resize()

    def _new_gangs(self) -> None:
        """One gang, or a group of a few; some name each other on one side only."""
        number = self._chance.choice((1, 1, 1, 2, 3))
        keys = [f"g{len(self._gangs) + place}" for place in range(number)]
        for place, key in enumerate(keys):
            mentions = number > 1 and (place == 0 or self._chance.random() < 0.5)
            notes: Body = {"policy": self._chance.choice(POLICIES), **self._gathering(key, keys)}
            if number == 1 and not self._open:
                notes["mode"], self._open = "NonStrict", True
            if mentions:
                notes["groups"] = [f"d/{each}" for each in keys]
            self._gangs[key] = (self._priorities.pop(), notes, self._chance.random() < 0.5)
            size = self._chance.randint(1, 5)
            if self._gangs[key][2]:
                self._put(gangs.pod_group(key, self._minimum(size), **notes))
            for _ in range(size):
                self._put(self._pod(key, self._minimum(size)))

    def _gathering(self, gang: str, together: list[str]) -> Body:
        """How a gang is gathered, as notes of its PodGroup."""
        del gang, together
        return {}

    def _minimum(self, size: int) -> int:
        return max(0, size + self._chance.choice((-2, -1, 0, 0, 0, 1)))

    def _pod(self, gang: str, minimum: int = 2) -> Body:
        shared, notes, has_object = self._gangs[gang]
        more = {**self._wishes_of(gang), "priority": shared}
        if has_object:
            return gangs.labelled(self._name(), gang, **more)
        texts = {
            f"gang.scheduling.koordinator.sh/{key}": value
            if isinstance(value, str)
            else json.dumps(value)
            for key, value in (
                ("match-policy", notes["policy"]),
                ("groups", notes.get("groups", [])),
                ("network-topology-spec", notes.get("gather", {})),
                ("mode", notes.get("mode", "Strict")),
            )
        }
        return gangs.member(self._name(), gang, minimum, notes=texts, **more)

    def _plain(self) -> Body:
        name = self._name()
        more = {**self._wishes(), "priority": self._priorities.pop()}
        return clusters.pod(name, meta={"uid": name}, **more)

    def _name(self) -> str:
        self._serial += 1
        return f"p{self._serial:03}"

    def _wishes_of(self, gang: str) -> Body:
        """What a member asks for."""
        del gang
        return self._wishes()

    def _wishes(self) -> Body:
        """Amounts, a port of the node, neighbours that it keeps away from, gates."""
        wishes: Body = {
            "cpu": str(self._chance.choice((1, 1, 2, 3))),
            "preemptionPolicy": "Never",
        }
        if self._chance.random() < 0.15:
            wishes["container"] = {"ports": [{"hostPort": 80, "containerPort": 80}]}
        if self._chance.random() < 0.15:
            wishes |= {"labels": {"apart": "yes"}, "affinity": APART}
        if self._chance.random() < 0.05:
            wishes["schedulingGates"] = [{"name": "later"}]
        return wishes

    def _resize(self) -> None:
        """A PodGroup has another minimum."""
        having = sorted(self._oracle.objects)
        if having:
            name = self._chance.choice(having).partition("/")[2]
            notes = self._gangs[name][1]
            self._put(gangs.pod_group(name, self._chance.randint(0, 5), **notes))


@pytest.mark.parametrize("block", range(4))
def test_the_scheduler_binds_the_gangs_that_the_oracle_binds(block: int) -> None:
    """Groups, policies, modes, late, dying and gated members, kills between two bindings."""
    for seed in range(block, LIVES, 4):
        Life(seed).run()


@pytest.mark.soak
def test_a_soak_of_gangs() -> None:
    """The same, many more times."""
    for seed in range(SOAK):
        Life(seed).run()


def test_a_gang_that_is_kept_before_the_queue_takes_no_part_in_the_turn_of_its_group() -> None:
    """A gang satisfied once has its turn, and its sibling, which still lacks others, stays out."""
    together = ["d/a", "d/b", "d/c"]
    bodies = [
        gangs.pod_group("a", 1, policy="once-satisfied", groups=together),
        gangs.pod_group("b", 1, policy="only-waiting", groups=together),
        gangs.pod_group("c", 2, policy="once-satisfied", groups=together),
        gangs.labelled("a-bound", "a", on="n1"),
        gangs.labelled("a-late", "a"),
        gangs.labelled("b-first", "b"),
        gangs.labelled("c-first", "c"),
    ]
    node = clusters.node("n1", cpu="8")
    scene, oracle = Scene(node), GangOracle([copy.deepcopy(node)])
    for body in bodies:
        oracle.put(copy.deepcopy(body))
        scene.put(body)
    assert [name for name, place in scene.decided().items() if place] == []
    assert "memberGangs [d/c] child pod not collect enough" in scene.messages["a-late"]
    assert "memberGangs [d/c] child pod not collect enough" in scene.messages["b-first"]
    assert oracle.decide() == {}
    completing = gangs.labelled("c-second", "c")
    oracle.put(copy.deepcopy(completing))
    scene.put(completing)
    places = {name: place for name, place in scene.decided().items() if place}
    assert places == named(oracle.decide())
    assert sorted(places) == ["a-late", "b-first", "c-first", "c-second"]


def test_victims_leave_where_the_whole_minimum_then_fits_and_nowhere_else() -> None:
    """With the victims gone the oracle binds the gang; without victims it fits in no way."""
    outcomes = set()
    for seed in range(150):
        chance = random.Random(seed)
        nodes = [clusters.node(f"n{place}", cpu=str(chance.randint(2, 6))) for place in range(3)]
        apart: Body = {"labels": {"apart": "yes"}, "affinity": APART}
        low = [
            clusters.pod(
                f"low{place}",
                on=f"n{chance.randrange(3)}",
                cpu=str(chance.randint(1, 2)),
                priority=chance.randint(1, 3),
                meta={"uid": f"low{place}"},
                **(apart if place < 2 else {}),
            )
            for place in range(chance.randint(1, 5))
        ]
        size = chance.randint(1, 4)
        more: Body = {"labels": {"apart": "yes"}} if chance.random() < 0.3 else {}
        cpu = str(chance.randint(1, 4))
        members = [
            gangs.member(f"g{place}", "g", size, cpu=cpu, priority=9, **more)
            for place in range(size)
        ]
        scene = Scene(*copy.deepcopy([*nodes, *low, *members]))
        scene.now = 400.0
        first = scene.core.step(scene.now)
        assert first is not None
        victims = {victim.name for victim in getattr(first, "victims", ())}
        oracle = GangOracle(nodes)
        leaving = victims or {pod["metadata"]["name"] for pod in low}
        bound = getattr(first, "message", "") == ""
        for pod in low:
            if bound or pod["metadata"]["name"] not in leaving:
                oracle.put(pod)
        for pod in members:
            oracle.put(pod)
        expected = size if bound or victims else 0
        assert len(oracle.decide()) == expected, seed
        outcomes.add((bound, bool(victims)))
    assert outcomes == {(True, False), (False, True), (False, False)}
