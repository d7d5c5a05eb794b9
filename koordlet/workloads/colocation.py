"""A strategy of co-location: the fields of ``colocation-config``, and what a node says for itself.

Covers: the fields, the node's annotation of the same form, its four labels.
Does not cover: the other keys of the map (``sloconfig``), the sums
(``policy.best_effort.batch_resources``).

Rules, as the peer's manager has them:
1. Over the map lies the node's annotation, field by field; over that lie its labels.
2. A label is a part, ``0.6`` for 60 %, cut to whole percents. One that is no number, or negative,
   is as if it were missing, and said; where the agent knows an earlier one, that holds
   (``strategy_holding``).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

from koordlet.model import strategies
from koordlet.workloads import shapes

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
    complaints = shapes.Problems()
    found = of_words(words_of_node(labels, notes, complaints), complaints)
    problems += complaints
    return found


def words_of_node(
    labels: Mapping[str, str], notes: Mapping[str, str], problems: shapes.Problems
) -> dict[str, object]:
    """The node's own words by key: the object of the annotation, the texts of the labels."""
    words: dict[str, object] = {key: labels[key] for key in LABELS if key in labels}
    if ANNOTATION in notes:
        try:
            words[ANNOTATION] = shapes.parse(notes[ANNOTATION])
        except ValueError as error:
            problems.append(f"annotation {ANNOTATION}: {error}")
            problems.unread.append((ANNOTATION,))
    return words


def of_words(
    words: Mapping[str, object], problems: shapes.Problems
) -> strategies.Colocation | None:
    """Settings of the node's own words; ``None`` for none."""
    layers: list[strategies.Colocation] = []
    if ANNOTATION in words:
        inner = shapes.Problems()
        try:
            layers.append(read(words[ANNOTATION], inner))
        except ValueError as error:
            inner.append(str(error))
            inner.unread.append(())
        problems.extend(f"annotation {ANNOTATION}: {problem}" for problem in inner)
        problems.unread.extend((ANNOTATION, *path) for path in inner.unread)
    for key, field in LABELS.items():
        if key in words:
            try:
                percent: dict[str, Any] = {field: _percent(words[key])}
                layers.append(strategies.Colocation(**percent))
            except ValueError as error:
                problems.append(f"label {key}: {error}")
                problems.unread.append((key,))
    return functools.reduce(strategies.overlay, layers) if layers else None


def _percent(ratio: object) -> int:
    try:
        part = float(ratio) if isinstance(ratio, str) and "_" not in ratio else math.nan
    except ValueError:
        part = math.nan
    if not 0 <= part <= _MOST:
        msg = f"expected a fraction such as 0.6, found {shapes.shown(ratio)}"
        raise ValueError(msg)
    return int(part * 100)
