"""Metric families of best-effort control: its limit, who used what, what is offered. Pure.

Covers: our own names, and the peer's for suppression. Does not cover: computing (``policy``).
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from koordlet.model import best_effort
from koordlet.report import families, view

_Read = Callable[[best_effort.Limit], int | None]


def _cores(read: _Read) -> Callable[[view.ReportView], families.Rows]:
    """One number of the limit, in cores, labelled with the node's name."""

    def rows(now: view.ReportView) -> families.Rows:
        limit = now.plan.limit
        value = None if limit is None else read(limit)
        yield (now.snapshot.node.name,), None if value is None else value / 1000

    return rows


def _limits(now: view.ReportView) -> families.Rows:
    limit = view.acting(now)
    if limit is not None and limit.milli is not None:
        yield (limit.policy, limit.actuator), limit.milli / 1000


def _suppressed(now: view.ReportView) -> families.Rows:
    """The peer's form: only its two actuators are types there."""
    limit = view.acting(now)
    if limit is not None and limit.milli is not None and limit.actuator in ("cpuset", "cfsQuota"):
        yield (now.snapshot.node.name, limit.actuator), limit.milli / 1000


def _offered(now: view.ReportView) -> families.Rows:
    """CPU in cores, memory in bytes."""
    offer = now.plan.offer
    for name, amount in sorted(offer.amounts.items()) if offer is not None else ():
        yield (name,), amount / 1000 if name.endswith("cpu") else amount


FAMILIES = (
    families.Family(
        name="koordlet_best_effort_offered",
        help="Batch and mid resources offered by this node: CPU in cores, memory in bytes.",
        labels=("resource",),
        bound="4",
        rows=_offered,
        form="%.15g",
    ),
    families.Family(
        name="koordlet_best_effort_limit_cores",
        help="CPU limit of best-effort work, in cores; absent if there is no limit.",
        labels=("policy", "actuator"),
        bound="1 per node",
        rows=_limits,
    ),
    families.Family(
        name="koordlet_be_suppress_cpu_cores",
        help="CPU limit of best-effort work, under Koordinator's metric name.",
        labels=("node", "type"),
        bound="1 per node",
        rows=_suppressed,
    ),
    *(
        families.Family(
            name=f"koordlet_be_suppress_{kind}_used_cpu_cores",
            help=f"CPU use of {work} work, in cores.",
            labels=("node",),
            rows=_cores(operator.attrgetter(f"{kind}_milli")),
        )
        for kind, work in (("ls", "latency-sensitive"), ("be", "best-effort"))
    ),
)
