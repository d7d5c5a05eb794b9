"""Every plugin by name: ours, those of others, and those of the peers that we know and lack.

Covers: names, the default order and weights. Does not cover: what a profile makes of them.

Plugins of others are found by the entry point group ``koordlet.scheduler.plugins``: a subclass of
``framework.Plugin`` over columns, or any class that is asked node by node (``external``).
"""

from __future__ import annotations

import importlib.metadata
from typing import Any

from koordlet.scheduler import framework
from koordlet.scheduler.plugins import (
    balanced_allocation,
    capacity_scheduling,
    coscheduling,
    deviceshare,
    dynamic_resources,
    elastic_quota,
    external,
    inter_pod_affinity,
    load_aware,
    node,
    node_avoidance,
    numa,
    pod,
    ports,
    pressure,
    reservation,
    resource_preferences,
    resources,
    scheduling_hint,
    topology_spread,
    volume_binding,
    volumes,
)

#: In the order of every extension point, with the weight of the score.
DEFAULT: tuple[tuple[type[framework.Plugin], int], ...] = (
    (pod.SchedulingGates, 0),
    (coscheduling.Coscheduling, 0),
    (coscheduling.GangScheduling, 0),
    (elastic_quota.ElasticQuotaPlugin, 0),
    # Before all others, as the peer's profile has it; a reservation outweighs every other score.
    (reservation.Reservation, 5000),
    # What it says is above every preference, that of a reservation too.
    (node_avoidance.NodeAvoidance, 10_000),
    (node.NodeUnschedulable, 0),
    (node.NodeName, 0),
    (scheduling_hint.SchedulingHint, 0),
    (node.TaintToleration, 3),
    (pressure.NodePressure, 0),
    (node.NodeAffinity, 2),
    (ports.NodePorts, 0),
    (resources.NodeResourcesFit, 1),
    (load_aware.LoadAwareScheduling, 1),
    (numa.NodeNUMAResource, 1),
    (deviceshare.DeviceShare, 1),
    (volumes.VolumeRestrictions, 0),
    (volumes.NodeVolumeLimits, 0),
    (volume_binding.VolumeBinding, 0),
    (volumes.VolumeZone, 0),
    (topology_spread.PodTopologySpread, 2),
    (inter_pod_affinity.InterPodAffinity, 2),
    (dynamic_resources.DynamicResources, 2),
    (balanced_allocation.NodeResourcesBalancedAllocation, 1),
    (node.ImageLocality, 1),
    (node.NodeDeclaredFeatures, 0),
)

#: Served where a profile enables them by name.
OPTIONAL: tuple[tuple[type[framework.Plugin], int], ...] = (
    (capacity_scheduling.CapacityScheduling, 0),
    (resource_preferences.NodeResourcesFitPlus, 1),
    (resource_preferences.ScarceResourceAvoidance, 1),
)

#: Done by the queue, the preemption and the loop themselves.
BUILT_IN = frozenset({"PrioritySort", "DefaultPreemption", "DefaultBinder"})

#: Plugins of Kubernetes and of the peers that this scheduler does not have.
LACKING = frozenset({"DefaultPreBind", "PodGroupPodsCount", "TopologyPlacementGenerator"})

_GROUP = "koordlet.scheduler.plugins"


def known() -> dict[str, tuple[type[framework.Plugin], int]]:
    """Ours and those installed beside us."""
    plugins = {plugin.name: (plugin, weight) for plugin, weight in (*DEFAULT, *OPTIONAL)}
    for entry in importlib.metadata.entry_points(group=_GROUP):
        loaded: Any = entry.load()
        if not (isinstance(loaded, type) and issubclass(loaded, framework.Plugin)):
            loaded = external.adapt(entry.name, loaded)
        plugins.setdefault(entry.name, (loaded, 1))
    return plugins
