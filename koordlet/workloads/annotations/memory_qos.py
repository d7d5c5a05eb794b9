"""``memoryQOS``: a pod's own protection and throttling of memory.

Bounds: percents 0-100, ``wmarkMinAdj`` -25-50, ``wmarkScalePermill`` 1-1000, as the peer's webhook
has them; ``priority`` 0-12 is what the kernels with that file take.
"""

from __future__ import annotations

from koordlet.kubeapi import shapes
from koordlet.model import strategies

KEY = "koordinator.sh/memoryQOS"

_PERCENT = shapes.integer(0, 100)
_SWITCH = shapes.integer(0, 1)

#: Those that the node's classes have as well.
FIELDS: shapes.Fields = {
    "enable": ("enable", shapes.boolean),
    "min_limit_percent": ("minLimitPercent", _PERCENT),
    "low_limit_percent": ("lowLimitPercent", _PERCENT),
    "throttling_percent": ("throttlingPercent", _PERCENT),
    "wmark_ratio": ("wmarkRatio", _PERCENT),
    "wmark_scale_permill": ("wmarkScalePermill", shapes.integer(1, 1000)),
    "wmark_min_adj": ("wmarkMinAdj", shapes.integer(-25, 50)),
    "priority_enable": ("priorityEnable", _SWITCH),
    "priority": ("priority", shapes.integer(0, 12)),
    "oom_kill_group": ("oomKillGroup", _SWITCH),
    "page_cache_limit_enable": ("pageCacheLimitEnable", shapes.boolean),
    "page_cache_limit_size": ("pageCacheLimitSize", shapes.units),
    "page_cache_limit_percent": ("pageCacheLimitPercent", _PERCENT),
}

_POLICY: shapes.Fields = {"policy": ("policy", shapes.choice("default", "none", "auto"))}
_MEMORY = shapes.record(strategies.MemoryQos, {**_POLICY, **FIELDS})


def decode(text: str, problems: list[str]) -> strategies.MemoryQos:
    """The policy, and the fields that the pod overlays."""
    return _MEMORY(shapes.parse(text), problems)
