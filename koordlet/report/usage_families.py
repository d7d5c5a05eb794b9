"""Metric families of the measured quantities, and of their reading. Pure.

Covers: the families of ``quantities`` by scope, how their numbers are printed.
Does not cover: the names of Koordinator's agent that are no quantity's (``peer_families``).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from koordlet.model import counters
from koordlet.report import families, measured, quantities, scopes, view

#: How numbers of a unit are printed; ``%.6g`` any other.
_FORMS = {
    **dict.fromkeys(("bytes", "tasks", "inodes"), "%d"),
    **dict.fromkeys(("cycles", "instructions"), "%.15g"),
}


def of(*several: scopes.Scope) -> tuple[families.Family, ...]:
    """The families of some scopes, one scope after the other."""
    by_series: dict[measured.Series, list[measured.Quantity]] = {}
    for scope in several:
        for row in quantities.QUANTITIES:
            for series in row.series:
                if series.scope is scope:
                    by_series.setdefault(series, []).append(row)
    return tuple(_family(series, rows) for series, rows in by_series.items())


def _family(series: measured.Series, rows: Sequence[measured.Quantity]) -> families.Family:
    scope = series.scope
    bound, most = series.bound or scope.bound, series.most or scope.most
    unit = rows[0].what.unit if rows[0].what is not None else "bytes"
    printed = _FORMS.get(unit, families.FORM)
    return families.Family(
        name=f"koordlet_{scope.stem}_{series.name}",
        help=series.help,
        labels=(*scope.labels, *series.labels),
        bound=f"{bound}, at most {most}" if most else bound,
        most=most or families.FEW,
        rows=series.rows or _rows(scope, rows, total=series.total),
        type=families.COUNTER if series.total else families.GAUGE,
        # Nothing of a total is rounded.
        form="%.15g" if series.total else printed,
        group=series.group or scope.group,
    )


def _rows(
    scope: scopes.Scope, several: Sequence[measured.Quantity], *, total: bool
) -> families.Read:
    """Subject by subject; of all that a table has, quantity by quantity."""

    def read(now: view.ReportView) -> counters.Table:
        table: counters.Table = getattr(now.used, several[0].table)
        return table.growing() if total else table

    def of_table(now: view.ReportView) -> families.Rows:
        table = read(now)
        for row in several:
            for values, what in row.meters(now.used):
                for subject, value in table.values(what):
                    yield (subject, *values), value

    def of_subjects(now: view.ReportView) -> families.Rows:
        table = read(now)
        meters = [pair for row in several for pair in row.meters(now.used)]
        assert scope.subjects is not None  # noqa: S101 -- narrows the type
        subjects = list(scope.subjects(now))
        columns = [table.column([name for _, name in subjects], what) for _, what in meters]
        if len(meters) == 1 and not meters[0][0]:
            return zip([labels for labels, _ in subjects], columns[0], strict=True)
        return (
            ((*labels, *values), column[row])
            for row, (labels, _) in enumerate(subjects)
            for (values, _), column in zip(meters, columns, strict=True)
        )

    return of_table if scope.subjects is None else of_subjects


FAMILIES = families.Families(of(*scopes.OWN))


_reads = functools.partial(FAMILIES.family, "event", kind=families.COUNTER, bound="5", form="%d")


@_reads()
def koordlet_kernel_reads(now: view.ReportView) -> families.Rows:
    """Counter files read, opened, gone and malformed, and mounts that did not answer."""
    return (((event,), number) for event, number in now.counters.files.items())


@FAMILIES.family(form="%d")
def koordlet_kernel_descriptors(now: view.ReportView) -> families.Rows:
    """Open file descriptors of counter files; each pins a page of kernel memory."""
    yield (), now.counters.descriptors


@_reads(group=families.DEPRECATED)
def koordlet_counter_files(now: view.ReportView) -> families.Rows:
    """Counter files by event; now koordlet_kernel_reads_total."""
    return koordlet_kernel_reads(now)


@FAMILIES.family(form="%d", group=families.DEPRECATED)
def koordlet_counter_descriptors(now: view.ReportView) -> families.Rows:
    """Open file descriptors of counter files; now koordlet_kernel_descriptors."""
    return koordlet_kernel_descriptors(now)
