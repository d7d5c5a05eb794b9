"""The pending pods, one after the other: the document that ``koordlet sim`` prints."""

from __future__ import annotations

import copy

from tests.oracle import numa, preemption, volumes
from tests.oracle.filters import candidates, check
from tests.oracle.messages import histogram
from tests.oracle.objects import Body, key, name, priority
from tests.oracle.scores import totals
from tests.oracle.world import World

#: Of reasons that another pod may take away by coming, or by binding a claim of both.
_NEIGHBOURS = ("affinity rules", "topology spread", "olume")


class Oracle:
    """Places pods, or says why not."""

    def __init__(self, bodies: list[Body], now: float = 0.0) -> None:
        self._world = World(copy.deepcopy(bodies), now)
        self.placements: dict[str, Body] = {}
        #: Every message of a pod without a node, the newest last.
        self.pending: dict[str, list[str]] = {}
        self.preemptions: dict[str, Body] = {}
        #: Pods that a node refused because of those that are there or are not.
        self._lonely: set[str] = set()

    def run(self) -> None:
        """By priority, then age, then input; who failed has another turn after what may help it."""
        ordered = sorted(self._world.pending, key=_turn)
        again: list[Body] = []
        failed: list[Body] = []
        while ordered or again:
            pod = (ordered or again).pop(0)
            evicted = len(self.preemptions)
            if self._try(pod):
                # A pod that comes helps those that want a neighbour; one that goes helps all.
                left = len(self.preemptions) > evicted
                helped = [other for other in failed if left or key(other) in self._lonely]
                failed = [other for other in failed if other not in helped]
                again = sorted(again + helped, key=self._world.pending.index)
                again.sort(key=_turn)
            else:
                failed.append(pod)

    def _try(self, pod: Body) -> bool:
        """Place it, over the bodies of others if need be."""
        if gates := [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]:
            self.pending[key(pod)] = [f"waiting for scheduling gates: [{' '.join(gates)}]"]
            return False
        world = self._world
        verdicts = [check(world, pod, node) for node in world.nodes]
        feasible = [
            node for node, verdict in zip(world.nodes, verdicts, strict=True) if not verdict.reasons
        ]
        reasons = {reason for verdict in verdicts for reason in verdict.reasons}
        self._lonely.discard(key(pod))
        if any(word in reason for word in _NEIGHBOURS for reason in reasons):
            self._lonely.add(key(pod))
        if not feasible:
            chosen = preemption.preempt(world, pod)
            if isinstance(chosen, str):
                why = histogram(
                    world, [reason for verdict in verdicts for reason in verdict.reasons]
                )
                if candidates(pod) == set():
                    why = f"0/{len(world.nodes)} nodes are available: pod affinity terms conflict."
                elif reason := volumes.refusal(world, pod):
                    why = f"0/{len(world.nodes)} nodes are available: {reason}."
                self.pending.setdefault(key(pod), []).append(
                    f"{why} no new claims to deallocate, {chosen}"
                )
                return False
            feasible = [self._evict(pod, chosen)]
        self._place(pod, feasible)
        self.pending.pop(key(pod), None)
        return True

    def _evict(self, pod: Body, chosen: preemption.Candidate) -> Body:
        """The victims leave at once."""
        victims = [key(victim) for victim in chosen.victims]
        self.preemptions[key(pod)] = {"node": chosen.node, "victims": victims}
        for victim in chosen.victims:
            preemption.count_down(self._world, victim)
        left = [
            neighbour for neighbour in self._world.on[chosen.node] if key(neighbour) not in victims
        ]
        self._world.on[chosen.node] = left
        return next(node for node in self._world.nodes if name(node) == chosen.node)

    def _place(self, pod: Body, feasible: list[Body]) -> None:
        """On the first of the best."""
        scores = totals(self._world, pod, feasible)
        ties = [node for node, total in scores.items() if total == max(scores.values())]
        self.placements[key(pod)] = {"node": ties[0], "ties": ties, "scores": scores}
        world = self._world
        node = next(known_node for known_node in world.nodes if name(known_node) == ties[0])
        taken = volumes.assigned(world, pod, node) or {}
        world.parts[key(pod)] = numa.place(world, pod, node)
        world.promised |= {volume: claim for claim, volume in taken.items() if volume}
        world.on[ties[0]].append(pod)


def _turn(pod: Body) -> tuple[int, str]:
    return -priority(pod), pod["metadata"].get("creationTimestamp", "")
