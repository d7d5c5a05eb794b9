"""Why no node takes the pods of a class: kept between pods, brought up to date by row.

Covers: the refusal of each node, how often each was given, the message.
Does not cover: single refusals (``view``), who asks (``cycle``).

Where all that has a say looks at one node and its own pods, a refusal holds until something about
that node changes: of thousands of nodes, two attempts change a handful. Else all nodes are asked.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Collection, Mapping

import numpy as np

from koordlet.model.record import dataclass
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.framework import Failure, Kind, Verdict, messages
from koordlet.scheduler.framework.view import View
from koordlet.scheduler.objects.pods import PodClass

#: Classes whose last failure is remembered, and refusals of nodes of all of them: 64 bytes each.
_LEAST, _MOST, ENTRIES = 16, 4096, 1 << 22


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """What all nodes said of a class, and up to where changes were taken in."""

    failure: Failure
    often: Mapping[Verdict, int]
    generation: int
    at: int
    #: Whether all that had a say looks at one node.
    pointwise: bool

    def changed(self, columns: Columns) -> set[int] | None:
        """The rows that may be refused otherwise by now; ``None``: all of them."""
        if not self.pointwise or self.generation != columns.generation:
            return None
        rows = columns.log.since(self.at)
        return None if rows is None else set(rows)


class Failures:
    """The last failure of each of the most recent classes."""

    def __init__(self, columns: Columns, entries: int = ENTRIES) -> None:
        self._columns = columns
        self._entries = entries
        #: And the version of the columns for which it holds.
        self._known: OrderedDict[PodClass, tuple[int, KnownFailure]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def clear(self) -> None:
        """Forget all: objects that refusals depend on have changed."""
        self._known.clear()

    def current(self, pod_class: PodClass) -> Failure | None:
        """The failure of a class, where nothing has changed since."""
        known = self._known.get(pod_class)
        return known[1].failure if known and known[0] == self._columns.version else None

    def renewed(self, view: View) -> KnownFailure:
        """The failure of a view's class, as the view is now."""
        columns = self._columns
        pointwise = all(having.kind is not Kind.CONTEXT for having in view.having_a_say())
        known = self._known.get(view.pod_class)
        rows = known[1].changed(columns) if known is not None and pointwise else None
        if known is None or rows is None:
            verdicts, often = _asked(columns, view)
        else:
            verdicts, often = dict(known[1].failure.verdicts or {}), dict(known[1].often)
            _update(verdicts, often, rows, view)
        failure = _summed(len(columns.rows), verdicts, often)
        return KnownFailure(failure, often, columns.generation, columns.log.end, pointwise)

    def keep(self, pod_class: PodClass, known: KnownFailure) -> Failure:
        """Remember a failure for as long as nothing changes."""
        self._known[pod_class] = self._columns.version, known
        self._known.move_to_end(pod_class)
        most = min(_MOST, max(_LEAST, self._entries // max(1, self._columns.size)))
        while len(self._known) > most:
            self._known.popitem(last=False)
        return known.failure

    def beside(self, pod_class: PodClass, promised: Mapping[int, Verdict]) -> Failure:
        """The current failure of a class, with nodes that others were promised refused for that."""
        _, known = self._known[pod_class]
        alone = known.failure.verdicts or {}
        often = dict(known.often)
        for row in alone.keys() & promised.keys():
            _count(often, alone[row], -1)
        for verdict, count in _often(promised.values()).items():
            _count(often, verdict, count)
        return _summed(len(self._columns.rows), {**alone, **promised}, often)


def _asked(columns: Columns, view: View) -> tuple[dict[int, Verdict], dict[Verdict, int]]:
    rows = np.flatnonzero(columns.alive)
    several = zip(rows.tolist(), view.verdicts(rows), strict=True)
    verdicts = {row: verdict for row, verdict in several if verdict}
    return verdicts, _often(verdicts.values())


def _update(
    verdicts: dict[int, Verdict], often: dict[Verdict, int], rows: set[int], view: View
) -> None:
    """Ask some nodes anew, and keep all in the order of rows."""
    come = False
    for row in rows:
        before, now = verdicts.get(row), view.verdict(row)
        if before is not None:
            _count(often, before, -1)
        if now is not None:
            _count(often, now, 1)
            verdicts[row] = now
            come = come or before is None
        elif before is not None:
            del verdicts[row]
    if come:
        in_order = {row: verdicts[row] for row in sorted(verdicts)}
        verdicts.clear()
        verdicts.update(in_order)


def _often(verdicts: Collection[Verdict]) -> dict[Verdict, int]:
    # Thousands of nodes share a few verdicts, and mostly these objects.
    shared = {id(verdict): verdict for verdict in verdicts}
    often: dict[Verdict, int] = {}
    for number, count in Counter(map(id, verdicts)).items():
        _count(often, shared[number], count)
    return often


def _count(often: dict[Verdict, int], verdict: Verdict, change: int) -> None:
    count = often.get(verdict, 0) + change
    if count:
        often[verdict] = count
    else:
        del often[verdict]


def _summed(total: int, verdicts: dict[int, Verdict], often: Mapping[Verdict, int]) -> Failure:
    reasons: Counter[str] = Counter()
    for verdict, count in often.items():
        for reason in verdict.reasons:
            reasons[reason] += count
    by = frozenset(verdict.plugin for verdict in often)
    return Failure(messages.histogram(total, reasons), verdicts, by)
