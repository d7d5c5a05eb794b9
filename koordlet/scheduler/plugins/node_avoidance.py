"""NodeAvoidance: nodes that a pod's workload should rather not come to again.

Covers: points for each node, which nodes a sample begins without. Does not cover: the entries
(``disruption.avoidance_book``), who writes them.

A node has 100 points, less the weight of its live entry about the pod's workload. It is never
refused: a pod that fits nowhere else runs there all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from koordlet.scheduler import framework
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.events import ActionType
from koordlet.scheduler.cluster.vectors import Ints, Rows
from koordlet.scheduler.disruption import avoidance_book
from koordlet.scheduler.disruption.avoidance_book import AvoidanceBook
from koordlet.scheduler.objects.pods import PodClass


class NodeAvoidance(framework.Plugin):
    """Prefers nodes that the pod's workload does not avoid."""

    name = "NodeAvoidance"
    listens = ActionType(0)  # it refuses nobody

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(args)
        #: Given by whoever reads the objects; ``None``: nobody does.
        self.book: AvoidanceBook | None = None

    def score(self, pod_class: PodClass, columns: Columns) -> framework.Score | None:
        if self.book is None or not self.book.named(pod_class):
            return None
        return _Avoided(self.book, pod_class, columns)

    def outlook(self, pod_class: PodClass, columns: Columns, row: int) -> str:
        node = columns.nodes[row]
        entry = None
        if self.book is not None and node is not None:
            entry = self.book.of(pod_class).get(node.name)
        return "" if entry is None or node is None else avoidance_book.sentence(node.name, entry)


class _Avoided(framework.ContextScore):
    """Asked at each choice: an entry ends at its moment, and nothing else tells."""

    def __init__(self, book: AvoidanceBook, pod_class: PodClass, columns: Columns) -> None:
        self._book, self._pod_class, self._columns = book, pod_class, columns

    @property
    def idle(self) -> bool:
        """Whether no entry is live."""
        return not self._book.of(self._pod_class)

    def late(self) -> Rows:
        rows = self._columns.rows
        avoided = [rows[node] for node in self._book.of(self._pod_class) if node in rows]
        return np.array(avoided, np.intp)

    def final(self, raw: Ints, rows: Rows) -> Ints:
        points = np.full(self._columns.size, framework.MAX_SCORE, np.int64)
        for node, entry in self._book.of(self._pod_class).items():
            row = self._columns.rows.get(node)
            if row is not None:
                points[row] -= entry.weight
        return points[rows]
