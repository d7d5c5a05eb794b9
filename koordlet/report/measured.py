"""A measured quantity and its metric families, as values.

Covers: what a row of ``quantities`` says. Does not cover: which quantities there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

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


def per(
    name: str, text: str, *several: scopes.Scope, total: bool = False, group: str = ""
) -> Iterator[Series]:
    """The same family for several scopes."""
    return (
        Series(scope, name, f"Per {scope.word}: {text}", total=total, group=group)
        for scope in several
    )


def both(
    scope: scopes.Scope,
    names: tuple[str, str],
    text: str,
    words: tuple[str, str],
    **more: Any,
) -> tuple[Series, Series]:
    """A total with further labels and bounds, and the rate that was exported before it."""
    total = Series(scope, names[0], text.format(words[0]), total=True, **more)
    old = more | {"group": families.DEPRECATED}
    return total, Series(scope, names[1], text.format(words[1]), **old)


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
