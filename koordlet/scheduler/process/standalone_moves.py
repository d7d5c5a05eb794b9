"""Drains and evictions of a standalone scheduler, for whoever follows them over its socket.

Covers: one call, the objects for a rehearsal. Does not cover: the moves (``loop.pod_moves``),
messages (``rpc.moving``).

Rules:
1. The moves work on what the scheduler sees, and ask its limiter: there is one ledger.
2. When the caller goes, the moves end as by Ctrl-C, and what is held is given back.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping

from koordlet.kubeapi import node_avoidances, objects
from koordlet.model import errors
from koordlet.rpc import moving
from koordlet.scheduler.disruption.settings import DisruptionSettings
from koordlet.scheduler.framework.profile import Profile
from koordlet.scheduler.loop import pod_moves
from koordlet.scheduler.loop.migration_writer import WatchedCluster
from koordlet.scheduler.sim import cluster_dump


class StandaloneMoves:
    """Moves pods of one standalone scheduler."""

    def __init__(
        self,
        store: objects.Objects,
        watched: WatchedCluster,
        profiles: Mapping[str, Profile],
        disruption: DisruptionSettings,
        *,
        instance: str,
    ) -> None:
        self._store, self._watched, self._instance = store, watched, instance
        self._profiles, self._disruption = profiles, disruption

    async def move(self, wanted: moving.MoveRequest) -> AsyncIterator[moving.PodMove]:
        """Move; each change of a pod's state."""
        if bool(wanted.node) is bool(wanted.pod):
            raise errors.UsageError("a node or a pod is moved", fix="name one of them")
        if not wanted.timeout >= 0:  # nor NaN, which no timer of the event loop survives
            fix = "a number of seconds; 0: never"
            raise errors.UsageError("is no span of time", culprit=f"{wanted.timeout}", fix=fix)
        avoids = wanted.avoid if wanted.HasField("avoid") else None
        if avoids is not None and not 0 <= avoids <= node_avoidances.LONGEST:
            fix = f"from 0 to {node_avoidances.LONGEST:g} seconds"
            raise errors.UsageError("is no time to avoid a node", culprit=f"{avoids}", fix=fix)
        changes: asyncio.Queue[pod_moves.Progress | None] = asyncio.Queue()
        options = pod_moves.MoveOptions(
            by=f"drain/{wanted.node}" if wanted.node else "evict",
            reason=wanted.reason,
            node=wanted.node,
            pod=wanted.pod,
            loses_data=wanted.loses_data,
            timeout=wanted.timeout or None,
            avoid_seconds=avoids,
        )
        moves = pod_moves.PodMoves(
            self._store,
            options,
            self._profiles,
            self._disruption,
            instance=self._instance,
            tell=changes.put_nowait,
            watched=self._watched,
        )
        work = asyncio.ensure_future(moves.run())
        work.add_done_callback(lambda _: changes.put_nowait(None))
        try:
            while (progress := await changes.get()) is not None:
                yield moving.PodMove(**progress.body())
            work.result()
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def objects(self) -> AsyncIterator[moving.ClusterObject]:
        """All objects by which pods are placed and evicted."""
        bodies, _ = await cluster_dump.listed(self._store)
        for body in bodies:
            yield moving.ClusterObject(json=json.dumps(body))

    async def undo_drain(self, node: str) -> int:
        """Uncordon a node, and end what is under way."""
        if not node:
            raise errors.UsageError("a node is uncordoned", fix="name it")
        return await pod_moves.undo(self._store, node)
