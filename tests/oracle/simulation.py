"""The pending pods, one after the other: the document that ``koordlet sim`` prints."""

from __future__ import annotations

import copy

from tests.oracle import numa, preemption, volumes
from tests.oracle.filters import candidates, check
from tests.oracle.messages import histogram
from tests.oracle.objects import Body, key, name, priority
from tests.oracle.scores import totals
from tests.oracle.world import World


class Oracle:
    """Places pods, or says why not."""

    def __init__(self, bodies: list[Body], now: float = 0.0) -> None:
        self._world = World(copy.deepcopy(bodies), now)
        self.placements: dict[str, Body] = {}
        #: Every message of a pod without a node, the newest last.
        self.pending: dict[str, list[str]] = {}
        self.preemptions: dict[str, Body] = {}

    def run(self) -> None:
        """By priority, then age, then input; who failed has another turn when any was placed."""
        ordered = sorted(
            self._world.pending,
            key=lambda one: (-priority(one), one["metadata"].get("creationTimestamp", "")),
        )
        again: list[Body] = []
        failed: list[Body] = []
        while ordered or again:
            pod = (ordered or again).pop(0)
            if self._try(pod):
                again = sorted(again + failed, key=self._world.pending.index)
                again.sort(
                    key=lambda one: (-priority(one), one["metadata"].get("creationTimestamp", ""))
                )
                failed = []
            else:
                failed.append(pod)

    def _try(self, pod: Body) -> bool:
        """Place it, over the bodies of others if need be."""
        if gates := [one["name"] for one in pod["spec"].get("schedulingGates", [])]:
            self.pending[key(pod)] = [f"waiting for scheduling gates: [{' '.join(gates)}]"]
            return False
        world = self._world
        verdicts = [check(world, pod, node) for node in world.nodes]
        feasible = [
            node for node, found in zip(world.nodes, verdicts, strict=True) if not found.reasons
        ]
        if not feasible:
            chosen = preemption.preempt(world, pod)
            if isinstance(chosen, str):
                told = histogram(world, [one for found in verdicts for one in found.reasons])
                if candidates(pod) == set():
                    told = f"0/{len(world.nodes)} nodes are available: pod affinity terms conflict."
                elif reason := volumes.refusal(world, pod):
                    told = f"0/{len(world.nodes)} nodes are available: {reason}."
                self.pending.setdefault(key(pod), []).append(
                    f"{told} no new claims to deallocate, {chosen}"
                )
                return False
            feasible = [self._evict(pod, chosen)]
        self._place(pod, feasible)
        self.pending.pop(key(pod), None)
        return True

    def _evict(self, pod: Body, chosen: preemption.Candidate) -> Body:
        """The victims leave at once."""
        victims = [key(one) for one in chosen.victims]
        self.preemptions[key(pod)] = {"node": chosen.node, "victims": victims}
        for one in chosen.victims:
            preemption.count_down(self._world, one)
        left = [one for one in self._world.on[chosen.node] if key(one) not in victims]
        self._world.on[chosen.node] = left
        return next(one for one in self._world.nodes if name(one) == chosen.node)

    def _place(self, pod: Body, feasible: list[Body]) -> None:
        """On the first of the best."""
        found = totals(self._world, pod, feasible)
        ties = [node for node, total in found.items() if total == max(found.values())]
        self.placements[key(pod)] = {"node": ties[0], "ties": ties, "scores": found}
        world = self._world
        node = next(one for one in world.nodes if name(one) == ties[0])
        taken = volumes.assigned(world, pod, node) or {}
        world.parts[key(pod)] = numa.place(world, pod, node)
        world.promised |= {volume: claim for claim, volume in taken.items() if volume}
        world.on[ties[0]].append(pod)
