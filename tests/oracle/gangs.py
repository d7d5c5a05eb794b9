"""Gangs by the rules alone: all or nothing over groups, one node and one pod at a time."""

from __future__ import annotations

import json
from typing import Any

from tests.oracle.filters import check
from tests.oracle.objects import Body, key, priority
from tests.oracle.scores import totals
from tests.oracle.world import World

_NAME = "gang.scheduling.koordinator.sh/name"
_MINIMUM = "gang.scheduling.koordinator.sh/min-available"
_GROUPS = "gang.scheduling.koordinator.sh/groups"
_POLICY = "gang.scheduling.koordinator.sh/match-policy"
_OBJECT = "pod-group.scheduling.sigs.k8s.io"


class GangOracle:
    """A cluster, its PodGroups and pods; what is satisfied is remembered until all children go."""

    def __init__(self, nodes: list[Body]) -> None:
        self._nodes = nodes
        self.pods: dict[str, Body] = {}
        self.objects: dict[str, Body] = {}
        self.satisfied: set[str] = set()
        #: What the first pod with a minimum said, until the last pod of the gang has gone.
        self._said: dict[str, Body] = {}

    # What is said.

    def put(self, body: Body) -> None:
        """An object comes, or changes."""
        (self.objects if body["kind"] == "PodGroup" else self.pods)[key(body)] = body
        if body["kind"] == "Pod":
            self._define(body)
        self._look()

    def drop(self, pod: str) -> None:
        """A pod goes."""
        body = self.pods.pop(pod)
        self._emptied(body)
        gang = self._gang(body)
        if not any(self._gang(other) == gang for other in self.pods.values()):
            self._said.pop(gang, None)

    def restart(self) -> None:
        """Another scheduler knows only what the store has."""
        self.satisfied.clear()
        self._said.clear()
        for body in self.pods.values():
            self._define(body)
        self._look()

    def ends(self, pod: str) -> None:
        """A pod terminates: it is there, and is no child."""
        self.pods[pod]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
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
            self._said.setdefault(self._gang(body), notes)

    def _notes(self, gang: str) -> dict[str, Any] | None:
        """What defines a gang: its object, else the first of its pods with a minimum."""
        if gang in self.objects:
            body = self.objects[gang]
            return {**body["metadata"]["annotations"], _MINIMUM: str(body["spec"]["minMember"])}
        return self._said.get(gang)

    def _together(self, gang: str) -> list[str]:
        """All gangs that are connected, whoever names whom."""
        several = {self._gang(body) for body in self.pods.values()} | set(self.objects) | {gang}
        names = {
            each: set(json.loads((self._notes(each) or {}).get(_GROUPS, "[]")))
            for each in several - {""}
        }
        reached, before = {gang}, 0
        while len(reached) != before:
            before = len(reached)
            for each, named in names.items():
                if each in reached or named & reached:
                    reached |= named | {each}
        return sorted(reached)

    # What follows.

    def decide(self) -> dict[str, str]:
        """The pods that get a node now, with the node."""
        placed: dict[str, str] = {}
        tried: set[str] = set()
        waiting = [
            body
            for body in self.pods.values()
            if not body["spec"].get("nodeName") and self._counts(body)
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

    def _world(self, placed: dict[str, str]) -> World:
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
            (its := self._notes(each)) is not None
            and len(self._children(each)) >= int(its[_MINIMUM])
            for each in self._together(gang)
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
        ]
        trial = dict(placed)
        for pod in sorted(members, key=lambda pod: (-priority(pod), key(pod))):
            self._single(pod, trial)
        if all(self._enough(gang, trial) for gang in group):
            placed |= trial
            if any(key(pod) in trial for pod in members):
                self.satisfied |= set(group)

    def _enough(self, gang: str, trial: dict[str, str]) -> bool:
        notes = self._notes(gang)
        if notes is None:
            return gang in self.satisfied
        children, minimum = self._children(gang), int(notes[_MINIMUM])
        waiting = sum(key(pod) in trial for pod in children)
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
