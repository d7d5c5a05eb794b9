"""Plugins of others that judge one node at a time.

Covers: the adapter to columns. Does not cover: finding them (``registry``).

Slow by nature: one call for each node and pod. An error in such a plugin refuses the node, with the
error as its reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from koordlet.scheduler.columns import Columns
from koordlet.scheduler.framework import MAX_SCORE, Filter, Kind, Plugin, Score, Verdict
from koordlet.scheduler.pods import PodClass
from koordlet.scheduler.vectors import Ints, Rows


def adapt(name: str, foreign: Any) -> type[Plugin]:
    """A plugin class around ``foreign``, which is made with the profile's arguments."""

    class Adapted(Plugin):
        """A foreign plugin."""

        def __init__(self, args: Mapping[str, Any]) -> None:
            super().__init__(args)
            self._foreign = foreign(args)

        def filter(self, sort: PodClass, columns: Columns) -> Filter | None:
            return _Asked(self._foreign, sort, columns) if hasattr(foreign, "filter") else None

        def score(self, sort: PodClass, columns: Columns) -> Score | None:
            return _Rated(self._foreign, sort, columns) if hasattr(foreign, "score") else None

    Adapted.name = name
    return Adapted


class _Asked(Filter):
    kind = Kind.CONTEXT

    def __init__(self, foreign: Any, sort: PodClass, columns: Columns) -> None:
        self._foreign, self._sort, self._columns = foreign, sort, columns
        self._reasons: list[str] = [""]

    def codes(self, rows: Rows) -> Ints:
        return np.array([self._code(row) for row in rows.tolist()], np.int64)

    def _code(self, row: int) -> int:
        node = self._columns.nodes[row]
        if node is None:
            return 0
        try:
            reason = str(self._foreign.filter(self._sort, node) or "")
        except Exception as error:  # noqa: BLE001 -- foreign code must not stop the scheduler
            reason = f"plugin failed: {error}"
        if reason not in self._reasons:
            self._reasons.append(reason)
        return self._reasons.index(reason)

    def verdict(self, code: int) -> Verdict:
        return Verdict((self._reasons[code],), resolvable=True)


class _Rated(Score):
    kind = Kind.CONTEXT
    normalised = True

    def __init__(self, foreign: Any, sort: PodClass, columns: Columns) -> None:
        self._foreign, self._sort, self._columns = foreign, sort, columns

    def raw(self, rows: Rows) -> Ints:
        return np.zeros(rows.size, np.int64)

    def constant(self, raw: Ints) -> int | None:  # noqa: ARG002 -- asked for each pod
        return None

    def final(self, raw: Ints, rows: Rows) -> Ints:  # noqa: ARG002
        return np.array([self._rate(row) for row in rows.tolist()], np.int64)

    def _rate(self, row: int) -> int:
        try:
            rated = int(self._foreign.score(self._sort, self._columns.nodes[row]))
        except Exception:  # noqa: BLE001 -- foreign code must not stop the scheduler
            return 0
        return max(0, min(MAX_SCORE, rated))
