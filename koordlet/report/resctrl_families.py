"""Metric families of resource control: occupancy, traffic, and the groups that exist. Pure.

Covers: our own names for every group, the peer's names for the three classes.
Does not cover: reading the counters (``host.resctrl.monitor``).
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from koordlet.report import families, view

_CLASSES = ("LSR", "LS", "BE")
_PEER = "under Koordinator's metric name."
_DOMAIN = "a resctrl group in an L3 domain"


def _usage(name: str) -> Callable[[view.ReportView], families.Rows]:
    """A number of each group and domain."""
    read = operator.attrgetter(name)

    def rows(now: view.ReportView) -> families.Rows:
        control = now.snapshot.resctrl
        for usage in control.usage if control is not None else ():
            yield (usage.group or "root", usage.domain), read(usage)

    return rows


def _of_classes(**names: str) -> Callable[[view.ReportView], families.Rows]:
    """Numbers of each class and domain, by their label; what is occupied has none."""

    def rows(now: view.ReportView) -> families.Rows:
        control = now.snapshot.resctrl
        for usage in control.usage if control is not None else ():
            if usage.group in _CLASSES:
                for label, name in names.items():
                    labels = (now.snapshot.node.name, usage.domain, usage.group)
                    more = () if label == "occupied" else (label,)
                    yield (*labels, *more), getattr(usage, name)

    return rows


def _groups(now: view.ReportView) -> families.Rows:
    control = now.snapshot.resctrl
    if control is not None:
        yield (), len(control.groups)


FAMILIES = (
    families.Family(
        name="koordlet_resctrl_groups",
        help="Resctrl control groups, including the root group.",
        rows=_groups,
        form="%d",
    ),
    *(
        families.Family(
            name=f"koordlet_resctrl_{name}",
            help=text,
            type=kind,
            labels=("group", "domain"),
            bound="one per group and L3 domain, at most 4096",
            most=4096,
            rows=_usage(attribute),
            form=form,
        )
        for name, text, kind, attribute, form in (
            (
                *("llc_bytes", f"Last-level cache occupied by {_DOMAIN}."),
                *(families.GAUGE, "llc_bytes", "%d"),
            ),
            (
                *("memory_bytes", f"Memory traffic of {_DOMAIN}."),
                *(families.COUNTER, "total_bytes", "%d"),
            ),
            (
                *("memory_local_bytes", f"Memory traffic of {_DOMAIN} to local memory."),
                *(families.COUNTER, "local_bytes", "%d"),
            ),
            (
                "memory_bytes_per_second",
                f"Memory bandwidth of {_DOMAIN} since the last reading.",
                *(families.GAUGE, "total_rate", families.FORM),
            ),
        )
    ),
    families.Family(
        name="koordlet_resctrl_llc_occupancy",
        help=f"Last-level cache occupied by a QoS class, {_PEER}",
        labels=("node", "cache_id", "qos"),
        bound="3 per L3 domain",
        most=1024,
        rows=_of_classes(occupied="llc_bytes"),
        form="%d",
    ),
    families.Family(
        name="koordlet_resctrl_memory_bandwidth",
        help=f"Memory traffic of a QoS class in bytes, {_PEER}",
        labels=("node", "cache_id", "qos", "mb_type"),
        bound="6 per L3 domain",
        most=2048,
        rows=_of_classes(local="local_bytes", total="total_bytes"),
        form="%d",
    ),
)
