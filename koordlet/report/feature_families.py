"""Metric families of single features: best-effort control, runtime, resource control. Pure.

Covers: the limit of best-effort work, who used what, what is offered; the connection to the runtime
and what became of answers; occupancy, traffic and groups of resource control. Our own names, and
the peer's for suppression and for the three classes.
Does not cover: computing and counting (``policy``, ``agent.nri.adapter``,
``host.resctrl.monitor``).
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from koordlet.model import best_effort
from koordlet.report import families, view

# Best-effort control ------------------------------------------------------------------------------

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


BEST_EFFORT = (
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


# Container runtime --------------------------------------------------------------------------------


def _runtime(key: str) -> Callable[[view.ReportView], families.Rows]:
    def rows(now: view.ReportView) -> families.Rows:
        if key in now.runtime:
            yield (), now.runtime[key]

    return rows


def _runtime_outcomes(now: view.ReportView) -> families.Rows:
    for outcome in ("verified", "repaired", "wrong"):
        if outcome in now.runtime:
            yield (outcome,), now.runtime[outcome]


_RUNTIME_COUNTERS = {
    "connections": "NRI connections established with the container runtime.",
    "events": "NRI events received from the container runtime.",
    "late": "NRI events answered without adjustment because the deadline passed.",
    "errors": "Failed NRI answers and malformed NRI messages.",
    "updates": "Container updates sent to the container runtime.",
    "adjusted": "Containers adjusted before they started.",
    "kept": "Container updates in which koordlet kept its CPUs instead of the requested ones.",
    "failed": "Adjusted containers that failed to start.",
}

RUNTIME = (
    families.Family(
        name="koordlet_nri_connected",
        help="1 while koordlet is connected to the container runtime through NRI.",
        rows=_runtime("connected"),
        form="%d",
    ),
    families.Family(
        name="koordlet_nri_adjusting",
        help="1 if koordlet adjusts containers at creation, 0 after too many of them failed to"
        " start.",
        rows=_runtime("adjusting"),
        form="%d",
    ),
    families.Family(
        name="koordlet_nri_checked",
        help="Containers whose CPUs koordlet checked before their first instruction, by outcome.",
        type=families.COUNTER,
        labels=("outcome",),
        bound="3 outcomes",
        rows=_runtime_outcomes,
        form="%d",
    ),
    *(
        families.Family(
            name=f"koordlet_nri_{key}",
            help=text,
            type=families.COUNTER,
            rows=_runtime(key),
            form="%d",
        )
        for key, text in _RUNTIME_COUNTERS.items()
    ),
)


# Resource control ---------------------------------------------------------------------------------

_CLASSES = ("LSR", "LS", "BE")
_PEER = "under Koordinator's metric name."
_DOMAIN = "a resctrl group in an L3 domain"


def _of_groups(name: str) -> Callable[[view.ReportView], families.Rows]:
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


RESCTRL = (
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
            rows=_of_groups(attribute),
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
