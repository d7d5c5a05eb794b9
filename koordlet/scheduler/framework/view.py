"""What one class of pods sees of the cluster: kept between pods, brought up to date by row.

Covers: which nodes pass what looks at one node alone, their score, the best; and the way from
there through contextual filters and normalised scores. Does not cover: the plugins themselves.

The cost of one pod: the rows that changed since the class was last asked (a handful of operations
on few elements), plus, without contextual plugins, the two-level maximum, which hardly grows with
the nodes. Contextual and normalised plugins add a few passes over all nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from koordlet.model.record import dataclass
from koordlet.scheduler import framework
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.vectors import Best, Bools, Ints, Rows, compact
from koordlet.scheduler.framework import Filter, Kind, Score, Verdict
from koordlet.scheduler.framework.profile import Profile
from koordlet.scheduler.objects.pods import PodClass

#: Up to so many rows are cheaper one by one than as arrays.
_FEW = 6


@dataclass(frozen=True, slots=True)
class Scored:
    """Feasible nodes and their total scores."""

    rows: Rows
    totals: Ints


def first(scored: Scored) -> int:
    """The row of the highest total, the lowest of equals; -1 where there is none."""
    return int(scored.rows[int(scored.totals.argmax())]) if scored.rows.size else -1


def _idle(part: Filter | Score) -> bool:
    """Whether a filter or a score makes no difference at this moment."""
    return bool(getattr(part, "idle", False))


class View:
    """Filters and scores of one class under one profile, kept up to date."""

    def __init__(self, pod_class: PodClass, columns: Columns, profile: Profile) -> None:
        self.pod_class = pod_class
        self._columns = columns
        self._profile = profile
        self._generation = -1
        self._at = 0
        self.refused: tuple[str, framework.RefusedError] | None = None
        self.filters: list[tuple[str, Filter]] = []
        self.scores: list[tuple[str, int, Score]] = []
        self.outside = ""

    @property
    def is_built(self) -> bool:
        """Whether its filters are those of the present nodes."""
        return self._generation == self._columns.generation

    def refresh(self) -> None:
        """Catch up with the columns."""
        columns = self._columns
        if not self.is_built:
            self._build()
            return
        if self._at == columns.log.end or self.refused is not None:
            return
        changed = columns.log.since(self._at)
        if changed is None or len(changed) > columns.size // 4:
            self._measure(columns.every, whole=True)
        elif len(changed) <= _FEW:
            for row in set(changed):
                self._measure_one(row)
        else:
            self._measure(np.array(sorted(set(changed)), np.intp), whole=False)
        self._at = columns.log.end

    def _build(self) -> None:
        columns = self._columns
        self._generation, self._at, self.refused = columns.generation, columns.log.end, None
        self._every = columns.every
        self.filters, self.scores = [], []
        self._static, self.outside = columns.alive, ""
        self._narrowed: list[str] = []
        self._only: frozenset[str] | None = None
        for plugin in self._profile.filters:
            try:
                self._narrow(plugin.name, plugin.names(self.pod_class))
                made = plugin.filter(self.pod_class, columns)
            except framework.RefusedError as refusal:
                self.refused = plugin.name, refusal
                return
            if made is not None:
                self.filters.append((plugin.name, made))
        for plugin, weight in self._profile.scores:
            score = plugin.score(self.pod_class, columns)
            if score is not None:
                self.scores.append((plugin.name, weight, score))
        self._keep()

    def _narrow(self, name: str, only: frozenset[str] | None) -> None:
        """Narrow to the nodes that plugins name, even where they name none that exists."""
        if only is None:
            return
        self._narrowed.append(name)
        self._only = only if self._only is None else self._only & only
        named = " ".join(self._narrowed)
        if not self._only:
            several = len(self._narrowed) > 1
            who = f"plugin(s) [{named}] simultaneously" if several else f"plugin {named}"
            raise framework.RefusedError(f"node(s) didn't satisfy {who}")
        self.outside = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(self._narrowed))}]"
        inside = np.zeros(self._columns.size, np.bool_)
        inside[[self._columns.rows[name] for name in only if name in self._columns.rows]] = True
        self._static &= inside

    def _keep(self) -> None:
        """The static part, then the rows."""
        self._inside = self._static
        points, arrays = 0, []
        self._varying: list[tuple[int, Score, Ints]] = []
        for _, filtering in self.filters:
            if filtering.kind is Kind.STATIC:
                self._static = self._static & filtering.allowed(self._every)
        for _, weight, score in self.scores:
            static = score.kind is Kind.STATIC
            if not static and not score.normalised:
                continue
            raw = score.raw(self._every)
            constant = score.constant(raw[self._static]) if static and score.normalised else None
            if constant is not None:
                points += weight * constant
            elif score.normalised:
                self._varying.append((weight, score, raw))
            else:
                arrays.append(weight * raw)
        # One number for all nodes where no score tells them apart.
        alike = np.broadcast_to(np.int64(points), self._columns.size)
        self._fixed = compact(sum(arrays, alike)) if arrays else alike
        self._loaded = [filtering for _, filtering in self.filters if filtering.kind is Kind.LOAD]
        self._context = [member for _, member in self.filters if member.kind is Kind.CONTEXT]
        self._moving = [
            (weight, score)
            for _, weight, score in self.scores
            if score.kind is Kind.LOAD and not score.normalised
        ]
        self._measure(self._every, whole=True)

    def _measure(self, rows: Rows, *, whole: bool) -> None:
        """Filters and scores that look at a node and its own pods, for some rows."""
        passing = self._static[rows]
        for filtering in self._loaded:
            passing = passing & filtering.allowed(rows)
        totals = self._fixed[rows].astype(np.int64)
        for weight, score in self._moving:
            raw = score.raw(rows)
            totals = totals + (raw if weight == 1 else weight * raw)
        totals = np.where(passing, totals, -1)
        if whole:
            self._best = Best(totals)
            self._totals = self._best.values
        else:
            self._best.update(rows, totals)

    def _measure_one(self, row: int) -> None:
        """The same for one row, in plain integers: arrays of one element cost ten times that."""
        total = -1
        if self._static[row] and all(filtering.allows(row) for filtering in self._loaded):
            total = int(self._fixed[row])
            for weight, score in self._moving:
                total += weight * score.one(row)
        self._best.put(row, total)

    def _active(self) -> tuple[list[Filter], list[tuple[int, Score, Ints]]]:
        filters = [filtering for filtering in self._context if not _idle(filtering)]
        return filters, [varying for varying in self._varying if not _idle(varying[1])]

    def best(self, shunned: Collection[int] = ()) -> int:
        """The row of the best node, the lowest of equals; -1 where none is feasible."""
        filters, varying = self._active()
        if not shunned and not filters and not varying:
            return self._best.row()
        if not varying:
            # Filters only take nodes away: the best of all that passes them stays the best.
            row = self._best.row()
            if not shunned and all(
                each.pointwise and (row < 0 or each.allows(row)) for each in filters
            ):
                return row
            totals = np.where(self._passing(filters, shunned), self._totals, -1)
            row = int(totals.argmax()) if totals.size else -1
            return row if row >= 0 and totals[row] >= 0 else -1
        if not shunned and not filters and len(varying) == 1 and hasattr(varying[0][1], "sparse"):
            return self._best_of_few(varying[0][0], varying[0][1])
        return first(self.scored(shunned=shunned))

    def _best_of_few(self, weight: int, score: Any) -> int:
        """The same where one score varies, and is nothing but on a few rows and never negative.

        The best row without it is the best of all others, or one of the few itself.
        """
        row = self._best.row()
        few: Rows = score.sparse()
        few = few[self._totals[few] >= 0]
        if not few.size:
            return row
        totals = self._totals[few] + weight * score.final(np.zeros(few.size, np.int64), few)
        place = int(totals.argmax())
        chosen, best = int(few[place]), int(totals[place])
        alone = int(self._totals[row])
        return min(chosen, row) if best == alone else (chosen if best > alone else row)

    def _passing(self, filters: list[Filter], shunned: Collection[int] = ()) -> Bools:
        passing = self._totals >= 0
        passing[list(shunned)] = False
        for filtering in filters:
            passing = filtering.among(passing, self._every)
        return passing

    def scored(self, only: Rows | None = None, shunned: Collection[int] = ()) -> Scored:
        """Every feasible node (of these, but not of those) and its total."""
        filters, varying = self._active()
        rows = np.flatnonzero(self._passing(filters, shunned))
        if only is not None:
            rows = rows[np.isin(rows, only)]
        totals = self._totals[rows]
        for weight, score, raw in varying:
            totals = totals + weight * score.final(raw[rows], rows)
        return Scored(rows, totals)

    def compared(self, rows: Iterable[int]) -> list[int]:
        """Those of these rows that are feasible, where each counts in the scores of the others."""
        if self.refused is not None:
            return []
        filters, varying = self._active()
        if not varying:
            return []
        passing = self._passing(filters)
        return [row for row in rows if passing[row]]

    def late(self) -> Rows:
        """The rows that a sample of the feasible nodes takes last."""
        several = [score.late() for _, score, _ in self._varying]
        return np.concatenate([np.zeros(0, np.intp), *several])

    def having_a_say(self) -> list[Filter]:
        """The filters that may refuse a node at this moment."""
        return [filtering for _, filtering in self.filters if not _idle(filtering)]

    def passes(self, row: int, but: Filter | None = None) -> bool:
        """Whether one node passes all filters (but one) now, whatever is remembered."""
        return bool(self._inside[row]) and all(
            filtering.allows(row) for filtering in self.having_a_say() if filtering is not but
        )

    def verdict(self, row: int) -> Verdict | None:
        """The first refusal of one node."""
        rows = np.array([row], np.intp)
        if not self._inside[row]:
            return self.verdicts(rows)[0]
        for name, filtering in self.filters:
            if not (_idle(filtering) or filtering.allows(row)):
                return replace(filtering.verdict(int(filtering.codes(rows)[0])), plugin=name)
        return None

    def verdicts(self, rows: Rows) -> list[Verdict | None]:
        """The first refusal of each of these nodes; ``None`` where all pass."""
        verdicts: list[Verdict | None] = [None] * rows.size
        left = np.ones(rows.size, np.bool_)
        if self.outside:
            outside = Verdict((self.outside,), resolvable=False, plugin=self._narrowed[0])
            for place in np.flatnonzero(~self._inside[rows]).tolist():
                verdicts[place] = outside
            left &= self._inside[rows]
        for name, filtering in self.filters:
            # What the filters before have refused is not asked: a search there may fail for all.
            asked = np.flatnonzero(left)
            codes = filtering.codes(rows[asked])
            places = asked[codes != 0]
            refused = codes[codes != 0].tolist()
            known = {code: replace(filtering.verdict(code), plugin=name) for code in set(refused)}
            for place, code in zip(places.tolist(), refused, strict=True):
                verdicts[place] = known[code]
            left[places] = False
        return verdicts
