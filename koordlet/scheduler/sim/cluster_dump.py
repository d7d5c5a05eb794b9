"""The objects of a cluster that simulations read, listed once from its API server.

Covers: which kinds, kinds that are not served or may not be read. Does not cover: files
(``kubeapi.manifests``).
"""

from __future__ import annotations

from typing import Any

from koordlet.kubeapi import kinds, objects, refusals

#: Without them there is nothing to simulate.
_NEEDED = (kinds.NODES, kinds.PODS)
_KINDS = (
    *(kinds.NAMESPACES, kinds.PRIORITY_CLASSES, kinds.POD_DISRUPTION_BUDGETS, kinds.SERVICES),
    *(kinds.REPLICATION_CONTROLLERS, kinds.REPLICA_SETS, kinds.STATEFUL_SETS),
    *(kinds.PERSISTENT_VOLUMES, kinds.PERSISTENT_VOLUME_CLAIMS, kinds.STORAGE_CLASSES),
    *(kinds.CSI_NODES, kinds.CSI_DRIVERS, kinds.STORAGE_CAPACITIES, kinds.VOLUME_ATTACHMENTS),
    *(kinds.NODE_METRICS, kinds.NODE_RESOURCE_TOPOLOGIES, kinds.DEVICES, kinds.RESERVATIONS),
    *(kinds.DISRUPTION_RATES, kinds.NODE_AVOIDANCES, kinds.POD_GROUPS, kinds.NATIVE_POD_GROUPS),
)


async def listed(store: objects.Objects) -> tuple[list[dict[str, Any]], list[str]]:
    """All of them, and what is left out and why; ``ObjectsError`` without nodes or pods."""
    bodies: list[dict[str, Any]] = []
    warnings: list[str] = []
    for kind in (*_NEEDED, *_KINDS):
        try:
            listing = await objects.collect(store.list(kind))
        except (refusals.NotServed, refusals.Forbidden) as error:
            if kind in _NEEDED:
                raise
            if isinstance(error, refusals.Forbidden):
                warnings.append(f"{kind} are left out: {error}")
            continue
        # Items of a list do not name their kind.
        named = {"apiVersion": kind.api_version, "kind": kind.name}
        bodies += [{**body, **named} for body in listing.items]
    return bodies, warnings
