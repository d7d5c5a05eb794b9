"""Reservation: pods find what is reserved for them, reservations find their nodes.

Covers: filter, score, choice and booking for pods that reservations select; the filter of reserve
pods.
Does not cover: the rules themselves (``koordlet.scheduler.reservation``).

A class that no reservation means takes no part: no filter, no score, one look into a table a pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from koordlet.scheduler import framework
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.events import ActionType
from koordlet.scheduler.cluster.vectors import Bools, Ints, Rows
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.plugins import adoption
from koordlet.scheduler.reservation import matching
from koordlet.scheduler.reservation.cache import ReservationCache
from koordlet.scheduler.reservation.claims import Claim, claim_of
from koordlet.scheduler.reservation.fit import NONE_SERVES, FitResult, ReservationFit
from koordlet.scheduler.reservation.preallocation import Adopter
from koordlet.scheduler.reservation.spec import ReservationSpec, ReservePodTraits

_NO_ORDER = 2**62
#: The raw score of the node with the smallest order label: more than any other can have.
_PREFERRED = 1000
#: The highest code of ``ReservePodFilter``.
_PLACING = 2


class Reservation(framework.Plugin):
    """Room that was reserved, for those that it was reserved for."""

    name = "Reservation"
    listens = ActionType.EVERYTHING ^ (
        ActionType.POD_ENDING | ActionType.NAMESPACE | ActionType.OWNERS
    )

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(args)
        #: Without it the plugin takes no part.
        self.cache: ReservationCache | None = None
        self.arguments = adoption.Arguments.read(args)

    def attach(self, cache: ReservationCache) -> None:
        """Take the reservations of the scheduler that runs this profile."""
        self.cache = cache

    @property
    def deciding(self) -> frozenset[str]:
        return frozenset({self.arguments.adoption.priority})

    def pre_enqueue(self, pod: Pod) -> str:
        if self.cache is None:
            return ""
        try:
            self.cache.claims.wish(pod.pod_class)
        except BadObjectError as error:
            return str(error)
        return ""

    def refine(self, pod: Pod, pod_class: PodClass) -> PodClass:
        if self.cache is None or pod.reserve_pod_of:
            return pod_class
        return self.cache.claims.refine(pod, pod_class)

    def hidden(self, pod_class: PodClass) -> Iterable[Pod]:
        claim = claim_of(pod_class)
        several = claim.hides.values() if claim is not None else ()
        return [info.reserve_pod for info in several if info.usable and info.reserve_pod]

    def filter(self, pod_class: PodClass, columns: Columns) -> framework.Filter | None:
        if self.cache is None:
            return None
        if pod_class.reserving is not None:
            return self._placing(pod_class.reserving, columns)
        claim = claim_of(pod_class)
        if claim is None:
            return None
        return ClaimFilter(self._judge(pod_class, claim, columns), claim, columns)

    def _placing(self, how: ReservePodTraits, columns: Columns) -> framework.Filter:
        assert self.cache is not None  # noqa: S101 -- asked by the caller
        placing = ReservePodFilter(how, self.cache, columns)
        if how.adopting is None:
            return placing
        adopter = adoption.adopter(how.adopting, columns, self.arguments)
        return PreAllocationFilter(placing, adoption.adopting(adopter, columns))

    def _judge(self, pod_class: PodClass, claim: Claim, columns: Columns) -> ReservationFit:
        known = claim.judge
        if isinstance(known, ReservationFit) and known.serves(pod_class, columns):
            return known
        ignored = {name for name in pod_class.requests.real if self.arguments.ignores(name)}
        claim.judge = ReservationFit(pod_class, claim, columns, ignored)
        return claim.judge

    def score(self, pod_class: PodClass, columns: Columns) -> framework.Score | None:
        if self.cache is None:
            return None
        how = pod_class.reserving
        if how is not None and how.adopting is not None:
            adopter = adoption.adopter(how.adopting, columns, self.arguments)
            return adoption.Preference(adopter)
        claim = claim_of(pod_class)
        if claim is None or claim.wish.ignores:
            return None
        return ClaimScore(self._judge(pod_class, claim, columns), claim, columns)

    def post_filter(
        self, pod: Pod, refused: Mapping[str, framework.Verdict]
    ) -> framework.Rescue | None:
        """How many reservations failed for which reason."""
        if self.cache is None or pod.reserve_pod_of:
            return None
        wish = self.cache.claims.wish(pod.pod_class)
        if wish.ignores:
            return None
        nodes = self.cache.columns.nodes
        several = (
            (info, node.labels)
            for info in self.cache.claims.find(pod)
            if info.usable and info.row >= 0 and (node := nodes[info.row]) is not None
        )
        return framework.Rescue(matching.refusal(pod, wish, several, refused))

    def prepare(self, pod: Pod, node: str) -> None:
        """Choose the reservation that the pod draws on; the columns book it with its place."""
        if self.cache is None or pod.reserve_pod_of:
            return
        pod_class = self.refine(pod, pod.pod_class)
        claim = claim_of(pod_class)
        if claim is None:
            return
        columns = self.cache.columns
        judged = self._judge(pod_class, claim, columns).judge(columns.rows[node])
        if judged.reasons or (judged.chosen is None and claim.required):
            raise framework.RefusedError(", ".join(judged.reasons) or NONE_SERVES, resolvable=True)
        self.cache.draw(pod, judged.chosen)

    def adopts(self, spec: ReservationSpec, row: int) -> tuple[Pod, ...]:
        """The running pods that a reservation takes over on the node that was chosen for it."""
        if self.cache is None or spec.pre_allocation is None:
            return ()
        return Adopter(spec, self.cache.columns, self.arguments.adoption).judge(row).pods

    def unreserve(self, pod: Pod, node: str) -> None:
        if self.cache is not None and not pod.reserve_pod_of:
            self.cache.draw(pod, None)

    def marks(self, pod: Pod, node: str) -> Mapping[str, str]:
        if pod.reserve_pod_of or not pod.draws_on:
            return {}
        info = self.cache.find(pod.draws_on) if self.cache is not None else None
        return info.marks() if info is not None else {}


class ClaimFilter(framework.ByNode):
    """Nodes where a class's reservations are are judged with them; others pass, or must not."""

    def __init__(self, judge: ReservationFit, claim: Claim, columns: Columns) -> None:
        super().__init__(columns, self._judged)
        self._judge = judge
        self._claim = claim

    def codes(self, rows: Rows) -> Ints:
        if self._claim.required:
            return super().codes(rows)
        codes = np.zeros(rows.size, np.int64)
        wanted = self._claim.rows
        chosen = np.isin(rows, np.fromiter(wanted, np.intp, len(wanted)))
        for place in np.flatnonzero(chosen).tolist():
            codes[place] = self.code(int(rows[place]))
        return codes

    def _judged(self, _node: Node, row: int) -> framework.Verdict | None:
        if not self._claim.required and row not in self._claim.rows:
            return None
        judged = self._judge.judge(row)
        return framework.Verdict(judged.reasons, judged.resolvable) if judged.reasons else None


class ClaimScore(framework.ContextScore):
    """Where the pod finds a reservation, the better the fuller it makes it."""

    def __init__(self, judge: ReservationFit, claim: Claim, columns: Columns) -> None:
        self._judge = judge
        self._claim = claim
        self._columns = columns
        self._values: Ints = np.zeros(columns.size, np.int64)
        self._orders: Ints = np.full(columns.size, _NO_ORDER, np.int64)
        self._known: set[int] = set()
        #: Rows whose reservation says which comes first; mostly none.
        self._ordered: set[int] = set()
        self._at = -1
        self._rows: Rows | None = None
        self._changes = -1

    @property
    def idle(self) -> bool:
        """There is no reservation for the class anywhere."""
        return not self._claim.rows

    def sparse(self) -> Rows:
        """The only rows whose score may be more than nothing, in order."""
        if self._rows is None or self._changes != self._claim.changes:
            self._changes = self._claim.changes
            self._rows = np.array(sorted(self._claim.rows), np.intp)
        return self._rows

    def _catch_up(self) -> None:
        log = self._columns.log
        news = log.since(self._at) if self._at >= 0 else None
        for row in {*self._claim.rows, *self._known} if news is None else set(news):
            if row in self._claim.rows or row in self._known:
                self._look(row)
        self._at = log.end

    def _look(self, row: int) -> None:
        judged: FitResult = self._judge.judge(row)
        order = judged.chosen.spec.order if judged.chosen is not None else 0
        self._values[row] = judged.score
        if order:
            self._orders[row] = order
            self._ordered.add(row)
        elif row in self._ordered:
            self._orders[row] = _NO_ORDER
            self._ordered.discard(row)
        if row in self._claim.rows:
            self._known.add(row)
        else:
            self._known.discard(row)

    def final(self, raw: Ints, rows: Rows) -> Ints:
        self._catch_up()
        scores = self._values[rows]
        if self._ordered:
            orders = self._orders[rows]
            if orders.size and int(orders.min()) < _NO_ORDER:
                scores[int(orders.argmin())] = _PREFERRED
        return framework.scaled(scores)


class ReservePodFilter(framework.Filter):
    """Nodes that may have a reserve pod: not beside its pin (1), not beside another policy (2)."""

    kind = framework.Kind.LOAD
    verdicts = framework.hopeless(
        "node(s) didn't match the nodeName specified by reservation",
        "node(s) reservation allocate policy conflict",
    )

    def __init__(self, how: ReservePodTraits, cache: ReservationCache, columns: Columns) -> None:
        self._how = how
        self._cache = cache
        self._columns = columns
        self._pinned: Bools | None = None
        if how.pinned:
            self._pinned = columns.index.field("name").where(lambda name: name == how.pinned)

    def codes(self, rows: Rows) -> Ints:
        zeros = np.zeros(rows.size, np.int64)
        if self._pinned is not None:
            zeros[~self._pinned[rows]] = 1
        for place in np.flatnonzero(np.isin(rows, self._cache.rows())).tolist():
            if not zeros[place] and self._cache.conflict(int(rows[place]), self._how.policy):
                zeros[place] = 2
        return zeros

    def allows(self, row: int) -> bool:
        if self._pinned is not None and not self._pinned[row]:
            return False
        return not self._cache.conflict(row, self._how.policy)


class PreAllocationFilter(framework.Filter):
    """Nodes for a reserve pod that adopts running pods: ``ReservePodFilter`` first, then those."""

    kind = framework.Kind.LOAD

    def __init__(self, placing: ReservePodFilter, adopting: framework.ByNode) -> None:
        self._placing = placing
        self._adopting = adopting

    def codes(self, rows: Rows) -> Ints:
        codes = self._placing.codes(rows)
        left = np.flatnonzero(codes == 0)
        # The codes of adoption follow those of placing.
        more = self._adopting.codes(rows[left])
        codes[left] = np.where(more, more + _PLACING, 0)
        return codes

    def allows(self, row: int) -> bool:
        return self._placing.allows(row) and self._adopting.allows(row)

    def verdict(self, code: int) -> framework.Verdict:
        if code <= _PLACING:
            return self._placing.verdict(code)
        return self._adopting.verdict(code - _PLACING)
