"""InterPodAffinity: which pods want to be near which, and which do not.

Covers: required and preferred terms of the incoming pod, and those of the pods that are there.
Does not cover: how pods are counted (``scheduler.cluster.vectors.DomainSums``).

Each distinct term is one tally: of the pods that it means, for the incoming pod's terms; of the
pods that hold it, for the terms of pods that are there. A pod's arrival moves one number in each.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from koordlet.scheduler import framework
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.cluster.vectors import Bools, DomainSums, Ints, Rows
from koordlet.scheduler.objects import terms, wire
from koordlet.scheduler.objects.pods import PodClass
from koordlet.scheduler.objects.wire import BadObjectError


class InterPodAffinity(framework.Plugin):
    """Near and far, required and preferred, both ways."""

    name = "InterPodAffinity"
    listens = (
        ActionType.NODE_NEW
        | ActionType.NODE_GONE
        | ActionType.NODE_LABELS
        | ActionType.POD_NEW
        | ActionType.POD_GONE
        | ActionType.NAMESPACE
    )

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(args)
        self._hard = wire.integer(args, "hardPodAffinityWeight", 1)
        if not 0 <= self._hard <= 100:
            raise BadObjectError("hardPodAffinityWeight is from 0 to 100")
        self._ignore = wire.flag(args, "ignorePreferredTermsOfExistingPods")
        self._namespaces: terms.Namespaces = {}

    def filter(self, pod_class: PodClass, columns: Columns) -> framework.Filter | None:
        self._namespaces = columns.namespaces
        return Required(pod_class, columns)

    def helps(self, event: ClusterEvent, pod_class: PodClass) -> bool:
        """A pod that comes may be sought, one that goes was shunned or shunned the class itself.

        Labels of a namespace help its own pods, and those whose terms select namespaces by them.
        """
        if event.what is ActionType.NAMESPACE:
            return pod_class.namespace == event.namespace or any(
                term.namespace_selector is not None and term.namespace_selector.labels
                for term in (*pod_class.affinity, *pod_class.anti_affinity)
            )
        if event.pod is None:
            return True
        other, known = event.pod.pod_class, self._namespaces
        if ActionType.POD_NEW in event.what:
            return bool(pod_class.affinity and _all_match(pod_class.affinity, known, other))
        return any(
            _all_match((term,), known, meant)
            for meant, several in (
                (other, (*pod_class.anti_affinity, *pod_class.affinity)),
                (pod_class, other.anti_affinity),
            )
            for term in several
        )

    def score(self, pod_class: PodClass, columns: Columns) -> framework.Score | None:
        if self._ignore and not pod_class.prefers and not pod_class.avoids:
            return None
        return Preferred(pod_class, columns, self._hard, ignore=self._ignore)


def _all_match(
    wanted: tuple[terms.PodTerm, ...], known: terms.Namespaces, pod_class: PodClass
) -> int:
    return int(all(term.matches(pod_class.namespace, pod_class.labels, known) for term in wanted))


#: A field of ``PodClass``, and one of the terms in it, with its weight where it has one.
_Wish = tuple[str, Any]


def _holds(wish: _Wish, pod_class: PodClass) -> int:
    return int(getattr(pod_class, wish[0]).count(wish[1]))


def sums_of(columns: Columns, wanted: tuple[terms.PodTerm, ...], key: str) -> DomainSums:
    """Pods that all of these terms mean, over a topology."""
    measure = functools.partial(_all_match, wanted, columns.namespaces)
    # The topology of a term does not matter for which pods it means.
    tally = columns.tally(("meant", wanted), measure)
    column = columns.index.label(key)
    return DomainSums(tally, column.ids, len(column.values), None)


class _Existing:
    """Terms that placed pods hold and that select a class; grows with new classes."""

    def __init__(self, pod_class: PodClass, columns: Columns, kinds: Sequence[str]) -> None:
        self._pod_class = pod_class
        self._columns = columns
        self._kinds = kinds
        self._seen = 0
        self._sums: dict[_Wish, DomainSums] = {}

    def items(self) -> dict[_Wish, DomainSums]:
        """Each wish, and who holds it where."""
        columns, pod_class = self._columns, self._pod_class
        for other in columns.termed[self._seen :]:
            self._seen += 1
            for wish in ((kind, meant) for kind in self._kinds for meant in getattr(other, kind)):
                term = wish[1][1] if isinstance(wish[1], tuple) else wish[1]
                if wish not in self._sums and term.matches(
                    pod_class.namespace, pod_class.labels, columns.namespaces
                ):
                    column = columns.index.label(term.key)
                    tally = columns.tally(wish, functools.partial(_holds, wish))
                    self._sums[wish] = DomainSums(tally, column.ids, len(column.values), None)
        return self._sums


class Required(framework.Filter):
    """1: own affinity; 2: own anti-affinity; 3: anti-affinity of a pod that is there."""

    kind = framework.Kind.CONTEXT
    verdicts: Sequence[framework.Verdict] = (
        *framework.hopeless("node(s) didn't match pod affinity rules"),
        *framework.hopeful(
            "node(s) didn't match pod anti-affinity rules",
            "node(s) didn't satisfy existing pods anti-affinity rules",
        ),
    )

    def __init__(self, pod_class: PodClass, columns: Columns) -> None:
        self._near = [sums_of(columns, pod_class.affinity, term.key) for term in pod_class.affinity]
        self._far = [sums_of(columns, (term,), term.key) for term in pod_class.anti_affinity]
        self._others = _Existing(pod_class, columns, ("anti_affinity",))
        known = columns.namespaces
        self._first = bool(_all_match(pod_class.affinity, known, pod_class))

    @property
    def idle(self) -> bool:
        """Nothing can be refused at this moment."""
        return not self._near and not self._far and not self._others.items()

    def _far_from(self, sums: DomainSums, rows: Rows, passing: Bools) -> None:
        totals = sums.totals()
        if totals.any():
            passing &= (totals == 0)[sums.domains[rows]]

    def _near_to(self, rows: Rows) -> Bools:
        passing = np.ones(rows.size, np.bool_)
        lonely = self._first and not any(sums.totals().any() for sums in self._near)
        for sums in self._near:
            table = sums.totals() > 0
            if lonely:
                table = np.ones(table.size, np.bool_)
            table[-1] = False
            passing &= table[sums.domains[rows]]
        return passing

    def allowed(self, rows: Rows) -> Bools:
        passing = self._near_to(rows)
        for each in (*self._far, *self._others.items().values()):
            self._far_from(each, rows, passing)
        return passing

    def codes(self, rows: Rows) -> Ints:
        codes = np.where(self._near_to(rows), 0, 1).astype(np.int64)
        for code, group in ((2, self._far), (3, list(self._others.items().values()))):
            passing = np.ones(rows.size, np.bool_)
            for sums in group:
                self._far_from(sums, rows, passing)
            codes = np.where((codes == 0) & ~passing, code, codes)
        return codes


class Preferred(framework.ContextScore):
    """The sum of the weights of all terms that a node's neighbours fulfil."""

    def __init__(self, pod_class: PodClass, columns: Columns, hard: int, *, ignore: bool) -> None:
        self._own = [
            (sign * weight, sums_of(columns, (term,), term.key))
            for sign, wishes in ((1, pod_class.prefers), (-1, pod_class.avoids))
            for weight, term in wishes
        ]
        kinds = [] if ignore else ["prefers", "avoids"]
        self._others = _Existing(pod_class, columns, [*kinds, "affinity"] if hard else kinds)
        self._hard = hard

    @property
    def idle(self) -> bool:
        """Every node has the same at this moment."""
        return not self._own and not self._others.items()

    def sums(self, rows: Rows) -> Ints:
        """The sums themselves."""
        sum_of = np.zeros(rows.size, np.int64)
        signs = {"affinity": self._hard, "prefers": 1, "avoids": -1}
        others = [
            (signs[kind] * (meant[0] if isinstance(meant, tuple) else 1), sums)
            for (kind, meant), sums in self._others.items().items()
        ]
        for weight, sums in (*self._own, *others):
            totals = sums.totals()
            if totals.any():
                sum_of += (weight * totals)[sums.domains[rows]]
        return sum_of

    def final(self, raw: Ints, rows: Rows) -> Ints:
        sum_of = self.sums(rows)
        low, high = (int(sum_of.min()), int(sum_of.max())) if sum_of.size else (0, 0)
        if low == high:
            return np.zeros(rows.size, np.int64)
        # In floating point and in this order, as the peer: it is cut at the same places.
        return (float(framework.MAX_SCORE) * ((sum_of - low) / float(high - low))).astype(np.int64)
