"""How full a cluster is after a simulation: for whoever plans its size. Pure.

Covers: placed and pending pods, requested shares, scattered room, the largest pods that still fit.
Does not cover: printing (``cli.sim_report``), the picture (``picture``).

Rules:
1. Nodes that take no new pods (cordoned, not ready) are counted and have no room. The largest pods
   have no tolerations, unless no node is without taints that they would need.
2. Scattered is the part of the room for pods of median size that they would fit into if all of it
   were on one node, and do not because it is on several: 0 is none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from koordlet.scheduler.cluster.columns import FIXED, Columns
from koordlet.scheduler.cluster.vectors import Ints
from koordlet.scheduler.objects import requests
from koordlet.scheduler.objects.pods import Pod

#: Key in the document to resource: CPU is in thousandths.
NAMES = {"cpuMilli": requests.CPU, "memoryBytes": requests.MEMORY, "pods": requests.PODS}
_KEYS = tuple(NAMES)
_ROWS = [FIXED.index(name) for name in NAMES.values()]
#: Where a node's room is in the shapes below.
_CPU, _MEMORY, _PODS = range(3)
#: The effect of a taint that keeps no pod away.
_PREFERRED = "PreferNoSchedule"


def summary(
    columns: Columns,
    pods: Sequence[Pod],
    placements: Sequence[Mapping[str, Any]],
    pending: Sequence[Mapping[str, str]],
) -> dict[str, Any]:
    """The document; ``pods`` are those that were to be placed."""
    alive = [row for row, node in enumerate(columns.nodes) if node is not None]
    open_ = [row for row in alive if _open(columns, row)]
    allocatable, requested = (
        table[:, alive][_ROWS] for table in (columns.allocatable, columns.requested)
    )
    free = np.maximum(columns.allocatable[:, open_][_ROWS] - columns.requested[:, open_][_ROWS], 0)
    median = _median(columns, pods)
    return {
        "nodes": {"all": len(alive), "open": len(open_)},
        "placed": len(placements),
        "pending": len(pending),
        "pendingByReason": reasons(pending),
        "utilisation": {
            name: {
                "requested": int(requested[n].sum()),
                "allocatable": int(allocatable[n].sum()),
                "percent": _percent(int(requested[n].sum()), int(allocatable[n].sum())),
            }
            for n, name in enumerate(_KEYS)
        },
        "scattered": {
            "percent": _scattered(free, median),
            "ofPod": dict(zip(_KEYS[:2], map(int, median), strict=True)),
        },
        "largestPod": [
            _largest(columns, open_, free, first, second)
            for first, second in ((_CPU, _MEMORY), (_MEMORY, _CPU))
            if open_
        ],
    }


def reasons(pending: Iterable[Mapping[str, str]]) -> list[dict[str, Any]]:
    """Pods that stay pending, grouped by why; the largest group first."""
    groups: dict[str, list[str]] = {}
    for waiting in pending:
        groups.setdefault(waiting["message"], []).append(waiting["pod"])
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return [{"message": message, "pods": pods} for message, pods in ordered]


def _open(columns: Columns, row: int) -> bool:
    node = columns.nodes[row]
    return node is not None and node.ready and not node.unschedulable


def _percent(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 1) if whole else None


def _median(columns: Columns, pods: Sequence[Pod]) -> tuple[float, float]:
    """CPU and memory of the median pod, of those on nodes and of those that were to be placed."""
    placed = (pod for several in columns.pods for pod in several.values())
    counts = Counter(pod.pod_class for pod in placed)
    counts.update(pod.pod_class for pod in pods)
    amounts = []
    for name in (requests.CPU, requests.MEMORY):
        sizes = sorted((kind.requests.real.get(name, 0), count) for kind, count in counts.items())
        middle, passed = sum(count for _, count in sizes) / 2, 0
        amounts.append(0.0)
        for size, count in sizes:
            passed += count
            if passed >= middle:
                amounts[-1] = float(size)
                break
    return amounts[0], amounts[1]


def _scattered(free: Ints, median: tuple[float, float]) -> float | None:
    """Rule 2; ``None`` where a median pod asks for nothing, or fits nowhere anyway."""
    wanted = [(n, amount) for n, amount in enumerate(median) if amount > 0]
    if not wanted or not free.size:
        return None
    together = min([int(free[_PODS].sum()), *(int(free[n].sum() // much) for n, much in wanted)])
    apart = np.min([free[_PODS], *(free[n] // much for n, much in wanted)], axis=0).sum()
    return round(100 * (1 - int(apart) / together), 1) if together else None


def _largest(
    columns: Columns, rows: Sequence[int], free: Ints, first: int, second: int
) -> dict[str, Any]:
    """Most of one amount on a node that takes another pod (rule 1), then of the other."""
    plain = [
        all(taint.effect == _PREFERRED for taint in columns.chosen(row).taints) for row in rows
    ]
    place = int(np.lexsort((free[second], free[first], plain, free[_PODS] > 0))[-1])
    node = columns.chosen(rows[place])
    amounts = {_KEYS[n]: int(free[n][place]) if free[_PODS][place] else 0 for n in (_CPU, _MEMORY)}
    return {"by": _KEYS[first], "node": node.name, **amounts}
