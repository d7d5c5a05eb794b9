"""Labels, taints and names of all nodes as columns of small numbers.

Covers: interning, requirements over all nodes in a few array operations.
Does not cover: which requirements a pod has. Built lazily, one column for each key that was asked.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from koordlet.model.record import dataclass
from koordlet.scheduler.cluster.vectors import Bools, Ints, Rows
from koordlet.scheduler.objects import terms
from koordlet.scheduler.objects.nodes import Node


@dataclass(frozen=True, slots=True)
class LabelColumn:
    """One number for each node; -1 where there is nothing."""

    ids: Rows
    values: tuple[Hashable, ...]

    def where(self, test: Callable[[Hashable], bool]) -> Bools:
        """Nodes whose value passes; asked once for each distinct value."""
        table = np.array([*map(test, self.values), False], np.bool_)
        return table[self.ids]


class LabelIndex:
    """The columns of one generation of nodes."""

    def __init__(self, nodes: Sequence[Node | None]) -> None:
        self._nodes = nodes
        self._columns: dict[str, LabelColumn] = {}
        self._images: dict[str, tuple[Rows, Ints]] = {}
        self._alive: Bools = np.array([node is not None for node in nodes], np.bool_)
        self.size = len(nodes)
        #: One for all views.
        self.every: Rows = np.arange(self.size, dtype=np.intp)
        self.every.setflags(write=False)

    def alive(self) -> Bools:
        """The rows that have a node."""
        return self._alive.copy()

    def image(self, name: str) -> tuple[Rows, Ints]:
        """The nodes that have an image, and its bytes on each."""
        known = self._images.get(name)
        if known is None:
            sizes = {
                row: node.images[name]
                for row, node in enumerate(self._nodes)
                if node is not None and name in node.images
            }
            known = np.array([*sizes], np.intp), np.array([*sizes.values()], np.int64)
            self._images[name] = known
        return known

    def label(self, key: str) -> LabelColumn:
        """The values of one label."""
        return self._column(f"label {key}", lambda node: node.labels.get(key))

    def field(self, name: str) -> LabelColumn:
        """A field of the nodes, such as ``name`` or ``taints``."""
        return self._column(name, operator.attrgetter(name))

    def _column(self, key: str, of: Callable[[Node], Hashable]) -> LabelColumn:
        known = self._columns.get(key)
        if known is None:
            numbers: dict[Hashable, int] = {}
            ids = np.full(self.size, -1, np.intp)
            for row, node in enumerate(self._nodes):
                value = None if node is None else of(node)
                if value is not None:
                    ids[row] = numbers.setdefault(value, len(numbers))
            known = self._columns[key] = LabelColumn(ids, tuple(numbers))
        return known

    def requirement(self, requirement: terms.NodeRequirement) -> Bools:
        """Nodes that satisfy one condition on a label."""
        column = self.label(requirement.key)
        match requirement.operator:
            case "Exists":
                return column.ids >= 0
            case "DoesNotExist":
                return column.ids < 0
            case "In":
                return column.where(lambda value: value in requirement.values)
            case "NotIn":
                return ~column.where(lambda value: value in requirement.values)
        bound = terms.whole(requirement.values[0])
        return column.where(lambda value: terms.beyond(str(value), requirement.operator, bound))

    def term(self, term: terms.NodeTerm) -> Bools:
        """Nodes that satisfy all of a term; none for an empty or broken one."""
        if term.broken or term.empty:
            return np.zeros(self.size, np.bool_)
        passing = np.ones(self.size, np.bool_)
        for label in term.labels:
            passing &= self.requirement(label)
        for field in term.fields:
            equal = self.field("name").where(functools.partial(operator.contains, field.values))
            passing &= equal if field.operator == "In" else ~equal
        return passing

    def any_term(self, several: Sequence[terms.NodeTerm]) -> Bools:
        """Nodes that satisfy at least one term."""
        passing = np.zeros(self.size, np.bool_)
        for term in several:
            passing |= self.term(term)
        return passing

    def selected(self, wanted: dict[str, str]) -> Bools:
        """Nodes with all of these labels."""
        passing = np.ones(self.size, np.bool_)
        for key, value in wanted.items():
            passing &= self.requirement(terms.NodeRequirement(key, "In", (value,)))
        return passing


def counts(table: Sequence[int], column: LabelColumn) -> Ints:
    """A number for each distinct value, spread over the nodes."""
    return np.array([*table, 0], np.int64)[column.ids]
