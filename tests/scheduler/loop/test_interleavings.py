"""No over-allocation, no leak, nobody who waits for room that is there, whatever the order.

A store of pods and nodes, two streams of news from it that lag as they like, bindings that arrive
late, fail, or succeed without anybody hearing of it, restarts: the core in the middle must never
bind more to a node than it has, and must know everything in the end.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from koordlet.scheduler.framework import profile
from koordlet.scheduler.framework.queue import QueuePlace
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Bind, Refusal
from koordlet.scheduler.objects import nodes
from koordlet.scheduler.objects.pods import Pod
from tests.kit import clusters

Body = dict[str, Any]
NAME = "koordlet-scheduler"
NODES = ("n0", "n1", "n2")
CPUS = 4
PODS = tuple(f"p{number}" for number in range(10))


class Cluster(RuleBasedStateMachine):
    """The store, the world around it, and the core."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.serial = 0
        #: What is true: pods by name, nodes by name.
        self.pods: dict[str, Body] = {}
        self.nodes: dict[str, Body] = {}
        self.doomed: set[str] = set()
        self._start()

    def _start(self) -> None:
        """A scheduler begins with a list of everything."""
        self.core = Core({NAME: profile.default(NAME)}, spent=lambda: 0.0)
        self.news: dict[str, list[tuple[str, Body | None]]] = {"pods": [], "nodes": []}
        self.seen: dict[str, Any] = {}
        self.flying: list[Bind] = []
        for name, body in self.nodes.items():
            self._tell("nodes", name, body)
        for name, body in self.pods.items():
            self._tell("pods", name, body)

    @initialize()
    def begin(self) -> None:
        """Two nodes are there and known."""
        for name in NODES[:2]:
            self.node_comes_or_goes(name)
        self.hear("nodes", 2)

    # The store and its news.

    def _tell(self, kind: str, name: str, body: Body | None) -> None:
        old = self.seen.get(name)
        if kind == "nodes":
            made: Any = None if body is None else nodes.decode(body)
            self.core.node(old, made, self.now)
        else:
            made = None if body is None else self.core.decoder.decode(body, 0)
            if old is not None and made is not None and old.uid != made.uid:
                self.core.pod(old, None, self.now)
                old = None
            self.core.pod(old, made, self.now)
        self.seen[name] = made

    def _write(self, kind: str, name: str, body: Body | None) -> None:
        known = self.pods if kind == "pods" else self.nodes
        if body is None:
            del known[name]
        else:
            known[name] = body
        self.news[kind].append((name, body))

    @rule(kind=st.sampled_from(["pods", "nodes"]), many=st.integers(1, 3))
    def hear(self, kind: str, many: int) -> None:
        """The scheduler hears of what happened a while ago."""
        for name, body in self.news[kind][:many]:
            self._tell(kind, name, body)
        del self.news[kind][:many]

    @rule(name=st.sampled_from(NODES))
    def node_comes_or_goes(self, name: str) -> None:
        """Always the same machine."""
        gone = name in self.nodes
        self._write("nodes", name, None if gone else clusters.node(name, cpu=str(CPUS)))

    @rule(
        names=st.lists(st.sampled_from(PODS), min_size=1, max_size=6, unique=True),
        cpu=st.integers(1, 3),
        priority=st.sampled_from([0, 0, 5]),
    )
    def pods_come(self, names: list[str], cpu: int, priority: int) -> None:
        """Under names that may have been used before."""
        for name in names:
            if name in self.pods:
                continue
            self.serial += 1
            spec: Body = {"cpu": str(cpu), "schedulerName": NAME, "priority": priority}
            self._write("pods", name, clusters.pod(name, meta={"uid": f"u{self.serial}"}, **spec))

    @rule(name=st.sampled_from(PODS))
    def pod_goes(self, name: str) -> None:
        """Whether or not it is being bound."""
        if name in self.pods:
            self._write("pods", name, None)

    # The scheduler and its requests.

    @rule(name=st.sampled_from(PODS), key=st.sampled_from("ab"))
    def pod_is_edited(self, name: str, key: str) -> None:
        """By somebody who knows nothing of scheduling."""
        body = self.pods.get(name)
        if body is not None:
            meta = {**body["metadata"], "labels": {key: str(self.serial)}}
            self._write("pods", name, {**body, "metadata": meta})

    @rule(seconds=st.sampled_from([0.0, 0.5, 3.0, 400.0]), deletes=st.booleans())
    def try_pods(self, seconds: float, *, deletes: bool = True) -> None:
        """Time passes, and whoever is due is tried; victims are deleted, or cannot be."""
        self.now += seconds
        for _ in range(4):
            decision = self.core.step(self.now)
            if isinstance(decision, Bind):
                self.flying.append(decision)
            elif isinstance(decision, Refusal):
                self._evict(decision, deletes=deletes)

    def _evict(self, refusal: Refusal, *, deletes: bool) -> None:
        for victim in refusal.victims:
            if not deletes:
                self.core.spared(victim, self.now)
            elif self.pods.get(victim.name, {}).get("metadata", {}).get("uid") == victim.uid:
                self._write("pods", victim.name, None)

    @precondition(lambda self: self.flying)
    @rule(which=st.integers(0, 7), answer=st.sampled_from(["yes", "lost", "no", "no, again"]))
    def binding_arrives(self, which: int, answer: str) -> None:
        """The store does it or not, and the answer comes or is found out later."""
        bind = self.flying.pop(which % len(self.flying))
        body = self.pods.get(bind.pod.name)
        mine = body is not None and body["metadata"]["uid"] == bind.pod.uid
        if not self.core.awaits(bind.pod) or bind.node not in self.core.pod_cache.columns.rows:
            # The binder does not even ask.
            self.core.unbound(bind.pod, self.now)
            return
        if answer in {"yes", "lost"} and body is not None and mine:
            where = body["spec"].get("nodeName")
            if not where:
                spec = {**body["spec"], "nodeName": bind.node}
                self._write("pods", bind.pod.name, {**body, "spec": spec})
                where = bind.node
            if answer == "yes" and where == bind.node:
                self.core.bound(bind.pod, self.now)
            elif where == bind.node:
                self.flying.append(bind)
            return
        if mine and body is not None and body["spec"].get("nodeName") == bind.node:
            # The first answer was lost: a store that says no now says so because it has it already.
            self.core.bound(bind.pod, self.now)
            return
        self.core.unbound(bind.pod, self.now, again=mine)

    @rule()
    def calm(self) -> None:
        """For a while everything works as it should."""
        for kind in ("nodes", "pods"):
            self.hear(kind, len(self.news[kind]))
        self.try_pods(3.0)
        while self.flying:
            self.binding_arrives(0, "yes")

    @rule()
    def restart(self) -> None:
        """Requests that were under way are lost; the news begin with a list."""
        self._start()

    @rule()
    def tidy(self) -> None:
        """At any moment."""
        self.core.tidy()

    @rule()
    def rebuild(self) -> None:
        """At any moment."""
        self.core.rebuild()

    # What must hold.

    @invariant()
    def nothing_is_over_allocated(self) -> None:
        """In the store, which is what counts."""
        for name in NODES:
            on = [body for body in self.pods.values() if body["spec"].get("nodeName") == name]
            asked = [
                int(body["spec"]["containers"][0]["resources"]["requests"]["cpu"]) for body in on
            ]
            assert sum(asked) <= CPUS, (name, on)

    def _answered(self) -> None:
        while self.flying or any(self.news.values()):
            for kind in ("nodes", "pods"):
                self.hear(kind, len(self.news[kind]))
            if self.flying:
                self.binding_arrives(0, "yes")

    def _nobody_waits_for_room_that_is_there(self) -> None:
        """When a pod leaves, long before everybody is tried again by himself."""
        for _ in range(4):
            self.try_pods(12.0)
            self._answered()
        leaving = next((pod.name for pod in self.core.pod_cache), "")
        self.pod_goes(leaving)
        for _ in range(4):
            self._answered()
            self.try_pods(12.0)
        self._answered()
        cycle = self.core.cycles[NAME]
        for entry in self.core.queue:
            if entry.place is QueuePlace.UNSCHEDULABLE:
                assert self.core.choose(cycle, entry.pod)[0] < 0, entry

    def teardown(self) -> None:
        """When everything has been heard and answered, the core knows what is true, and no more."""
        self._answered()
        self._nobody_waits_for_room_that_is_there()
        placed = {
            name: body["spec"]["nodeName"]
            for name, body in self.pods.items()
            if body["spec"].get("nodeName")
        }
        assert placed == {pod.name: pod.node for pod in self.core.pod_cache}
        assert not self.core.pod_cache.assumed
        waiting: dict[str, Pod] = {entry.pod.name: entry.pod for entry in self.core.queue}
        assert self.pods.keys() - placed.keys() == waiting.keys()
        columns = self.core.pod_cache.columns
        for name, row in columns.rows.items():
            on = [pod for pod in self.core.pod_cache if pod.node == name]
            asked = sum(pod.pod_class.requests.real["cpu"] for pod in on)
            assert columns.requested[0, row] == asked
            assert columns.requested[3, row] == len(on)


Interleavings = Cluster.TestCase
Interleavings.settings = settings(
    max_examples=max(200, settings().max_examples), stateful_step_count=40
)
