"""Event handlers: the kinds that the scheduler watches, and each change applied to the core.

Covers: which kinds, what is kept of an object (never the object), being up to date for the first
time. Does not cover: listing and watching (``kubeapi.informer``), deciding (``core``).

Rules:
1. A kind that is not served, or may not be read, is skipped with a warning and counts as empty.
   Nodes and pods are waited for, however long.
2. A pod that cannot be read is never tried, and its message says why; on a node it counts as one
   pod. A node that cannot be read keeps its last good state.
3. A change that concerns only some pod classes recomputes only those.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Mapping
from typing import Any

from koordlet import log
from koordlet.kubeapi import (
    disruption_rates,
    elastic_quotas,
    informer,
    kinds,
    network_topology,
    node_avoidances,
    objects,
    pod_groups,
    selectors,
)
from koordlet.scheduler.allocation import device_requests, devices, gpu_templates
from koordlet.scheduler.claims.allocation_state import AllocationState
from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.disruption.disruptions import Disruptions
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop import claim_events, reservation_events
from koordlet.scheduler.loop.agents import Agents
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.objects import machines, nodes, owners, storage, usage
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.storage import Storage
from koordlet.scheduler.objects.wire import BadObjectError, Body
from koordlet.scheduler.plugins.coscheduling import Coscheduling, GangScheduling
from koordlet.scheduler.plugins.deviceshare import DeviceShare
from koordlet.scheduler.plugins.node_avoidance import NodeAvoidance
from koordlet.scheduler.plugins.topology_spread import PodTopologySpread
from koordlet.scheduler.plugins.volumes import WithStorage

_OWNERS = (
    kinds.SERVICES,
    kinds.REPLICATION_CONTROLLERS,
    kinds.REPLICA_SETS,
    kinds.STATEFUL_SETS,
)
_STORAGE = (
    *(kinds.PERSISTENT_VOLUMES, kinds.PERSISTENT_VOLUME_CLAIMS, kinds.STORAGE_CLASSES),
    *(kinds.CSI_NODES, kinds.CSI_DRIVERS, kinds.STORAGE_CAPACITIES, kinds.VOLUME_ATTACHMENTS),
)
#: Pods that have ended hold nothing.
_LIVING = selectors.Selector(fields="status.phase!=Succeeded,status.phase!=Failed")
_LOOK = 0.1

#: Takes a change of an object: its key, what was kept of it, and what is.
_Changed = Callable[[informer.Key, Any, Any], None]
#: What is kept of an object of a kind, and who takes its changes.
_Row = tuple[Callable[[Body], Any], _Changed]


class EventHandlers:
    """An informer for each kind."""

    def __init__(
        self,
        store: objects.Objects,
        core: Core,
        profiles: Mapping[str, profile.Profile],
        clock: Callable[[], float],
        moved: Callable[[], None],
        *,
        agents: Agents,
        disruptions: Disruptions,
        allocations: AllocationState,
    ) -> None:
        self._store, self._core, self._agents = store, core, agents
        self._disruptions = disruptions
        self._clock, self._moved = clock, moved
        self._claims = claim_events.ClaimEvents(core, allocations, clock)
        self._owners, self._storage = owners.PodOwners(), Storage()
        self._positions = 0
        self._equip(profiles)
        #: Of kinds of which not all objects are asked for.
        self._selectors = {kinds.PODS: _LIVING}
        rows: dict[kinds.Kind, _Row] = {
            kinds.NAMESPACES: (inventory.namespace, self._namespace),
            kinds.PRIORITY_CLASSES: (inventory.priority, self._priority),
            kinds.POD_DISRUPTION_BUDGETS: (inventory.budget, self._budget),
            kinds.DISRUPTION_RATES: (
                disruption_rates.disruption_rate,
                lambda _key, old, new: disruptions.rate(old, new),
            ),
            kinds.NODE_AVOIDANCES: (node_avoidances.node_avoidance, self._avoidance),
            **dict.fromkeys(_OWNERS, (owners.decode, self._owner)),
            **dict.fromkeys(_STORAGE, (storage.kept, self._stored)),
            kinds.RESERVATIONS: (dict, self._reservation),
            kinds.NODE_RESOURCE_TOPOLOGIES: (machines.decode, self._described),
            kinds.NODE_METRICS: (usage.decode, self._measured),
            **self._shared(profiles),
            **self._claims.kinds(profiles),
            **self._bounding(),
            **self._ganging(profiles),
            kinds.NODES: (nodes.NodeDecoder().decode, self._node),
            kinds.PODS: (self._decoded, self._pod),
        }
        self.informers: dict[kinds.Kind, informer.Informer[Any]] = {
            kind: self._informer(kind, *row) for kind, row in rows.items()
        }

    def _equip(self, profiles: Mapping[str, profile.Profile]) -> None:
        for plugin in (plugin for served in profiles.values() for plugin in served.plugins):
            if isinstance(plugin, PodTopologySpread):
                plugin.owners = self._owners
            elif isinstance(plugin, WithStorage):
                plugin.storage = self._storage
            elif isinstance(plugin, NodeAvoidance):
                plugin.book = self._disruptions.avoidances

    def _shared(self, profiles: Mapping[str, profile.Profile]) -> dict[kinds.Kind, _Row]:
        """Devices, where a plugin allocates them, and templates."""
        self._device_plugins = profile.plugins(profiles, DeviceShare)
        if not self._device_plugins:
            return {}
        rows: dict[kinds.Kind, _Row] = {kinds.DEVICES: (devices.decode, self._furnished)}
        names = {plugin.templates.name for plugin in self._device_plugins if plugin.templates.named}
        if names:
            # One ConfigMap is all that is asked for where one has it.
            only = f"metadata.name={names.pop()}" if len(names) == 1 else ""
            self._selectors[kinds.CONFIG_MAPS] = selectors.Selector(fields=only)
            rows[kinds.CONFIG_MAPS] = (gpu_templates.decode, self._templates)
        return rows

    def _ganging(self, profiles: Mapping[str, profile.Profile]) -> dict[kinds.Kind, _Row]:
        """PodGroups and the network, where a profile has the plugin."""
        rows: dict[kinds.Kind, _Row] = {}
        gangs = self._core.gangs
        pod_group: _Row = (
            pod_groups.pod_group,
            _put_or_drop(gangs.put_pod_group, lambda old: gangs.drop_pod_group(old.key)),
        )
        if peers := profile.plugins(profiles, Coscheduling):
            rows[kinds.POD_GROUPS] = pod_group
        if profile.plugins(profiles, GangScheduling):
            rows[kinds.NATIVE_POD_GROUPS] = pod_group
        if peers:
            network = kinds.CLUSTER_NETWORK_TOPOLOGIES
            rows[network] = (network_topology.network_topology, self._network)
        return rows

    def _bounding(self) -> dict[kinds.Kind, _Row]:
        """Quotas and their profiles, unless their keys are ignored."""
        if self._core.decoder.judge.ignores_keys:
            return {}
        quotas = self._core.quotas
        changed = _put_or_drop(quotas.put_quota, quotas.drop_quota)
        return {
            **{
                kind: (functools.partial(elastic_quotas.elastic_quota, kind=kind), changed)
                for kind in quotas.quota_kinds
            },
            kinds.ELASTIC_QUOTA_PROFILES: (
                elastic_quotas.elastic_quota_profile,
                _put_or_drop(quotas.put_profile, quotas.drop_profile),
            ),
        }

    def _informer(
        self, kind: kinds.Kind, convert: Callable[[Body], Any], changed: _Changed
    ) -> informer.Informer[Any]:
        def notify(key: informer.Key, old: Any, new: Any) -> None:
            changed(key, old, new)
            self._moved()

        selector = self._selectors.get(kind, selectors.EVERYTHING)
        return informer.Informer(self._store, kind, convert, selector=selector, changed=notify)

    async def run(self) -> None:
        """Run all informers until cancelled; pods last, as they name the others."""
        async with asyncio.TaskGroup() as group:
            first = [source for kind, source in self.informers.items() if kind is not kinds.PODS]
            for source in first:
                group.create_task(source.run())
            await asyncio.gather(*map(self._settled, first))
            group.create_task(self.informers[kinds.PODS].run())

    async def _settled(self, source: informer.Informer[Any]) -> None:
        """Wait until a kind is synced, or known to be unavailable (rule 1)."""
        synced = asyncio.ensure_future(source.synced())
        try:
            while not synced.done():
                await asyncio.wait({synced}, timeout=_LOOK)
                if source.health.failures and source.kind not in {kinds.NODES, kinds.PODS}:
                    log.get().warning(
                        "scheduler.source_missing",
                        kind=str(source.kind),
                        detail=source.health.error,
                    )
                    return
        finally:
            synced.cancel()

    async def synced(self) -> None:
        """Wait until all kinds are synced."""
        await self.informers[kinds.PODS].synced()

    # What each kind means.

    def _decoded(self, body: Body) -> Pod:
        self._positions += 1
        try:
            return self._core.decoder.decode(body, self._positions)
        except (BadObjectError, TypeError, KeyError, AttributeError, ValueError) as error:
            return self._core.decoder.unreadable(body, f"{error}"[:300])

    def _pod(self, _key: informer.Key, old: Pod | None, new: Pod | None) -> None:
        core, now = self._core, self._clock()
        core.pod(old, new, now)
        self._disruptions.pod(old, new)
        came = new if old is None or (new is not None and old.uid != new.uid) else None
        if came and core.queue.get(came.key) and self._disruptions.fronted(came):
            core.queue.front(came.key, now)
            core.measures.fronted += 1

    def _node(self, key: informer.Key, old: nodes.Node | None, new: nodes.Node | None) -> None:
        if new is not None and new.problems and (old is None or old.problems != new.problems):
            log.get().warning("scheduler.node_unread", node=key[1], detail="; ".join(new.problems))
        self._claims.node(old, new)
        self._core.node(old, new, self._clock())
        if old is not None and new is not None and old.labels != new.labels:
            self._core.gangs.network_changed()

    def _reservation(self, _key: informer.Key, old: Body | None, new: Body | None) -> None:
        reservation_events.changed(self._core, old, new, self._clock())

    def _network(
        self,
        key: informer.Key,
        old: network_topology.NetworkTopology | None,
        new: network_topology.NetworkTopology | None,
    ) -> None:
        topology = old if new is None else new
        if topology is not None and topology.counts:
            self._core.gangs.put_network(new)
        if new is not None and new.unused:
            log.get().warning("scheduler.network_unused", topology=key[1], detail=new.unused)

    def _namespace(self, key: informer.Key, old: Any, new: Any) -> None:
        known = self._core.pod_cache.namespaces
        if new is None:
            known.pop(key[1], None)
        else:
            known[key[1]] = new[1]
        self._core.quotas.name_namespace(key[1], "" if new is None else new[2])
        if old is not None and new is not None and old[1] == new[1]:
            return
        # Terms select namespaces by labels: who is meant by whom is counted anew.
        if any(each.namespace == key[1] for each in self._core.pod_cache.columns.classes()):
            self._core.rebuild()
        else:
            self._core.forget_views(lambda pod_class: pod_class.namespace == key[1])
        self._core.wake(ClusterEvent(ActionType.NAMESPACE, namespace=key[1]), self._clock())

    def _priority(self, key: informer.Key, _old: Any, new: Any) -> None:
        if new is None:
            self._core.priorities.pop(key[1], None)
        else:
            self._core.priorities[key[1]] = new[1]

    def _budget(self, key: informer.Key, _old: Any, new: Any) -> None:
        self._core.budgets.put("/".join(key), new)

    def _avoidance(self, key: informer.Key, old: Any, new: Any) -> None:
        if new is not None and new.faults and (old is None or old.faults != new.faults):
            log.get().warning("scheduler.avoidance_unread", node=key[1], detail=list(new.faults))
        book = self._disruptions.avoidances
        # Some classes have points from it, or have none any more.
        self._core.forget_views(book.named)
        self._disruptions.avoidance(old, new)
        self._core.forget_views(book.named)

    def _owner(
        self, _key: informer.Key, old: owners.PodOwner | None, new: owners.PodOwner | None
    ) -> None:
        self._disruptions.owner(old, new)
        owner = new or old
        if owner is None or old == new:
            return
        (self._owners.drop if new is None else self._owners.put)(owner)
        self._core.forget_views(owner.concerns)
        self._core.wake(ClusterEvent(ActionType.OWNERS, namespace=owner.namespace), self._clock())

    def _stored(self, _key: informer.Key, old: Body | None, new: Body | None) -> None:
        like = old is not None and new is not None and storage.is_like(old, new)
        if old is not None and new is None:
            self._storage.drop(old)
        if new is not None:
            self._storage.add(new)
            if like or new.get("kind") == kinds.VOLUME_ATTACHMENTS.name:
                return  # an attachment helps nobody, and is counted when somebody asks
        self._core.forget_views(lambda pod_class: bool(pod_class.volumes))
        self._core.wake(ClusterEvent(ActionType.STORAGE), self._clock())

    def _furnished(self, key: informer.Key, old: Any, new: Any) -> None:
        if old == new:
            return
        columns = self._core.pod_cache.columns
        columns.furnish(key[1], None if new is None else new[1])
        row = columns.rows.get(key[1])
        if row is not None:
            what = ActionType.NODE_FEED | ActionType.NODE_ROOM
            self._core.wake(ClusterEvent(what, node=columns.nodes[row]), self._clock())

    def _templates(self, key: informer.Key, old: Any, new: Any) -> None:
        if old == new:
            return
        for plugin in self._device_plugins:
            plugin.teach((key[0], key[1]), {} if new is None else new[1])
        self._core.forget_views(
            lambda pod_class: not device_requests.NAMES.isdisjoint(pod_class.requests.real)
        )
        self._core.wake(ClusterEvent(ActionType.NODE_FEED), self._clock())

    def _described(self, key: informer.Key, _old: Any, new: Any) -> None:
        self._agents.described(key[1], None if new is None else new[1])

    def _measured(self, key: informer.Key, _old: Any, new: Any) -> None:
        self._agents.measured(key[1], None if new is None else new[1])


def _put_or_drop(put: Callable[[Any], None], drop: Callable[[Any], None]) -> _Changed:
    """Changes of a kind whose objects are put, and dropped as they were last."""

    def changed(_key: informer.Key, old: Any, new: Any) -> None:
        if new is not None:
            put(new)
        elif old is not None:
            drop(old)

    return changed
