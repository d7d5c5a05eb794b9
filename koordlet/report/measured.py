"""A measured quantity and its metric families, as values.

Covers: what a row of ``quantities`` says. Does not cover: which quantities there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from koordlet.model import counters, meter
from koordlet.model.record import dataclass
from koordlet.report import families, scopes, view


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """A metric family of one quantity, or of several that differ in a label."""

    scope: scopes.Scope
    #: Behind the stem of the scope.
    name: str
    help: str
    labels: scopes.Labels = ()
    #: Instead of those of the scope.
    bound: str = ""
    most: int = 0
    #: A counter: the growing total, not its rate.
    total: bool = False
    #: Of the scope's families where that is another one; ``DEPRECATED`` has the rates of totals.
    group: str = ""
    #: Instead of the values of the table.
    rows: Callable[[view.ReportView], families.Rows] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """A number that is measured of each subject of one table."""

    #: The table of ``counters.Usage``; the history calls it the same.
    table: str
    #: ``None``: memory, with a meter for each NUMA node.
    what: meter.Meter | None
    #: Dots lead into objects. Empty: in no document.
    key: str = ""
    series: tuple[Series, ...] = ()
    #: Values of the further labels of the series.
    values: scopes.Labels = ()
    late: bool = False
    #: Quantities of one key are a list.
    several: bool = False
    #: Of the feed's message about a subject of the table.
    field: str = ""
    #: In NodeMetric, and under Koordinator's metric names.
    resource: str = ""

    def meters(self, used: counters.Usage) -> Iterator[tuple[scopes.Labels, meter.Meter]]:
        """Label values and meter; with one NUMA node its memory is what is shown anyway."""
        if self.what is not None:
            yield self.values, self.what
        elif len(used.numa.slots) > 1:
            for node in used.numa.slots:
                yield (node,), meter.numa_memory(int(node))
