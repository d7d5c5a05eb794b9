"""Removes what this agent reported about its node in objects of its own, when no agent follows.

Covers: NodeMetric, NodeResourceTopology, Device.
Does not cover: the Node (``tainting``), writing them (``rows``).

Rules:
1. An object that koordlet applied and in which nobody else owns a field is deleted, by the UID
   and revision that were read; so is a NodeMetric that koordlet created and has not filled yet.
2. From an object in which somebody else owns a field too, only what koordlet applied goes.
3. Another object that koordlet did not apply is somebody else's, also of a peer's agent that calls
   itself koordlet: it updates and never applies.
4. A kind that the server does not have costs nothing.
"""

from __future__ import annotations

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.report import rows
from koordlet.report.objects import holders

#: Kinds with the subresource that koordlet applies.
_KINDS = (
    (kinds.NODE_METRICS, "status"),
    *((kind, "") for kind in rows.TOPOLOGIES),
    (kinds.DEVICES, ""),
)


async def withdraw(store: objects.Objects, node: str) -> int:
    """Remove them; returns the number of writes. ``ObjectsError`` if one failed."""
    writes = 0
    for kind, subresource in _KINDS:
        ref = objects.Ref(kind, node)
        try:
            there = await store.get(ref)
        except refusals.NotFound:  # Also a kind that is not served.
            continue
        applied = holders.applied(there, subresource)
        if holders.alone(there) and (applied or kind is kinds.NODE_METRICS):
            uid, revision = objects.text(there, "uid"), objects.revision(there)
            await store.delete(ref, uid=uid, revision=revision)
        elif applied:
            empty = objects.Apply({}, holders.MANAGER, force=True)
            await store.patch(ref, empty, subresource=subresource)
        else:
            continue
        writes += 1
    return writes
