"""Metric families of single features: best-effort control, runtime, resource control. Pure.

Covers: the limit of best-effort work, who used what, what is offered; the connection to the runtime
and what became of answers; resource claims; occupancy, traffic and groups of resource control. Our
own names, and the peer's for suppression and for the three classes.
Does not cover: computing and counting (``policy``, ``agent.nri.adapter``,
``host.resctrl.monitor``).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from koordlet.model import resctrl
from koordlet.report import families, view

# Best-effort control ------------------------------------------------------------------------------

BEST_EFFORT = families.Families()


@BEST_EFFORT.family("resource", bound="4", form="%.15g")
def koordlet_best_effort_offered(now: view.ReportView) -> families.Rows:
    """Batch and mid resources offered by this node: CPU in cores, memory in bytes."""
    offer = now.plan.offer
    for name, amount in sorted(offer.amounts.items()) if offer is not None else ():
        yield (name,), amount / 1000 if name.endswith("cpu") else amount


@BEST_EFFORT.family("policy", "actuator", bound="1 per node")
def koordlet_best_effort_limit_cores(now: view.ReportView) -> families.Rows:
    """CPU limit of best-effort work, in cores; absent if there is no limit."""
    limit = view.acting(now)
    if limit is not None and limit.milli is not None:
        yield (limit.policy, limit.actuator), limit.milli / 1000


@BEST_EFFORT.family("node", "type", bound="1 per node", group=families.PEER)
def koordlet_be_suppress_cpu_cores(now: view.ReportView) -> families.Rows:
    """CPU limit of best-effort work, under Koordinator's metric name."""
    # Only its two actuators are types there.
    for (_, actuator), cores in koordlet_best_effort_limit_cores(now):
        if actuator in ("cpuset", "cfsQuota"):
            yield (now.snapshot.node.name, actuator), cores


@BEST_EFFORT.family("node", group=families.PEER)
def koordlet_be_suppress_ls_used_cpu_cores(now: view.ReportView) -> families.Rows:
    """CPU use of latency-sensitive work, in cores."""
    value = None if now.plan.limit is None else now.plan.limit.ls_milli
    yield (now.snapshot.node.name,), None if value is None else value / 1000


@BEST_EFFORT.family("node", group=families.PEER)
def koordlet_be_suppress_be_used_cpu_cores(now: view.ReportView) -> families.Rows:
    """CPU use of best-effort work, in cores."""
    value = None if now.plan.limit is None else now.plan.limit.be_milli
    yield (now.snapshot.node.name,), None if value is None else value / 1000


# Container runtime --------------------------------------------------------------------------------

RUNTIME = families.Families()


def _runtime(now: view.ReportView, key: str) -> families.Rows:
    """A number that is known while there is a connection."""
    if key in now.runtime:
        yield (), now.runtime[key]


@RUNTIME.family(form="%d")
def koordlet_nri_connected(now: view.ReportView) -> families.Rows:
    """1 while koordlet is connected to the container runtime through NRI."""
    return _runtime(now, "connected")


@RUNTIME.family(form="%d")
def koordlet_nri_adjusting(now: view.ReportView) -> families.Rows:
    """1 if koordlet adjusts containers at creation, 0 after too many of them failed to start."""
    return _runtime(now, "adjusting")


@RUNTIME.family("outcome", kind=families.COUNTER, bound="3 outcomes", form="%d")
def koordlet_nri_checked(now: view.ReportView) -> families.Rows:
    """Containers whose CPUs koordlet checked before their first instruction, by outcome."""
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
RUNTIME += (
    families.Family(
        name=f"koordlet_nri_{key}",
        help=text,
        type=families.COUNTER,
        rows=functools.partial(_runtime, key=key),
        form="%d",
    )
    for key, text in _RUNTIME_COUNTERS.items()
)


# Resource claims ----------------------------------------------------------------------------------

CLAIMS = families.Families()


@CLAIMS.family(form="%d")
def koordlet_dra_driver_claims(now: view.ReportView) -> families.Rows:
    """Resource claims that are prepared on this node."""
    if "claims" in now.driver:
        yield (), now.driver["claims"]


@CLAIMS.family("outcome", kind=families.COUNTER, bound="3 outcomes", form="%d")
def koordlet_dra_driver_asked(now: view.ReportView) -> families.Rows:
    """Answers to the kubelet about single resource claims, by outcome."""
    for outcome in ("prepared", "refused", "unprepared"):
        if outcome in now.driver:
            yield (outcome,), now.driver[outcome]


# Shutdown -----------------------------------------------------------------------------------------

SHUTDOWN = families.Families()


@SHUTDOWN.family(form="%.3f")
def koordlet_node_shutdown_start_time_seconds(now: view.ReportView) -> families.Rows:
    """When the shutdown of this node began, which workloads end for; Unix time."""
    if "start" in now.shutdown:
        yield (), now.shutdown["start"]


@SHUTDOWN.family(form="%.3f")
def koordlet_node_shutdown_end_time_seconds(now: view.ReportView) -> families.Rows:
    """When all workloads had ended, or their time was over; Unix time."""
    if "end" in now.shutdown:
        yield (), now.shutdown["end"]


# Resource control ---------------------------------------------------------------------------------

RESCTRL = families.Families()
_CLASSES = ("LSR", "LS", "BE")


@RESCTRL.family(form="%d")
def koordlet_resctrl_groups(now: view.ReportView) -> families.Rows:
    """Resctrl control groups, including the root group."""
    if now.snapshot.resctrl is not None:
        yield (), len(now.snapshot.resctrl.groups)


def _usage(now: view.ReportView) -> Iterator[tuple[tuple[str, str], resctrl.Usage]]:
    """The labels and the numbers of each group and domain."""
    control = now.snapshot.resctrl
    for usage in control.usage if control is not None else ():
        yield (usage.group or "root", usage.domain), usage


_of_groups = functools.partial(
    RESCTRL.family, "group", "domain", bound="one per group and L3 domain", most=4096
)


@_of_groups(form="%d")
def koordlet_resctrl_llc_bytes(now: view.ReportView) -> families.Rows:
    """Last-level cache occupied by a resctrl group in an L3 domain."""
    return ((labels, usage.llc_bytes) for labels, usage in _usage(now))


@_of_groups(kind=families.COUNTER, form="%d")
def koordlet_resctrl_memory_bytes(now: view.ReportView) -> families.Rows:
    """Memory traffic of a resctrl group in an L3 domain."""
    return ((labels, usage.total_bytes) for labels, usage in _usage(now))


@_of_groups(kind=families.COUNTER, form="%d")
def koordlet_resctrl_memory_local_bytes(now: view.ReportView) -> families.Rows:
    """Memory traffic of a resctrl group in an L3 domain to local memory."""
    return ((labels, usage.local_bytes) for labels, usage in _usage(now))


@_of_groups(group=families.DEPRECATED)
def koordlet_resctrl_memory_bytes_per_second(now: view.ReportView) -> families.Rows:
    """Memory bandwidth of a resctrl group; now rate(koordlet_resctrl_memory_bytes_total)."""
    return ((labels, usage.total_rate) for labels, usage in _usage(now))


def _of_classes(**names: str) -> families.Read:
    """Numbers of each class and domain, by their label; what is occupied has none."""

    def rows(now: view.ReportView) -> families.Rows:
        for (group, domain), usage in _usage(now):
            for label, name in names.items() if group in _CLASSES else ():
                more = () if label == "occupied" else (label,)
                yield (now.snapshot.node.name, domain, group, *more), getattr(usage, name)

    return rows


RESCTRL += (
    families.Family(
        name="koordlet_resctrl_llc_occupancy",
        help="Last-level cache occupied by a QoS class, under Koordinator's metric name.",
        labels=("node", "cache_id", "qos"),
        bound="3 per L3 domain",
        most=1024,
        rows=_of_classes(occupied="llc_bytes"),
        form="%d",
        group=families.PEER,
    ),
    families.Family(
        name="koordlet_resctrl_memory_bandwidth",
        help="Memory traffic of a QoS class in bytes, under Koordinator's metric name.",
        labels=("node", "cache_id", "qos", "mb_type"),
        bound="6 per L3 domain",
        most=2048,
        rows=_of_classes(local="local_bytes", total="total_bytes"),
        form="%d",
        group=families.PEER,
    ),
)
