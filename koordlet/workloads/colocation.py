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
from collections.abc import Callable, Mapping
from typing import Any

from koordlet.kubeapi import shapes
from koordlet.model import strategies
from koordlet.workloads import strategy_reader

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
    complaints = shapes.Problems()
    settings = of_words(words_of_node(labels, notes, complaints), complaints)
    problems += complaints
    return settings


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
        raise ValueError(f"expected a fraction such as 0.6, found {shapes.shown(ratio)}")
    return int(part * 100)
