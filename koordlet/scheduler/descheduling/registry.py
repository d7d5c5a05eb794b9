"""The strategies by the names of both peers, and where each takes part.

Covers: the list. Does not cover: configurations that name them (``configuration``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from koordlet.scheduler.descheduling.fields import Fields
from koordlet.scheduler.descheduling.round import DeschedulingStrategy
from koordlet.scheduler.descheduling.strategies.anti_affinity import (
    RemovePodsViolatingInterPodAntiAffinity,
)
from koordlet.scheduler.descheduling.strategies.better_affinity import BetterAffinity
from koordlet.scheduler.descheduling.strategies.custom_priority import CustomPriority
from koordlet.scheduler.descheduling.strategies.duplicates import RemoveDuplicates
from koordlet.scheduler.descheduling.strategies.fragmentation_aware import FragmentationAware
from koordlet.scheduler.descheduling.strategies.interference import Interference
from koordlet.scheduler.descheduling.strategies.low_node_load import LowNodeLoad
from koordlet.scheduler.descheduling.strategies.node_rules import (
    RemovePodsViolatingNodeAffinity,
    RemovePodsViolatingNodeTaints,
)
from koordlet.scheduler.descheduling.strategies.pod_states import (
    PodLifeTime,
    RemoveFailedPods,
    RemovePodsHavingTooManyRestarts,
)
from koordlet.scheduler.descheduling.strategies.poor_service import PoorService
from koordlet.scheduler.descheduling.strategies.reserved_resources import ReservedResources
from koordlet.scheduler.descheduling.strategies.scale_down_bin_pack import ScaleDownBinPack
from koordlet.scheduler.descheduling.strategies.topology_spread import (
    RemovePodsViolatingTopologySpreadConstraint,
)
from koordlet.scheduler.descheduling.strategies.utilization import (
    HighNodeUtilization,
    LowNodeUtilization,
)

Factory = Callable[[Fields], DeschedulingStrategy]

DESCHEDULE: Mapping[str, Factory] = {
    strategy.name: strategy
    for strategy in (
        *(Interference, PodLifeTime, RemoveFailedPods, RemovePodsHavingTooManyRestarts),
        *(PoorService, RemovePodsViolatingInterPodAntiAffinity),
        *(RemovePodsViolatingNodeAffinity, RemovePodsViolatingNodeTaints),
    )
}
BALANCE: Mapping[str, Factory] = {
    strategy.name: strategy
    for strategy in (
        *(CustomPriority, FragmentationAware, ScaleDownBinPack),
        *(HighNodeUtilization, LowNodeLoad, LowNodeUtilization, RemoveDuplicates),
        *(RemovePodsViolatingTopologySpreadConstraint, ReservedResources, BetterAffinity),
    )
}
#: Runs in each profile that does not disable it, at the end of this point, and only shows.
ALWAYS = "balance", ReservedResources.name
#: By extension point.
POINTS: Mapping[str, Mapping[str, Factory]] = {"deschedule": DESCHEDULE, "balance": BALANCE}
STRATEGIES: Mapping[str, Factory] = {**DESCHEDULE, **BALANCE}
