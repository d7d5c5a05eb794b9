"""Metric families of resource control: occupancy, traffic, and the groups that exist. Pure.

Covers: our own names for every group, the peer's names for the three classes.
Does not cover: reading the counters (``host.resctrl.monitor``).
"""

from __future__ import annotations

from collections.abc import Callable

from koordlet.model import resctrl
from koordlet.report import families, view

_CLASSES = ("LSR", "LS", "BE")
_MANY = "one per group and L3 domain, at most 4096"


def _usage(
    read: Callable[[resctrl.Usage], float | None],
) -> Callable[[view.ReportView], families.Rows]:
    def rows(now: view.ReportView) -> families.Rows:
        found = now.snapshot.resctrl
        for one in found.usage if found is not None else ():
            yield (one.group or "root", one.domain), read(one)

    return rows


def _of_classes(
    read: Callable[[resctrl.Usage], tuple[tuple[tuple[str, ...], float | None], ...]],
) -> Callable[[view.ReportView], families.Rows]:
    def rows(now: view.ReportView) -> families.Rows:
        found = now.snapshot.resctrl
        for one in found.usage if found is not None else ():
            if one.group in _CLASSES:
                for labels, value in read(one):
                    yield (now.snapshot.node.name, one.domain, one.group, *labels), value

    return rows


def _groups(now: view.ReportView) -> families.Rows:
    found = now.snapshot.resctrl
    if found is not None:
        yield (), len(found.groups)


FAMILIES = (
    families.Family(
        name="koordlet_resctrl_groups",
        help="Resctrl control groups, including the root group.",
        rows=_groups,
        form="%d",
    ),
    families.Family(
        name="koordlet_resctrl_llc_bytes",
        help="Last-level cache occupied by a resctrl group in an L3 domain.",
        labels=("group", "domain"),
        bound=_MANY,
        most=4096,
        rows=_usage(lambda one: one.llc_bytes),
        form="%d",
    ),
    families.Family(
        name="koordlet_resctrl_memory_bytes",
        help="Memory traffic of a resctrl group in an L3 domain.",
        type=families.COUNTER,
        labels=("group", "domain"),
        bound=_MANY,
        most=4096,
        rows=_usage(lambda one: one.total_bytes),
        form="%d",
    ),
    families.Family(
        name="koordlet_resctrl_memory_local_bytes",
        help="Memory traffic of a resctrl group in an L3 domain to local memory.",
        type=families.COUNTER,
        labels=("group", "domain"),
        bound=_MANY,
        most=4096,
        rows=_usage(lambda one: one.local_bytes),
        form="%d",
    ),
    families.Family(
        name="koordlet_resctrl_memory_bytes_per_second",
        help="Memory bandwidth of a resctrl group in an L3 domain since the last reading.",
        labels=("group", "domain"),
        bound=_MANY,
        most=4096,
        rows=_usage(lambda one: one.total_rate),
    ),
    families.Family(
        name="koordlet_resctrl_llc_occupancy",
        help="Last-level cache occupied by a QoS class, under Koordinator's metric name.",
        labels=("node", "cache_id", "qos"),
        bound="3 per L3 domain",
        most=1024,
        rows=_of_classes(lambda one: (((), one.llc_bytes),)),
        form="%d",
    ),
    families.Family(
        name="koordlet_resctrl_memory_bandwidth",
        help="Memory traffic of a QoS class in bytes, under Koordinator's metric name.",
        labels=("node", "cache_id", "qos", "mb_type"),
        bound="6 per L3 domain",
        most=2048,
        rows=_of_classes(
            lambda one: ((("local",), one.local_bytes), (("total",), one.total_bytes))
        ),
        form="%d",
    ),
)
