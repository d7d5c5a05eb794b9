"""Gangs by the rules alone: all or nothing over groups, one node and one pod at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.oracle import gathering
from tests.oracle.filters import check
from tests.oracle.objects import Body, key, name, priority, requests, room
from tests.oracle.scores import totals
from tests.oracle.world import World

_NAME = "gang.scheduling.koordinator.sh/name"
_MINIMUM = "gang.scheduling.koordinator.sh/min-available"
_GROUPS = "gang.scheduling.koordinator.sh/groups"
_POLICY = "gang.scheduling.koordinator.sh/match-policy"
_GATHER = "gang.scheduling.koordinator.sh/network-topology-spec"
_SELECTOR = "scheduling.koordinator.sh/network-topology-selector"
_MODE = "gang.scheduling.koordinator.sh/mode"
#: Seconds that members of a gang that is not strict wait with their room held.
_WAIT = 600.0
_OBJECT = "pod-group.scheduling.sigs.k8s.io"


class GangOracle:
    """A cluster, its PodGroups and pods; what is satisfied is remembered until all children go."""

    def __init__(self, nodes: list[Body], layers: Mapping[str, str] | None = None) -> None:
        self._nodes = nodes
        self._network = None if layers is None else gathering.Network(layers, nodes)
        self.pods: dict[str, Body] = {}
        self.objects: dict[str, Body] = {}
        self.satisfied: set[str] = set()
        #: What the first pod with a minimum said, until the last pod of the gang has gone.
        self._definitions: dict[str, Body] = {}
        #: Members that wait: their node, and until when.
        self.held: dict[str, tuple[str, float]] = {}
        self._now = 0.0

    # What the store shows.

    def put(self, body: Body) -> None:
        """An object comes, or changes."""
        (self.objects if body["kind"] == "PodGroup" else self.pods)[key(body)] = body
        if body["kind"] == "Pod":
            self._define(body)
        self._look()

    def drop(self, pod: str) -> None:
        """A pod goes."""
        body = self.pods.pop(pod)
        self.held.pop(pod, None)
        self._emptied(body)
        gang = self._gang(body)
        if not any(self._gang(remaining) == gang for remaining in self.pods.values()):
            self._definitions.pop(gang, None)

    def restart(self) -> None:
        """Another scheduler knows only what the store has."""
        self.satisfied.clear()
        self._definitions.clear()
        self.held.clear()
        for body in self.pods.values():
            self._define(body)
        self._look()

    def ends(self, pod: str) -> None:
        """A pod terminates: it is there, and is no child."""
        self.pods[pod]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self.held.pop(pod, None)
        self._emptied(self.pods[pod])

    def _emptied(self, body: Body) -> None:
        """A gang without children ends what was satisfied, unless a sibling of it runs."""
        gang = self._gang(body)
        children = [self._children(each) for each in self._together(gang)] if gang else []
        runs = any(child["spec"].get("nodeName") for each in children for child in each)
        if not all(children) and not runs:
            self.satisfied -= set(self._together(gang))

    def _look(self) -> None:
        for body in self.pods.values():
            gang = self._gang(body)
            if gang and body["spec"].get("nodeName") and self._counts(body):
                self.satisfied |= set(self._together(gang))

    # Who is who.

    @staticmethod
    def _gang(body: Body) -> str:
        meta = body["metadata"]
        gang = meta.get("labels", {}).get(_OBJECT) or meta.get("annotations", {}).get(_NAME)
        return f"{meta['namespace']}/{gang}" if gang else ""

    @staticmethod
    def _counts(body: Body) -> bool:
        ends = "deletionTimestamp" in body["metadata"]
        return not ends and not body["spec"].get("schedulingGates")

    def _children(self, gang: str) -> list[Body]:
        return [
            body for body in self.pods.values() if self._gang(body) == gang and self._counts(body)
        ]

    def _define(self, body: Body) -> None:
        notes = body["metadata"].get("annotations", {})
        if _MINIMUM in notes:
            self._definitions.setdefault(self._gang(body), notes)

    def _notes(self, gang: str) -> dict[str, Any] | None:
        """What defines a gang: its object, else the first of its pods with a minimum."""
        if gang in self.objects:
            body = self.objects[gang]
            return {**body["metadata"]["annotations"], _MINIMUM: str(body["spec"]["minMember"])}
        return self._definitions.get(gang)

    def _together(self, gang: str) -> list[str]:
        """All gangs that are connected, whoever names whom."""
        known = {self._gang(body) for body in self.pods.values()} | set(self.objects) | {gang}
        names = {
            each: set(json.loads((self._notes(each) or {}).get(_GROUPS, "[]")))
            for each in known - {""}
        }
        reached, before = {gang}, 0
        while len(reached) != before:
            before = len(reached)
            for each, named in names.items():
                if each in reached or named & reached:
                    reached |= named | {each}
        return sorted(reached)

    # What follows.

    def decide(self, now: float = 0.0) -> dict[str, str]:
        """The pods that get a node now, with the node."""
        placed: dict[str, str] = {}
        self._now = now
        tried = self._look_at_held(placed)
        waiting = [
            body
            for body in self.pods.values()
            if not body["spec"].get("nodeName") and self._counts(body)
            if key(body) not in self.held and key(body) not in placed
        ]
        for body in sorted(waiting, key=lambda body: -priority(body)):
            if key(body) in tried:
                continue
            gang = self._gang(body)
            if not gang:
                self._single(body, placed)
                continue
            if self._admitted(gang):
                group = self._together(gang)
                tried |= {key(pod) for each in group for pod in self._children(each)}
                self._group(group, placed)
        return placed

    def _look_at_held(self, placed: dict[str, str]) -> set[str]:
        """Bind those whose gang has enough by now; the others lose their room when time is up.

        A gang that lost room is not tried at once: its pods.
        """
        pausing: set[str] = set()
        for pod, (_, until) in list(self.held.items()):
            if pod not in self.held:
                continue
            group = self._together(self._gang(self.pods[pod]))
            if all(self._enough(gang, placed) for gang in group):
                self._release(group, placed)
            elif until <= self._now:
                del self.held[pod]
                pausing |= {key(child) for gang in group for child in self._children(gang)}
        return pausing

    def _release(self, group: list[str], placed: dict[str, str]) -> None:
        for gang in group:
            for child in self._children(gang):
                if key(child) in self.held:
                    placed[key(child)] = self.held.pop(key(child))[0]
        self.satisfied |= set(group)

    def _hold(self, group: list[str], members: list[Body], trial: dict[str, str]) -> None:
        """Let those that were decided wait, where all gangs wait and the sums may suffice."""
        notes = [self._notes(gang) for gang in group]
        open_ = all(own is not None and own.get(_MODE) == "NonStrict" for own in notes)
        best = {**trial, **{key(pod): "somewhere" for pod in members}}
        possible = all(self._enough(gang, best) for gang in group)
        if open_ and possible and self._sums_suffice(group, members, trial):
            until = self._now + _WAIT
            self.held |= {
                key(pod): (trial[key(pod)], until) for pod in members if key(pod) in trial
            }

    def _sums_suffice(self, group: list[str], members: list[Body], trial: dict[str, str]) -> bool:
        """Whether the smallest members that are missing ask for no more than is free in all."""
        others = {pod: node for pod, node in trial.items() if pod not in set(map(key, members))}
        world, needed = self._world(others), [0, 0]
        for gang in group:
            own = [pod for pod in members if self._gang(pod) == gang]
            missing = next(
                number
                for number in range(len(own) + 1)
                if self._enough(gang, dict.fromkeys(map(key, own[:number]), "somewhere"))
            )
            amounts = sorted(requests(pod)["cpu"] for pod in own)
            needed = [needed[0] + sum(amounts[:missing]), needed[1] + missing]
        free = [0, 0]
        for node in world.nodes:
            there = world.on[name(node)]
            free_of = room(node)
            free[0] += max(0, free_of["cpu"] - sum(requests(pod)["cpu"] for pod in there))
            free[1] += max(0, free_of["pods"] - len(there))
        return needed[0] <= free[0] and needed[1] <= free[1]

    def _world(self, placed: dict[str, str]) -> World:
        placed = {**{pod: node for pod, (node, _) in self.held.items()}, **placed}
        bodies = [
            {**pod, "spec": {**pod["spec"], "nodeName": placed[key(pod)]}}
            if key(pod) in placed
            else pod
            for pod in self.pods.values()
        ]
        return World([*self._nodes, *bodies])

    def _single(self, body: Body, placed: dict[str, str]) -> bool:
        world = self._world(placed)
        feasible = [node for node in world.nodes if not check(world, body, node).reasons]
        if not feasible:
            return False
        scores = totals(world, body, feasible)
        placed[key(body)] = next(each for each in scores if scores[each] == max(scores.values()))
        return True

    def _admitted(self, gang: str) -> bool:
        notes = self._notes(gang)
        if notes is None:
            return False
        if notes.get(_POLICY, "once-satisfied") == "once-satisfied" and gang in self.satisfied:
            return True
        return all(
            (sibling_notes := self._notes(sibling)) is not None
            and len(self._children(sibling)) >= int(sibling_notes[_MINIMUM])
            for sibling in self._together(gang)
        )

    def _group(self, group: list[str], placed: dict[str, str]) -> None:
        """All of them, one among the others; then all or none of it stays.

        A gang whose policy does not let it into the queue yet takes no part, though a sibling that
        was satisfied once has its turn: only what is in the queue can leave it.
        """
        members = [
            pod
            for gang in group
            if self._admitted(gang)
            for pod in self._children(gang)
            if not pod["spec"].get("nodeName")
            and not self._barred(gang)
            and key(pod) not in self.held
            and key(pod) not in placed
        ]
        trial = dict(placed)
        members.sort(key=lambda pod: (-priority(pod), key(pod)))
        try:
            gathered = self._gather_all(group, members, trial)
        except gathering.StrayError:
            return
        for pod in members:
            if key(pod) not in gathered:
                self._single(pod, trial)
        if all(self._enough(gang, trial) for gang in group):
            placed |= trial
            if any(key(pod) in trial for pod in members):
                self.satisfied |= set(group)
            self._release(group, placed)
        else:
            self._hold(group, members, trial)

    # Gathering.

    def _strategy(self, gang: str) -> list[Body]:
        spelled = (self._notes(gang) or {}).get(_GATHER, "{}")
        return list(json.loads(spelled).get("gatherStrategy", []))

    def _barred(self, gang: str) -> bool:
        """Whether its members must share a place of a layer that nobody knows."""
        strategy = self._strategy(gang)
        if self._network is not None:
            return not self._network.knows(strategy)
        return any(each["strategy"] == "MustGather" for each in strategy)

    def _gather_all(self, group: list[str], members: list[Body], trial: dict[str, str]) -> set[str]:
        """Place the gangs that are gathered, those first that must be in the lowest layer."""
        network, together = self._network, dict[str, list[str]]()
        for gang in group if network is not None else ():
            if strategy := self._strategy(gang):
                together.setdefault(json.dumps(strategy), []).append(gang)
        done: set[str] = set()
        several = [(gathering_of, json.loads(text)) for text, gathering_of in together.items()]
        for gangs, strategy in sorted(several, key=lambda each: -self._depth(each[1])):
            own = [pod for pod in members if self._gang(pod) in gangs]
            done |= {key(pod) for pod in own}
            if own and network is not None:
                demand, needs = self._demand(gangs, own, trial)
                demand.strategy = strategy
                nodes = network.placed(demand)
                ranked = sorted(own, key=lambda pod: self._beyond(pod, own, needs))[: len(nodes)]
                chosen = [pod for pod in own if pod in ranked]
                trial |= {key(pod): node for pod, node in zip(chosen, nodes, strict=True)}
        return done

    def _depth(self, strategy: list[Body]) -> int:
        return 0 if self._network is None else self._network.depth(strategy)

    def _beyond(self, pod: Body, own: list[Body], needs: dict[str, int]) -> bool:
        gang = self._gang(pod)
        mine = [key(each) for each in own if self._gang(each) == gang]
        return mine.index(key(pod)) >= needs[gang]

    def _demand(
        self, gangs: list[str], own: list[Body], trial: dict[str, str]
    ) -> tuple[gathering.Demand, dict[str, int]]:
        world, first = self._world(trial), own[0]
        feasible = [node for node in world.nodes if not check(world, first, node).reasons]
        scores = totals(world, first, feasible) if feasible else {}
        slots: dict[str, int] = {}
        for node in world.nodes:
            place, more = name(node), dict(trial)
            slots[place] = 0
            for pod in own:
                if check(self._world(more), pod, node).reasons:
                    break
                more[key(pod)] = place
                slots[place] += 1
        texts = {pod["metadata"].get("annotations", {}).get(_SELECTOR) for pod in own} - {None}
        there: dict[str, int] = {}
        near: dict[str, int] = {}
        for pod in self.pods.values():
            held, _ = self.held.get(key(pod), ("", 0.0))
            node_name = pod["spec"].get("nodeName") or trial.get(key(pod)) or held
            gang = self._gang(pod)
            if not node_name or not gang or not self._counts(pod):
                continue
            text = pod["metadata"].get("annotations", {}).get(_SELECTOR)
            there[node_name] = there.get(node_name, 0) + (gang in gangs)
            near[node_name] = near.get(node_name, 0) + (gang in gangs or text in texts)
        needs = {gang: self._needed(gang) for gang in gangs}
        need = max(1, sum(needs.values()))
        return gathering.Demand(len(own), need, slots, scores, there, near), needs

    def _needed(self, gang: str) -> int:
        notes = self._notes(gang)
        if notes is None or self._enough(gang, {}):
            return 0
        bound = sum(bool(pod["spec"].get("nodeName")) for pod in self._children(gang))
        held = sum(key(pod) in self.held for pod in self._children(gang))
        counts = notes.get(_POLICY, "once-satisfied") == "waiting-and-running"
        return int(notes[_MINIMUM]) - held - (bound if counts else 0)

    def _enough(self, gang: str, trial: dict[str, str]) -> bool:
        notes = self._notes(gang)
        if notes is None:
            return gang in self.satisfied
        children, minimum = self._children(gang), int(notes[_MINIMUM])
        waiting = sum(key(pod) in trial or key(pod) in self.held for pod in children)
        bound = sum(bool(pod["spec"].get("nodeName")) for pod in children)
        policy = notes.get(_POLICY, "once-satisfied")
        if policy == "only-waiting":
            return waiting >= minimum
        if policy == "waiting-and-running":
            return waiting + bound >= minimum
        return waiting >= minimum or gang in self.satisfied


def named(placed: dict[str, str]) -> dict[str, str]:
    """The same by the pods' names alone."""
    return {pod.partition("/")[2]: node for pod, node in placed.items()}
