"""Withdraws koordlet's taints, resources and conditions from the Node at the final stop.

Covers: all of it in one call, whoever else owns what.
Does not cover: when (``agent.endpoints``, ``agent.restore``), objects of kinds of their own: they
go with the Node, and schedulers see how old they are.

Rules:
1. An offer that nobody enforces any more brings pods to a node that does not hold them apart, and a
   condition that nobody looks after says what was the case once.
2. What we have applied goes with an empty apply: what another program owns as well stays. What was
   patched (by an agent of before, or where a server cannot apply) goes by name, where the Node says
   that it is ours alone.
"""

from __future__ import annotations

from koordlet.kubeapi import kinds, objects
from koordlet.report import tainting
from koordlet.report.objects import holders, node_status


async def withdraw(store: objects.Objects, node: str, *, taints: bool, status: bool) -> int:
    """Withdraw; returns the number of writes. ``ObjectsError`` if one failed."""
    done = await tainting.lay(store, node) if taints else 0
    return done + (await _unsay(store, objects.Ref(kinds.NODES, node)) if status else 0)


async def _unsay(store: objects.Objects, ref: objects.Ref) -> int:
    """Rule 2."""
    there, done = await store.get(ref), 0
    if holders.applied(there, "status"):
        empty = objects.Apply({}, holders.MANAGER, force=True)
        there, done = await store.patch(ref, empty, subresource="status"), 1
    left = node_status.withdrawn(there)
    if left:
        await store.patch(
            ref, objects.Strategic(left, objects.revision(there)), subresource="status"
        )
        done += 1
    return done
