"""Histories for policies, without any machine: values that stood still for a while.

Covers: ``past``, ``used_node``.
Does not cover: what a history does with odd readings (``tests.history``).
"""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.history import series
from koordlet.model import meter
from tests.kit import counting

Values = Mapping[meter.Meter, float]


def past(
    *,
    groups: Mapping[str, Values] | None = None,
    node: Values | None = None,
    until: float = 100.0,
    seconds: int = 20,
) -> series.History:
    """What is known at ``until`` after so many seconds of the same rates and amounts.

    A subject that lacks a meter of another one is missing there.
    """
    made = series.History()
    several = {"groups": groups or {}, "node": {} if node is None else {"": node}}
    for step in range(seconds + 1):
        at = until - seconds + step
        readings = {}
        for kind, subjects in several.items():
            known = {what for values in subjects.values() for what in values}
            columns = {
                what: [
                    values.get(what, float("nan")) * (step if what.counter else 1)
                    for values in subjects.values()
                ]
                for what in known
            }
            readings[kind] = counting.reading(at, columns, names=subjects)
        made.take(readings)
    return made


def used_node(*, until: float = 100.0, seconds: int = 300) -> series.History:
    """A node of which a report is made: 1.5 cores and a GiB in these seconds."""
    use = {meter.CPU: 1.5, meter.WORKING_SET: 2.0**30}
    return past(node=use, until=until, seconds=seconds)
