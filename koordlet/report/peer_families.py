"""Metric families under the names and labels of Koordinator's agent, for dashboards that exist.

Covers: use, pressure, predictions, requests and limits. Does not cover: pools and suppression,
which stand beside their policies. Values are in cores and bytes, memory without page cache;
``node`` is on every series.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from koordlet.history import shares
from koordlet.model import meter, pod, qos, resources
from koordlet.report import families, quantities, scopes, usage_families, view

#: Cores and bytes in one family: no byte is lost.
_EXACT = "%.15g"
_PSI = ("psi_resource_type", "psi_precision", "psi_degree", "cpu_full_supported")
#: The peer's word where it is not the kernel's.
_PSI_RESOURCE = {"memory": "mem"}
#: Of its predictors, the one that takes the smaller of both estimates.
_PREDICTOR = "minPredictor"


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
)
