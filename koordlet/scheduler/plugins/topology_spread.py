"""PodTopologySpread: matching pods evenly over zones, hosts, or whatever a label names.

Covers: hard constraints as a filter, soft ones as a score, the defaults of the cluster.
Does not cover: how pods are counted (``scheduler.cluster.vectors.DomainSums``).

A count lives as long as its class is known and follows each pod that comes or goes; what is
computed for each pod is a table over domains, spread over the nodes by one gather.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from koordlet.kubeapi import selectors
from koordlet.model.record import dataclass
from koordlet.scheduler import framework
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.cluster.vectors import (
    Bools,
    DomainSums,
    Floats,
    Ints,
    Rows,
    Tally,
    distinct,
)
from koordlet.scheduler.objects import terms, wire
from koordlet.scheduler.objects.owners import PodOwners
from koordlet.scheduler.objects.pods import PodClass
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.plugins import node

_SYSTEM = (
    terms.SpreadConstraint(terms.HOSTNAME, 3, hard=False, selector=None),
    terms.SpreadConstraint(terms.ZONE, 5, hard=False, selector=None),
)


_MISMATCH = "node(s) didn't match pod topology spread constraints"


class PodTopologySpread(framework.Plugin):
    """The pod's own constraints; without any, the profile's with the selector of its owners."""

    name = "PodTopologySpread"
    #: A pod that ends is not counted any more.
    listens = ActionType.NODE | ActionType.NODE_GONE | ActionType.POD | ActionType.OWNERS

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(args)
        self.owners = PodOwners()
        kind = wire.text(args, "defaultingType", "System")
        several = wire.bodies(args, "defaultConstraints")
        if any(entry.get("labelSelector") is not None for entry in several):
            raise BadObjectError("defaultConstraints: the selector is that of each pod's owners")
        constraints = tuple(terms.spread(entry, {}) for entry in several)
        if kind not in {"System", "List"} or (constraints and kind == "System"):
            raise BadObjectError(
                f"defaultingType {kind!r} with {len(constraints)} defaultConstraints"
            )
        self._system = kind == "System"
        self._defaults = _SYSTEM if self._system else constraints

    def _constraints(
        self, pod_class: PodClass, *, hard: bool
    ) -> tuple[terms.SpreadConstraint, ...]:
        if pod_class.spread:
            return tuple(constraint for constraint in pod_class.spread if constraint.hard is hard)
        chosen = [constraint for constraint in self._defaults if constraint.hard is hard]
        selector = self.owners.selector(pod_class) if chosen else None
        if selector is None:
            return ()
        return tuple(replace(constraint, selector=selector) for constraint in chosen)

    def filter(self, pod_class: PodClass, columns: Columns) -> framework.Filter | None:
        constraints = self._constraints(pod_class, hard=True)
        return Hard(pod_class, columns, constraints) if constraints else None

    def helps(self, event: ClusterEvent, pod_class: PodClass) -> bool:
        """A pod that comes, ends or goes helps only where a constraint counts it.

        An owner helps only those of its namespace that have no constraints of their own.
        """
        if event.what is ActionType.OWNERS:
            return pod_class.namespace == event.namespace and not pod_class.spread
        return event.pod is None or any(
            _meant(pod_class.namespace, constraint.selector, event.pod.pod_class)
            for constraint in self._constraints(pod_class, hard=True)
        )

    def score(self, pod_class: PodClass, columns: Columns) -> framework.Score | None:
        constraints = self._constraints(pod_class, hard=False)
        if not constraints:
            return None
        return Soft(
            pod_class, columns, constraints, every_key=bool(pod_class.spread) or not self._system
        )


def tally_of(columns: Columns, namespace: str, selector: selectors.Compiled | None) -> Tally:
    """Living pods of a namespace that a selector means; an empty selector counts none."""
    key = ("spread", namespace, selector)
    return columns.tally(key, functools.partial(_meant, namespace, selector), living=True)


def _meant(namespace: str, selector: selectors.Compiled | None, pod_class: PodClass) -> int:
    if selector is None or not selector.labels or pod_class.namespace != namespace:
        return 0
    return int(terms.holds(selector, pod_class.labels))


def _counted(
    pod_class: PodClass, columns: Columns, constraint: terms.SpreadConstraint, keyed: Bools
) -> tuple[Tally, DomainSums, Bools]:
    """The pods that a constraint counts, their sums by domain, the nodes that are eligible."""
    eligible = keyed & columns.alive
    if constraint.honor_affinity:
        eligible &= node.matching(pod_class, columns)
    if constraint.honor_taints:
        eligible &= ~node.untolerated(pod_class, columns)
    column = columns.index.label(constraint.key)
    tally = tally_of(columns, pod_class.namespace, constraint.selector)
    return tally, DomainSums(tally, column.ids, len(column.values), eligible), eligible


def _keyed(columns: Columns, constraints: Sequence[terms.SpreadConstraint]) -> Bools:
    keyed = np.ones(columns.size, np.bool_)
    for constraint in constraints:
        keyed &= columns.index.label(constraint.key).ids >= 0
    return keyed


@dataclass(frozen=True, slots=True)
class _Counted:
    constraint: terms.SpreadConstraint
    sums: DomainSums
    #: Domains that exist: those of eligible nodes.
    domains: Rows
    itself: int


class Hard(framework.Filter):
    """2 where the node lacks the key of a constraint, 1 where its domain has too many."""

    kind = framework.Kind.CONTEXT
    verdicts: Sequence[framework.Verdict] = (
        *framework.hopeful(_MISMATCH),
        *framework.hopeless(f"{_MISMATCH} (missing required label)"),
    )

    def __init__(
        self, pod_class: PodClass, columns: Columns, constraints: Sequence[terms.SpreadConstraint]
    ) -> None:
        keyed = _keyed(columns, constraints)
        self._counted = []
        for constraint in constraints:
            _, sums, eligible = _counted(pod_class, columns, constraint, keyed)
            itself = terms.holds(constraint.selector, pod_class.labels)
            domains = distinct(sums.domains[eligible])
            self._counted.append(_Counted(constraint, sums, domains, int(itself)))

    def _open(self, counted: _Counted) -> Bools:
        """By domain, and False behind them for nodes without the key."""
        totals, constraint = counted.sums.totals(), counted.constraint
        least = 0
        if counted.domains.size >= constraint.min_domains:
            least = int(totals[counted.domains].min())
        passing: Bools = totals + (counted.itself - least) <= constraint.skew
        passing[-1] = False
        return passing

    def allowed(self, rows: Rows) -> Bools:
        passing = np.ones(rows.size, np.bool_)
        for counted in self._counted:
            passing &= self._open(counted)[counted.sums.domains[rows]]
        return passing

    def codes(self, rows: Rows) -> Ints:
        codes = np.zeros(rows.size, np.int64)
        for counted in self._counted:
            domains = counted.sums.domains[rows]
            code = np.where(domains < 0, 2, np.where(self._open(counted)[domains], 0, 1))
            codes = np.where(codes, codes, code)
        return codes


class Soft(framework.ContextScore):
    """The fewer matching pods in a node's domains, weighted by how many domains there are."""

    def __init__(
        self,
        pod_class: PodClass,
        columns: Columns,
        constraints: Sequence[terms.SpreadConstraint],
        *,
        every_key: bool,
    ) -> None:
        self._keyed = _keyed(columns, constraints if every_key else ())
        self._parts: list[tuple[terms.SpreadConstraint, Tally, DomainSums]] = []
        for constraint in constraints:
            tally, sums, _ = _counted(pod_class, columns, constraint, self._keyed)
            self._parts.append((constraint, tally, sums))
        self._size = columns.size

    def final(self, raw: Ints, rows: Rows) -> Ints:
        counted = self._keyed[rows]
        total: Floats = np.zeros(rows.size, np.float64)
        candidates = int(counted.sum())
        for constraint, tally, sums in self._parts:
            domains = sums.domains[rows]
            if constraint.key == terms.HOSTNAME:
                weight = math.log(candidates + 2)
                matching = tally.upto(self._size)[rows]
            else:
                # A node without the key, where not all are needed, makes one more domain.
                seen = np.zeros(sums.totals().size, np.bool_)
                seen[domains[counted]] = True
                weight = math.log(int(seen.sum()) + 2)
                matching = sums.totals()[domains]
            part = matching * weight + float(constraint.skew - 1)
            total += np.where(domains >= 0, part, 0.0)
        whole = np.floor(total)
        score = (whole + (total - whole >= 0.5)).astype(np.int64)
        return _evened(score, counted)


def _evened(score: Ints, counted: Bools) -> Ints:
    among = score[counted]
    if among.size == 0:
        return np.zeros(score.size, np.int64)
    low, high = int(among.min()), int(among.max())
    if high == 0:
        return np.where(counted, framework.MAX_SCORE, 0).astype(np.int64)
    return np.where(counted, framework.MAX_SCORE * (high + low - score) // high, 0)
