"""Metric families of resource control: occupancy, traffic, and the groups that exist. Pure.

Covers: our own names for every group, the peer's names for the three classes.
Does not cover: reading the counters (``host.resctrl.monitor``).
"""

from __future__ import annotations

from collections.abc import Callable

from koordlet.model import resctrl
from koordlet.report import families, view

_CLASSES = ("LSR", "LS", "BE")
_MANY = "one for each group and L3 domain, at most 4096"


def _usage(read: Callable[[resctrl.Usage], float | None]) -> Callable[[view.View], families.Rows]:
    def rows(now: view.View) -> families.Rows:
        found = now.snapshot.resctrl
        for one in found.usage if found is not None else ():
            yield (one.group or "root", one.domain), read(one)

    return rows


def _of_classes(
    read: Callable[[resctrl.Usage], tuple[tuple[tuple[str, ...], float | None], ...]],
) -> Callable[[view.View], families.Rows]:
    def rows(now: view.View) -> families.Rows:
        found = now.snapshot.resctrl
        for one in found.usage if found is not None else ():
            if one.group in _CLASSES:
                for labels, value in read(one):
                    yield (now.snapshot.node.name, one.domain, one.group, *labels), value

    return rows


def _groups(now: view.View) -> families.Rows:
    found = now.snapshot.resctrl
    if found is not None:
        yield (), len(found.groups)


FAMILIES = (
    families.Family(
        name="koordlet_resctrl_groups",
        help="Control groups of resctrl, the root group among them.",
        rows=_groups,
        form="%d",
    ),
    families.Family(
        name="koordlet_resctrl_llc_bytes",
        help="Last-level cache that a group occupies in a domain.",
        labels=("group", "domain"),
        bound=_MANY,
        most=4096,
        rows=_usage(lambda one: one.llc_bytes),
        form="%d",
    ),
    families.Family(
        name="koordlet_resctrl_memory_bytes",
        help="Memory traffic of a group in a domain.",
        type=families.COUNTER,
        labels=("group", "domain"),
        bound=_MANY,
        most=4096,
        rows=_usage(lambda one: one.total_bytes),
        form="%d",
    ),
    families.Family(
        name="koordlet_resctrl_memory_local_bytes",
        help="Memory traffic of a group in a domain to the memory next to it.",
        type=families.COUNTER,
        labels=("group", "domain"),
        bound=_MANY,
        most=4096,
        rows=_usage(lambda one: one.local_bytes),
        form="%d",
    ),
    families.Family(
        name="koordlet_resctrl_memory_bytes_per_second",
        help="Memory traffic of a group in a domain, since the look before.",
        labels=("group", "domain"),
        bound=_MANY,
        most=4096,
        rows=_usage(lambda one: one.total_rate),
    ),
    families.Family(
        name="koordlet_resctrl_llc_occupancy",
        help="Last-level cache of a class, under the name and labels of Koordinator's agent.",
        labels=("node", "cache_id", "qos"),
        bound="3 for each L3 domain",
        most=1024,
        rows=_of_classes(lambda one: (((), one.llc_bytes),)),
        form="%d",
    ),
    families.Family(
        name="koordlet_resctrl_memory_bandwidth",
        help="Bytes of memory traffic of a class, under the name and labels of the peer's agent.",
        labels=("node", "cache_id", "qos", "mb_type"),
        bound="6 for each L3 domain",
        most=2048,
        rows=_of_classes(
            lambda one: ((("local",), one.local_bytes), (("total",), one.total_bytes))
        ),
        form="%d",
    ),
)
