"""Which nodes can serve what a class of pods claims: the filter and the score of DynamicResources.

Covers: the demand of a class, nodes that are asked again where something changed, nodes that have
some of its extended resources themselves. Does not cover: making demands of pods
(``dynamic_resources``), the search (``scheduler.claims``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from koordlet.model.record import dataclass
from koordlet.scheduler import framework
from koordlet.scheduler.claims import node_answers
from koordlet.scheduler.claims.demand import AllocationError
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.vectors import Bools, Ints, Rows
from koordlet.scheduler.objects.pods import PodClass
from koordlet.scheduler.objects.resource_claims import ClaimAllocation

#: Why nodes are refused whose devices a claim does not have.
OUT_OF_REACH = "resourceclaim not available on the node"

#: Of so few nodes all are asked, as by kube-scheduler: a claim that one cannot judge is told.
_ALL_ASKED = 100

#: By what of its extended resources a node lacks, what nodes say; ``None``: claims have devices.
AnswersFor = Callable[[frozenset[str]], node_answers.NodeAnswers | None]


@dataclass(frozen=True, slots=True, eq=False)
class ClassDemand:
    """What the claims of a class's pods need of nodes; compared by identity."""

    answers_for: AnswersFor = lambda _: None
    held: tuple[ClaimAllocation, ...] = ()
    #: Extended resources that a node has itself, or gives devices for.
    resources: tuple[str, ...] = ()
    #: Why no node can help them now; empty: some may.
    problem: str = ""

    def lacking(self, columns: Columns, row: int) -> frozenset[str]:
        """Which of the resources a node does not have itself."""
        return frozenset(
            name
            for name in self.resources
            if not columns.allocatable.item(columns.resource(name), row)
        )

    def groups(self, columns: Columns, rows: Rows) -> Iterator[tuple[frozenset[str], Rows]]:
        """Places among rows, by what their nodes lack."""
        codes = np.zeros(rows.size, np.int64)
        for bit, name in enumerate(self.resources):
            lacks = columns.allocatable[columns.resource(name), rows] == 0
            codes |= lacks.astype(np.int64) << bit
        for code in sorted(set(codes.tolist())):
            names = (name for bit, name in enumerate(self.resources) if code >> bit & 1)
            yield frozenset(names), np.flatnonzero(codes == code)


def demand_of(pod_class: PodClass) -> ClassDemand | None:
    """What the claims of a class's pods need; ``None``: it has none."""
    return pod_class.demand if isinstance(pod_class.demand, ClassDemand) else None


class DemandFilter(framework.Filter):
    """Nodes that can serve a demand; a node where something changed is asked when it matters."""

    kind = framework.Kind.CONTEXT
    blind = True

    def __init__(
        self,
        answers: node_answers.NodeAnswers | None,
        held: Sequence[ClaimAllocation],
        columns: Columns,
        given: list[framework.Verdict] | None = None,
    ) -> None:
        self._answers, self._columns = answers, columns
        self.pointwise = len(columns.rows) > _ALL_ASKED
        self._codes = np.zeros(columns.size, np.int64)
        self._passes = np.zeros(columns.size, np.bool_)
        self._given: list[framework.Verdict] = [] if given is None else given
        self.verdicts = self._given
        #: Up to where changes were taken in; whether a row has to be asked since.
        self._at, self._position = -1, (-1, -1)
        self._old = np.zeros(columns.size, np.bool_)
        self._reach = np.ones(columns.size, np.bool_)
        for row, node in enumerate(columns.nodes if held else ()):
            if node is not None:
                self._reach[row] = all(each.reaches(node.name, node.labels) for each in held)
        if answers is None:
            self._put(np.arange(columns.size).tolist(), [""] * columns.size)

    def codes(self, rows: Rows) -> Ints:
        if error := self._ask(rows):
            return np.full(rows.size, self._code(error), np.int64)
        return self._codes[rows]

    def allows(self, row: int) -> bool:
        return not self._ask_one(row) and bool(self._passes[row])

    def allowed(self, rows: Rows) -> Bools:
        return np.zeros(rows.size, np.bool_) if self._ask(rows) else self._passes[rows]

    def among(self, passing: Bools, every: Rows) -> Bools:
        # A node that the pod does not reach may have devices that cannot be judged.
        if self._ask(every[passing]):
            return np.zeros(passing.size, np.bool_)
        return passing & self._passes

    def _ask(self, rows: Rows) -> str:
        """Ask those of some nodes that have to be asked; why that is impossible, if it is."""
        answers = self._answers
        if answers is None:
            return ""
        self._take_in(answers)
        old = rows[self._old[rows]].tolist()
        return self._ask_old(answers, old) if old else ""

    def _ask_one(self, row: int) -> str:
        """The same of one node, without arrays."""
        answers = self._answers
        if answers is None:
            return ""
        self._take_in(answers)
        return self._ask_old(answers, [row]) if self._old[row] else ""

    def _ask_old(self, answers: node_answers.NodeAnswers, old: list[int]) -> str:
        nodes = map(self._columns.chosen, old)
        try:
            several = list(answers.of((node.name, node.labels) for node in nodes))
        except AllocationError as error:
            return str(error)
        self._put(old, [answer.why_not for answer in several])
        self._old[old] = False
        return ""

    def _take_in(self, answers: node_answers.NodeAnswers) -> None:
        """Note the nodes where something changed."""
        if answers.position == self._position:
            return
        self._position, columns = answers.forget(), self._columns
        changed = None if self._at < 0 else answers.changes.since(self._at)
        if changed is None:
            self._old[list(columns.rows.values())] = True
        else:
            self._old[[columns.rows[name] for name in changed if name in columns.rows]] = True
        self._at = answers.changes.end

    def _put(self, rows: list[int], reasons: list[str]) -> None:
        for row, reason in zip(rows, reasons, strict=True):
            why_not = reason or ("" if self._reach[row] else OUT_OF_REACH)
            self._codes[row] = self._code(why_not) if why_not else 0
            self._passes[row] = not why_not

    def _code(self, reason: str) -> int:
        verdict = framework.Verdict((reason,), resolvable=False)
        if verdict not in self._given:
            self._given.append(verdict)
        return 1 + self._given.index(verdict)


class ExtendedFilter(framework.Filter):
    """The same where nodes lack different resources, and are asked for different devices."""

    kind = framework.Kind.CONTEXT
    blind = True

    def __init__(self, asked: ClassDemand, columns: Columns) -> None:
        self._asked, self._columns = asked, columns
        self.pointwise = len(columns.rows) > _ALL_ASKED
        self._given: list[framework.Verdict] = []
        self.verdicts = self._given
        self._parts: dict[frozenset[str], DemandFilter] = {}

    def codes(self, rows: Rows) -> Ints:
        codes = np.zeros(rows.size, np.int64)
        for lacking, places in self._asked.groups(self._columns, rows):
            codes[places] = self._part(lacking).codes(rows[places])
        return codes

    def among(self, passing: Bools, every: Rows) -> Bools:
        among, rows = np.zeros(passing.size, np.bool_), every[passing]
        among[rows] = self.allowed(rows)
        return among

    def allows(self, row: int) -> bool:
        return self._part(self._asked.lacking(self._columns, row)).allows(row)

    def _part(self, lacking: frozenset[str]) -> DemandFilter:
        known = self._parts.get(lacking)
        if known is None:
            known = self._parts[lacking] = DemandFilter(
                self._asked.answers_for(lacking),
                self._asked.held,
                self._columns,
                self._given,
            )
        return known


class WishScore(framework.ContextScore):
    """Nodes by how early in their lists the wishes are that they can serve."""

    def __init__(self, asked: ClassDemand, columns: Columns) -> None:
        self._asked, self._columns = asked, columns

    def final(self, raw: Ints, rows: Rows) -> Ints:
        ratings = np.zeros(rows.size, np.int64)
        for lacking, places in self._asked.groups(self._columns, rows):
            answers = self._asked.answers_for(lacking)
            nodes = [self._columns.chosen(row) for row in rows[places].tolist()]
            several = answers.of((node.name, node.labels) for node in nodes) if answers else ()
            ratings[places] = [answer.rating for answer in several] or 0
        return framework.scaled(ratings)
