"""The kubelet's maps of thresholds, as ``policies.node_pressure`` spells them.

Covers: from the section to the texts that ``model.thresholds`` reads.
Does not cover: the section (``node_pressure_section``), the kubelet's own file (``kubelet_file``).
"""

from __future__ import annotations

import typing

from koordlet.model import thresholds

if typing.TYPE_CHECKING:
    from koordlet.config import node_pressure_section


def of(section: node_pressure_section.NodePressure) -> thresholds.Texts:
    """The kubelet's four maps, and what counts beside them."""
    return thresholds.Texts(
        hard=section.eviction_hard,
        soft=section.eviction_soft or {},
        soft_grace=section.eviction_soft_grace_period or {},
        reclaim=section.eviction_minimum_reclaim or {},
        merge_defaults=section.merge_default_eviction_settings,
        enforce_pods="pods" in section.enforce_node_allocatable,
    )
