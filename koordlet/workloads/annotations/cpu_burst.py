"""``cpuBurst``: a pod's own strategy of CPU burst, over the node's.

The bounds are those that the peer's webhook enforces on the node's strategy.
"""

from __future__ import annotations

from koordlet.kubeapi import shapes
from koordlet.model import strategies

KEY = "koordinator.sh/cpuBurst"

FIELDS: shapes.Fields = {
    "policy": ("policy", shapes.choice("none", "cpuBurstOnly", "cfsQuotaBurstOnly", "auto")),
    "cpu_burst_percent": ("cpuBurstPercent", shapes.integer(1, 10_000)),
    "cfs_quota_burst_percent": ("cfsQuotaBurstPercent", shapes.integer(100)),
    "cfs_quota_burst_period_seconds": ("cfsQuotaBurstPeriodSeconds", shapes.integer(-1)),
}

_BURST = shapes.record(strategies.CpuBurst, FIELDS)


def decode(text: str, problems: list[str]) -> strategies.CpuBurst:
    """The fields that the pod overlays."""
    return _BURST(shapes.parse(text), problems)
