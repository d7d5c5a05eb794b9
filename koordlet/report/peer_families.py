"""Metric families under the names and labels of Koordinator's agent, for dashboards that exist.

Covers: use, pressure, predictions, requests and limits; the start, collecting, evictions, the CPUs
of pools, allocatable. Does not cover: sizes of pools and suppression, which stand beside their
policies, what we leave out and why (``docs/observe.md``).

Values are in cores and bytes, memory without page cache; ``node`` is on every series. The peer's
counters are called without ``_total``. So that its dashboards find them in both text formats
(OpenMetrics knows no such counter) they are gauges here; ``rate()`` takes either.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from koordlet.history import shares
from koordlet.model import meter, pod, qos, resources
from koordlet.report import families, quantities, scaled, scopes, usage_families, view

#: Cores and bytes in one family: no byte is lost.
_EXACT = "%.15g"
_PSI = ("psi_resource_type", "psi_precision", "psi_degree", "cpu_full_supported")
#: The peer's word where it is not the kernel's.
_PSI_RESOURCE = {"memory": "mem"}
#: Of its predictors, the one that takes the smaller of both estimates.
_PREDICTOR = "minPredictor"
_RESULTS = "succeeded, failed"
#: The peer asks the same under another path.
_PATHS = {"/pods": "/pods/"}


def _node(now: view.ReportView) -> str:
    return now.snapshot.node.name


def _used(table: str, subject: str) -> Callable[[view.ReportView], families.Rows]:
    """A row for each resource of one subject."""
    return lambda now: (
        ((_node(now), name, unit(name)), getattr(now.used, table).value(subject, what))
        for name, what in quantities.resources(table)
    )


def _numa(now: view.ReportView) -> families.Rows:
    for name, what in quantities.resources("numa"):
        for node, value in now.used.numa.values(what):
            yield (_node(now), node, name, unit(name)), value


def _host_applications(now: view.ReportView) -> families.Rows:
    for workload in now.snapshot.pods:
        if not scopes.is_host_application(workload) or workload.group is None:
            continue
        band = workload.band or qos.Band.of(workload.priority)
        kind = f"koord-{band.name.lower()}" if band is not None else ""
        for name, what in quantities.resources("groups"):
            labels = (_node(now), workload.name, name, kind, workload.qos.value)
            yield labels, now.used.groups.value(workload.group, what)


def _psi(
    subjects: Callable[[view.ReportView], scopes.Subjects],
) -> Callable[[view.ReportView], families.Rows]:
    def rows(now: view.ReportView) -> families.Rows:
        for labels, group in subjects(now):
            for pressure in meter.PRESSURES:
                full = now.used.groups.value(group, pressure.full[0]) is not None
                name = _PSI_RESOURCE.get(pressure.resource, pressure.resource)
                for degree, meters in (("some", pressure.some), ("full", pressure.full)):
                    for seconds, what in zip(meter.AVERAGES, meters, strict=False):
                        words = (name, f"avg{seconds}", degree, str(full).lower())
                        yield (*labels, *words), now.used.groups.value(group, what)

    return rows


def _resources(
    read: Callable[[pod.Container], resources.Amounts],
) -> Callable[[view.ReportView], families.Rows]:
    def rows(now: view.ReportView) -> families.Rows:
        for workload in now.snapshot.pods:
            names = (workload.uid, workload.name, workload.namespace)
            for box in workload.containers:
                for name, amount in read(box).items():
                    value = amount / 1000 if name == resources.CPU else amount
                    yield (_node(now), name, unit(name), *names, box.url, box.name), value

    return rows


def unit(name: str) -> str:
    """The peer's word for the unit of a resource; batch CPU is counted in thousandths."""
    if name == resources.CPU:
        return "core"
    last = name.rpartition("/")[2]
    sized = last.endswith(("memory", "storage")) or last.startswith("hugepages-")
    return "byte" if sized else "integer"


def _predicted(which: str) -> Callable[[view.ReportView], families.Rows]:
    def rows(now: view.ReportView) -> families.Rows:
        for name, value in getattr(now.predicted, which).items():
            yield (_node(now), _PREDICTOR, name, unit(name)), value

    return rows


def _collected(what: str) -> Callable[[view.ReportView], families.Rows]:
    """Both results, once this was tried at all."""

    def rows(now: view.ReportView) -> families.Rows:
        counted = now.counters.collected.get(what)
        if counted is not None:
            yield (_node(now), "succeeded"), counted[0]
            yield (_node(now), "failed"), counted[1]

    return rows


def _evicted(now: view.ReportView) -> families.Rows:
    """Evicted pods by reason."""
    counted: dict[str, int] = {}
    for (policy, signal, outcome), count in now.counters.evictions.items():
        if outcome == "evicted":
            reason = f"{policy}/{signal}"
            counted[reason] = counted.get(reason, 0) + count
    return (((_node(now), reason), count) for reason, count in counted.items())


def _members(kind: str) -> Callable[[view.ReportView], families.Rows]:
    """A series of 1 for each CPU of a pool."""
    return lambda now: (((_node(now), str(cpu)), 1) for cpu in now.plan.ledger.pool(kind))


def _allocatable(now: view.ReportView) -> families.Rows:
    for name, amount in now.snapshot.node.allocatable.items():
        value = amount / 1000 if name == resources.CPU else amount
        yield (_node(now), name, unit(name)), value


def _scaled(what: str) -> Callable[[view.ReportView], families.Rows]:
    """Containers whose limit or burst we have set."""

    def rows(now: view.ReportView) -> families.Rows:
        if now.scaled:
            for pod in now.snapshot.pods:
                for part in pod.containers:
                    labels = (_node(now), pod.namespace, pod.name, part.url, part.name)
                    yield labels, now.scaled.get((what, part.group or ""))

    return rows


def _scores(now: view.ReportView) -> families.Rows:
    """Highest score of each container's processes, where ``oom_score`` reads them."""
    for workload in now.snapshot.pods if now.snapshot.oom_scores else ():
        for part in workload.containers:
            scores = now.snapshot.oom_scores.get(part.group or "")
            if scores:
                labels = (_node(now), workload.uid, workload.name, workload.namespace, part.name)
                yield labels, max(scores.values())


def _kubelet(now: view.ReportView) -> families.Rows:
    for (path, status), durations in now.took.items():
        labels = (_node(now), "get", _PATHS.get(path, path), status)
        yield from families.spread_rows(labels, durations)


FAMILIES = (
    *usage_families.of(scopes.PEER_NODE),
    families.Family(
        name="koordlet_node_metric_node_usage",
        help="Resource use of the node.",
        labels=("node", "resource", "unit"),
        bound="2",
        rows=_used("node", ""),
        form=_EXACT,
    ),
    families.Family(
        name="koordlet_node_metric_system_usage",
        help="Resource use of the node without pods and host applications.",
        labels=("node", "resource", "unit"),
        bound="2",
        rows=_used("shares", shares.SYSTEM),
        form=_EXACT,
    ),
    families.Family(
        name="koordlet_node_metric_numa_node_usage",
        help="Resource use of a NUMA node.",
        labels=("node", "numa_node_id", "resource", "unit"),
        bound="2 per NUMA node",
        rows=_numa,
        form=_EXACT,
    ),
    families.Family(
        name="koordlet_host_application_resource_usage",
        help="Resource use of a host application (a workload outside Kubernetes).",
        labels=("node", "host_application_name", "resource", "priority_class", "qos"),
        bound="2 per host application, at most 1024",
        most=1024,
        rows=_host_applications,
        form=_EXACT,
    ),
    *(
        families.Family(
            name=f"koordlet_{kind}_psi",
            help=f"PSI of a {kind}, in percent.",
            labels=("node", *labels, *_PSI),
            bound=f"18 per {kind}, at most 16384",
            most=16384,
            rows=_psi(subjects),
        )
        for kind, labels, subjects in (
            ("pod", scopes.PEER_POD, scopes.peer_pods),
            ("container", (*scopes.PEER_CONTAINER, *scopes.PEER_POD), scopes.peer_containers),
        )
    ),
    *usage_families.of(scopes.PEER_CONTAINERS),
    *(
        families.Family(
            name=f"koordlet_container_resource_{which}",
            help=f"Resource {which} of a container.",
            labels=("node", "resource", "unit", *scopes.PEER_POD, *scopes.PEER_CONTAINER),
            bound="one per resource of a container, at most 16384",
            most=16384,
            rows=_resources(operator.attrgetter(which)),
            form=_EXACT,
        )
        for which in ("requests", "limits")
    ),
    *(
        families.Family(
            name=f"koordlet_node_predicted_resource_{which}",
            help=text,
            labels=("node", "predictor", "resource", "unit"),
            bound="2",
            rows=_predicted(which),
            form=_EXACT,
        )
        for which, text in (
            ("reclaimable", "Requested by prod workloads, but not needed at their predicted peak."),
            ("peak", "Predicted peak demand of prod workloads."),
        )
    ),
    families.Family(
        name="koordlet_start_time",
        help="Unix time at which the agent started.",
        labels=("node",),
        rows=lambda now: (((_node(now),), now.counters.started),),
        form="%d",
    ),
    *(
        families.Family(
            name=f"koordlet_collect_node_{what}_status",
            help=f"Ticks by whether {text} could be read ({_RESULTS}).",
            labels=("node", "status"),
            bound="2",
            rows=_collected(what),
            form="%d",
        )
        for what, text in (
            ("cpu_info", "the processor topology"),
            ("numa_info", "the NUMA topology"),
            ("local_storage_info", "file system usage"),
        )
    ),
    families.Family(
        name="koordlet_pod_eviction",
        help="Evicted pods, by policy and signal.",
        labels=("node", "reason"),
        bound="evicting policies times their signals, at most 128",
        most=128,
        rows=_evicted,
        form="%d",
    ),
    *(
        families.Family(
            name=f"koordlet_cpuset_{stem}share_pool_info",
            help=f"1 for each CPU of the {kind} pool, under Koordinator's metric name.",
            labels=("node", "cpu"),
            bound="one per CPU, at most 4096",
            most=4096,
            rows=_members(kind),
            form="%d",
        )
        for stem, kind in (("", "LS"), ("be_", "BE"))
    ),
    *(
        families.Family(
            name=f"koordlet_container_scaled_cfs_{what}_us",
            help=f"{text} of a container as cpu_burst last wrote it, in microseconds.",
            labels=("node", "pod_namespace", "pod_name", "container_id", "container_name"),
            bound="one per container, at most 8192",
            most=8192,
            rows=_scaled(what),
            form="%d",
        )
        for what, text in ((scaled.QUOTA, "CFS quota"), (scaled.BURST, "CFS burst"))
    ),
    families.Family(
        name="koordlet_container_oom_score_adj",
        help="Highest oom_score_adj of a container's processes; only if the policy oom_score is"
        " on.",
        labels=("node", "pod_uid", "pod_name", "pod_namespace", "container_name"),
        bound="one per container, at most 8192",
        most=8192,
        rows=_scores,
        form="%d",
    ),
    families.Family(
        name="koordlet_kubelet_request_duration_seconds",
        help="Duration of kubelet requests.",
        type=families.HISTOGRAM,
        labels=("node", "verb", "path", "code"),
        bound="10 per path and status, at most 640",
        most=640,
        rows=_kubelet,
    ),
    families.Family(
        name="koordlet_node_resource_allocatable",
        help="Allocatable resources of the Node, including batch and mid resources.",
        labels=("node", "resource", "unit"),
        bound="one per resource of the node, at most 256",
        rows=_allocatable,
        form="%.15g",
    ),
)
