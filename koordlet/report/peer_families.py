"""Metric families under the names and labels of Koordinator's agent, for dashboards that exist.

Covers: use, pressure, predictions, requests and limits. Does not cover: pools and suppression,
which stand beside their policies. Values are in cores and bytes, memory without page cache;
``node`` is on every series.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator

from koordlet.model import meter, pod, qos, resources
from koordlet.report import families, usage_families, view

#: Cores and bytes in one family: no byte is lost.
_EXACT = "%.15g"
_CORE, _BYTE = ("cpu", "core"), ("memory", "byte")
_POD = ("pod_uid", "pod_name", "pod_namespace")
_CONTAINER = ("container_id", "container_name")
_PSI = ("psi_resource_type", "psi_precision", "psi_degree")
#: The peer's word where it is not the kernel's.
_PSI_RESOURCE = {"memory": "mem"}
#: Of its predictors, the one that takes the smaller of both estimates.
_PREDICTOR = "minPredictor"


def _node(now: view.ReportView) -> str:
    return now.snapshot.node.name


def _two(
    cpu: Callable[[view.ReportView], float | None],
    memory: Callable[[view.ReportView], float | None],
) -> Callable[[view.ReportView], families.Rows]:
    """A row of CPU and a row of memory."""
    return lambda now: (
        ((_node(now), *_CORE), cpu(now)),
        ((_node(now), *_BYTE), memory(now)),
    )


def _system(what: meter.Meter) -> Callable[[view.ReportView], float | None]:
    return lambda now: now.used.shares.value("system", what)


def _used(what: meter.Meter) -> Callable[[view.ReportView], float | None]:
    return lambda now: now.used.node.value("", what)


def _numa(now: view.ReportView) -> families.Rows:
    for what, words in ((meter.CPU, _CORE), (meter.WORKING_SET, _BYTE)):
        for node, value in now.used.numa.values(what):
            yield (_node(now), node, *words), value


def _host_applications(now: view.ReportView) -> families.Rows:
    for one in now.snapshot.pods:
        if not usage_families.is_host_application(one) or one.group is None:
            continue
        band = one.band or qos.Band.of(one.priority)
        kind = f"koord-{band.name.lower()}" if band is not None else ""
        for what, word in ((meter.CPU, "cpu"), (meter.MEMORY_ANON, "memory")):
            value = now.used.groups.value(one.group, what)
            yield (_node(now), one.name, word, kind, one.qos.value), value


def _pods(now: view.ReportView) -> Iterator[tuple[tuple[str, ...], str]]:
    for one in now.snapshot.pods:
        if one.group is not None and not usage_families.is_host_application(one):
            yield (_node(now), one.uid, one.name, one.namespace), one.group


def _containers(now: view.ReportView) -> Iterator[tuple[tuple[str, ...], str]]:
    for one in now.snapshot.pods:
        for part in one.containers:
            if part.group is not None:
                labels = (_node(now), part.url, part.name, one.uid, one.name, one.namespace)
                yield labels, part.group


def _psi(subjects: usage_families.Subjects) -> Callable[[view.ReportView], families.Rows]:
    def rows(now: view.ReportView) -> families.Rows:
        for labels, group in subjects(now):
            for one in meter.PRESSURES:
                full = now.used.groups.value(group, one.full[0]) is not None
                for degree, meters in (("some", one.some), ("full", one.full)):
                    for seconds, what in zip(meter.AVERAGES, meters, strict=False):
                        name = _PSI_RESOURCE.get(one.resource, one.resource)
                        words = (name, f"avg{seconds}", degree, str(full).lower())
                        yield (*labels, *words), now.used.groups.value(group, what)

    return rows


def _cpi(now: view.ReportView) -> families.Rows:
    for labels, group in _containers(now):
        for word, what in (("cycles", meter.CYCLES), ("instructions", meter.INSTRUCTIONS)):
            yield (*labels, word), now.used.work.value(group, what)


def _resources(
    read: Callable[[pod.Container], resources.Amounts],
) -> Callable[[view.ReportView], families.Rows]:
    def rows(now: view.ReportView) -> families.Rows:
        for one in now.snapshot.pods:
            for part in one.containers:
                url = part.url
                for name, amount in read(part).items():
                    labels = (_node(now), name, unit(name), one.uid, one.name, one.namespace)
                    value = amount / 1000 if name == resources.CPU else amount
                    yield (*labels, url, part.name), value

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
            unit = "core" if name == "cpu" else "byte"
            yield (_node(now), _PREDICTOR, name, unit), value

    return rows


FAMILIES = (
    families.Family(
        name="koordlet_node_used_cpu_cores",
        help="CPU use of the node, in cores.",
        labels=("node",),
        rows=lambda now: (((_node(now),), now.used.node.value("", meter.CPU)),),
    ),
    families.Family(
        name="koordlet_node_used_memory_bytes",
        help="Memory of the node that is not available, in bytes.",
        labels=("node",),
        rows=lambda now: (((_node(now),), now.used.node.value("", meter.WORKING_SET)),),
        form="%d",
    ),
    families.Family(
        name="koordlet_node_metric_node_usage",
        help="Resource use of the node.",
        labels=("node", "resource", "unit"),
        bound="2",
        rows=_two(_used(meter.CPU), _used(meter.WORKING_SET)),
        form=_EXACT,
    ),
    families.Family(
        name="koordlet_node_metric_system_usage",
        help="Resource use of the node without pods and host applications.",
        labels=("node", "resource", "unit"),
        bound="2",
        rows=_two(_system(meter.CPU_SHARE), _system(meter.MEMORY_SHARE)),
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
    families.Family(
        name="koordlet_pod_psi",
        help="PSI of a pod, in percent.",
        labels=("node", *_POD, *_PSI, "cpu_full_supported"),
        bound="18 per pod, at most 16384",
        most=16384,
        rows=_psi(_pods),
    ),
    families.Family(
        name="koordlet_container_psi",
        help="PSI of a container, in percent.",
        labels=("node", *_CONTAINER, *_POD, *_PSI, "cpu_full_supported"),
        bound="18 per container, at most 16384",
        most=16384,
        rows=_psi(_containers),
    ),
    families.Family(
        name="koordlet_container_cpi",
        help="Cycles and instructions of a container in the last counting window.",
        labels=("node", *_CONTAINER, *_POD, "cpi_field"),
        bound="2 per container, at most 8192",
        most=8192,
        rows=_cpi,
        form="%.15g",
    ),
    *(
        families.Family(
            name=f"koordlet_container_resource_{which}",
            help=f"Resource {which} of a container.",
            labels=("node", "resource", "unit", *_POD, *_CONTAINER),
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
