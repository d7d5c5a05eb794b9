"""Keeps koordlet's taints on the Node in step with conditions, and withdraws all at the final stop.

Covers: which conditions are worth a taint, when the Node is read and written for it, who was
faster; taking away for good taints, resources and conditions of the Node, whoever else owns what.
Does not cover: the loop (``report.writing``), the conditions (``policy``), when the stop is final
(``agent.endpoints``, ``agent.restore``), objects of kinds of their own: they go with the Node, and
schedulers see how old they are.

Rules:
1. Taints are one list, which every writer writes as a whole (an API server knows no keys in it). So
   the Node is read, the list laid anew, and written only if nobody wrote the Node in between: else
   once more, at once and a few times.
2. What stands there is known from the Node that is watched anyway: without a difference nothing is
   asked.
3. A taint stays for a while after its condition: one that comes and goes sends pods to and fro.
4. Without an effect none is wanted; what an agent before us left is taken away.
5. Our keys have our prefix. ``node.kubernetes.io/…`` belongs to the control plane, which makes it
   of the kubelet's conditions and would take away what it did not make.
6. Whatever has another key stays as it is, where it is; so does ours where it is right.
7. A workload near its own limit harms nobody but itself: no taint.
8. An offer that nobody enforces any more brings pods to a node that does not hold them apart, and a
   condition that nobody looks after says what was the case once: both go at the final stop.
9. What we have applied goes with an empty apply: what another program owns as well stays. What was
   patched (by an agent of before, or where a server cannot apply) goes by name, where the Node says
   that it is ours alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.report import documents, view, writing
from koordlet.report.objects import holders, node_status

#: Seconds that a taint outlasts its condition.
LINGERS = 30.0
#: How often somebody else may be faster before the next look.
_TRIES = 5


class Taints:
    """Taints of one node."""

    name = "Node taints"
    period = 1.0

    def __init__(self, effect: str | None, clock: Callable[[], float]) -> None:
        self._effect = effect
        self._clock = clock
        self._budget = writing.WriteBudget(clock)
        #: Key to when its condition held last.
        self._held: dict[str, float] = {}

    async def bring(self, store: objects.Objects, now: view.ReportView) -> int | None:
        """Make the Node's list as the conditions of this moment want it."""
        node = now.snapshot.node
        keys = self._wanted(now)
        marks = {f"{key}:{self._effect}" for key in keys}
        if not node.known or ours(node.taints) == marks:
            return 0
        if not self._budget.take():
            return None
        return await lay(store, node.name, keys, self._effect or "")

    def _wanted(self, now: view.ReportView) -> frozenset[str]:
        """Rules 3 and 4."""
        if self._effect is None:
            return frozenset()
        at = self._clock()
        self._held |= dict.fromkeys(wanted(now), at)
        self._held = {key: seen for key, seen in self._held.items() if at - seen < LINGERS}
        return frozenset(self._held)


async def lay(store: objects.Objects, name: str, keys: Iterable[str] = (), effect: str = "") -> int:
    """Exactly these of ours, or none (rule 1); how often something was written."""
    ref = objects.Ref(kinds.NODES, name)
    wanted = tuple(keys)
    for tries in range(1, _TRIES + 1):
        there = await store.get(ref)
        made = laid(there, wanted, effect)
        if made is None:
            return 0
        body = {"spec": {"taints": made or None}}
        try:
            await store.patch(ref, objects.Merge(body, objects.revision(there)))
        except refusals.Conflict:
            if tries == _TRIES:
                raise
        else:
            return 1
    return 0


#: Condition to the key of its taint.
KEYS: Mapping[str, str] = {
    "MemoryPressure": "koordlet.io/memory-pressure",
    "DiskPressure": "koordlet.io/disk-pressure",
    "PIDPressure": "koordlet.io/pid-pressure",
    "MemoryStalled": "koordlet.io/memory-stalled",
    "CPUStalled": "koordlet.io/cpu-stalled",
    "IOStalled": "koordlet.io/io-stalled",
    "SwapPressure": "koordlet.io/swap-pressure",
}
_OURS = frozenset(KEYS.values())


def wanted(now: view.ReportView) -> frozenset[str]:
    """The keys of the conditions that hold."""
    return frozenset(
        KEYS[condition.type]
        for condition in now.plan.conditions
        if condition.status and condition.subject == "node" and condition.type in KEYS
    )


def ours(marks: Iterable[str]) -> frozenset[str]:
    """The taints of koordlet as ``KEY:EFFECT``."""
    return frozenset(mark for mark in marks if mark.rpartition(":")[0] in _OURS)


def laid(node: Mapping[str, Any], keys: Iterable[str], effect: str) -> list[Any] | None:
    """All taints that the node shall have; ``None``: those that it has."""
    listed = documents.part(node, "spec").get("taints")
    has = listed if isinstance(listed, list) else []
    missing = dict.fromkeys(sorted(keys))
    kept = []
    for taint in has:
        key = taint.get("key") if isinstance(taint, Mapping) else None
        if key not in _OURS:
            kept.append(taint)
        elif key in missing and taint.get("effect") == effect:
            kept.append(taint)
            del missing[key]
    made = [*kept, *({"key": key, "effect": effect} for key in missing)]
    return None if made == has else made


async def withdraw(store: objects.Objects, node: str, *, taints: bool, status: bool) -> int:
    """Withdraw; returns the number of writes. ``ObjectsError`` if one failed."""
    done = await lay(store, node) if taints else 0
    if not status:
        return done
    # Rule 9.
    ref = objects.Ref(kinds.NODES, node)
    there = await store.get(ref)
    if holders.applied(there, "status"):
        empty = objects.Apply({}, holders.MANAGER, force=True)
        there, done = await store.patch(ref, empty, subresource="status"), done + 1
    left = node_status.withdrawn(there)
    if left:
        removal = objects.Strategic(left, objects.revision(there))
        await store.patch(ref, removal, subresource="status")
        done += 1
    return done
