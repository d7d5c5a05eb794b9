"""A strategy of co-location: the fields of ``colocation-config``, and what a node says for itself.

Covers: the fields, the node's annotation of the same form, its four labels.
Does not cover: the other keys of the map (``sloconfig``), the sums
(``policy.best_effort.batch_resources``).

Rules, as the peer's manager has them:
1. Over the map lies the node's annotation, field by field; over that lie its labels.
2. A label is a part, ``0.6`` for 60 %, cut to whole percents. One that is no number, or negative,
   is as if it were missing, and said.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

from koordlet.kubeapi import shapes
from koordlet.model import strategies

#: In the configuration map.
KEY = "colocation-config"
ANNOTATION = "node.koordinator.sh/colocation-strategy"
#: Label to field.
LABELS: Mapping[str, str] = {
    "node.koordinator.sh/cpu-reclaim-ratio": "cpu_reclaim_threshold_percent",
    "node.koordinator.sh/memory-reclaim-ratio": "memory_reclaim_threshold_percent",
    "node.koordinator.sh/mid-static-cpu-reserved-ratio": "mid_static_cpu_reserved_percent",
    "node.koordinator.sh/mid-static-memory-reserved-ratio": "mid_static_memory_reserved_percent",
}
#: Beyond a thousand times the node nobody means it.
_MOST = 1000.0

_COUNT = shapes.integer(0)
_PERCENT = shapes.integer(0, 100)
_SECONDS = shapes.integer(1)
_CALCULATE = shapes.choice("usage", "request", "maxUsageRequest")
_FIELDS: shapes.Fields = {
    "enable": ("enable", shapes.boolean),
    "metric_aggregate_duration_seconds": ("metricAggregateDurationSeconds", _SECONDS),
    "metric_report_interval_seconds": ("metricReportIntervalSeconds", _SECONDS),
    "metric_memory_collect_policy": (
        "metricMemoryCollectPolicy",
        shapes.choice("usageWithoutPageCache", "usageWithPageCache", "usageWithHotPageCache"),
    ),
    "cpu_reclaim_threshold_percent": ("cpuReclaimThresholdPercent", _COUNT),
    "cpu_calculate_policy": ("cpuCalculatePolicy", _CALCULATE),
    "memory_reclaim_threshold_percent": ("memoryReclaimThresholdPercent", _COUNT),
    "memory_calculate_policy": ("memoryCalculatePolicy", _CALCULATE),
    "degrade_time_minutes": ("degradeTimeMinutes", _SECONDS),
    "update_time_threshold_seconds": ("updateTimeThresholdSeconds", _SECONDS),
    "resource_diff_threshold": ("resourceDiffThreshold", shapes.number(0, 1)),
    "mid_cpu_threshold_percent": ("midCPUThresholdPercent", _PERCENT),
    "mid_memory_threshold_percent": ("midMemoryThresholdPercent", _PERCENT),
    "mid_unallocated_percent": ("midUnallocatedPercent", _PERCENT),
    "mid_reclaim_mode": ("midReclaimMode", shapes.choice("default", "static")),
    "mid_static_cpu_reserved_percent": ("midStaticCPUReservedPercent", _PERCENT),
    "mid_static_memory_reserved_percent": ("midStaticMemoryReservedPercent", _PERCENT),
    "batch_cpu_threshold_percent": ("batchCPUThresholdPercent", _COUNT),
    "batch_memory_threshold_percent": ("batchMemoryThresholdPercent", _COUNT),
}
#: Of the same strategy, for other parts of the peer: read past, not unknown.
_OTHERS = frozenset(
    key.casefold() for key in ("nodeConfigs", "metricAggregatePolicy", "extensions")
)
_READ = shapes.record(strategies.Colocation, _FIELDS)


def read(value: object, problems: list[str]) -> strategies.Colocation:
    """The fields of one strategy."""
    body = shapes.mapping(value)
    return _READ({key: v for key, v in body.items() if key.casefold() not in _OTHERS}, problems)


def of_node(
    labels: Mapping[str, str], notes: Mapping[str, str], problems: list[str]
) -> strategies.Colocation | None:
    """Settings of the node's own labels and annotations; ``None`` for none."""
    said: list[strategies.Colocation] = []
    inner: list[str] = []
    if ANNOTATION in notes:
        try:
            said.append(read(shapes.parse(notes[ANNOTATION]), inner))
        except ValueError as error:
            inner.append(str(error))
    problems.extend(f"annotation {ANNOTATION}: {one}" for one in inner)
    for key, field in LABELS.items():
        if key in labels:
            try:
                percent: dict[str, Any] = {field: _percent(labels[key])}
                said.append(strategies.Colocation(**percent))
            except ValueError as error:
                problems.append(f"label {key}: {error}")
    return functools.reduce(strategies.overlay, said) if said else None


def _percent(said: str) -> int:
    try:
        part = math.nan if "_" in said else float(said)
    except ValueError:
        part = math.nan
    if not 0 <= part <= _MOST:
        msg = f"expected a fraction such as 0.6, found {shapes.shown(said)}"
        raise ValueError(msg)
    return int(part * 100)
