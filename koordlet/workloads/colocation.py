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
from collections.abc import Callable, Mapping
from typing import Any

from koordlet.model import strategies
from koordlet.workloads import shapes, strategy_reader

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
#: Of the same strategy, for other parts of the peer: read past, not unknown.
_OTHERS = frozenset(
    key.casefold() for key in ("nodeConfigs", "metricAggregatePolicy", "extensions")
)
_READ: Callable[[object, list[str]], strategies.Colocation] = strategy_reader.of(
    strategies.Colocation
)


def read(value: object, problems: list[str]) -> strategies.Colocation:
    """The fields of one strategy."""
    body = shapes.mapping(value)
    return _READ({key: v for key, v in body.items() if key.casefold() not in _OTHERS}, problems)


def of_node(
    labels: Mapping[str, str], notes: Mapping[str, str], problems: list[str]
) -> strategies.Colocation | None:
    """Settings of the node's own labels and annotations; ``None`` for none."""
    layers: list[strategies.Colocation] = []
    inner: list[str] = []
    if ANNOTATION in notes:
        try:
            layers.append(read(shapes.parse(notes[ANNOTATION]), inner))
        except ValueError as error:
            inner.append(str(error))
    problems.extend(f"annotation {ANNOTATION}: {problem}" for problem in inner)
    for key, field in LABELS.items():
        if key in labels:
            try:
                percent: dict[str, Any] = {field: _percent(labels[key])}
                layers.append(strategies.Colocation(**percent))
            except ValueError as error:
                problems.append(f"label {key}: {error}")
    return functools.reduce(strategies.overlay, layers) if layers else None


def _percent(text: str) -> int:
    try:
        part = math.nan if "_" in text else float(text)
    except ValueError:
        part = math.nan
    if not 0 <= part <= _MOST:
        msg = f"expected a fraction such as 0.6, found {shapes.shown(text)}"
        raise ValueError(msg)
    return int(part * 100)
