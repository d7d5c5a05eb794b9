"""Metric families under the names and labels of Koordinator's agent, for dashboards that exist.

Covers: use, pressure, predictions, requests and limits; the start, collecting, evictions, the CPUs
of pools, allocatable. Does not cover: sizes of pools and suppression, which stand beside their
policies, what we leave out and why (``docs/observe.md``).

Values are in cores and bytes, memory without page cache; ``node`` is on every series. The peer's
counters are called without ``_total``. So that its dashboards find them in both text formats
(OpenMetrics knows no such counter) they are gauges here; ``rate()`` takes either.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

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
#: The peer asks the same under another path.
_PATHS = {"/pods": "/pods/"}

FAMILIES = families.Families(usage_families.of(scopes.PEER_NODE), group=families.PEER)
_amounts = functools.partial(FAMILIES.family, "node", "resource", "unit", form=_EXACT)


def _node(now: view.ReportView) -> str:
    return now.snapshot.node.name


def unit(name: str) -> str:
    """The peer's word for the unit of a resource; batch CPU is counted in thousandths."""
    if name == resources.CPU:
        return "core"
    last = name.rpartition("/")[2]
    sized = last.endswith(("memory", "storage")) or last.startswith("hugepages-")
    return "byte" if sized else "integer"


@_amounts(bound="2")
def koordlet_node_metric_node_usage(now: view.ReportView) -> families.Rows:
    """Resource use of the node."""
    for name, what in quantities.resources("node"):
        yield (_node(now), name, unit(name)), now.used.node.value("", what)


@_amounts(bound="2")
def koordlet_node_metric_system_usage(now: view.ReportView) -> families.Rows:
    """Resource use of the node without pods and host applications."""
    for name, what in quantities.resources("shares"):
        yield (_node(now), name, unit(name)), now.used.shares.value(shares.SYSTEM, what)


@FAMILIES.family(
    *("node", "numa_node_id", "resource", "unit"), bound="2 per NUMA node", form=_EXACT
)
def koordlet_node_metric_numa_node_usage(now: view.ReportView) -> families.Rows:
    """Resource use of a NUMA node."""
    for name, what in quantities.resources("numa"):
        for node, value in now.used.numa.values(what):
            yield (_node(now), node, name, unit(name)), value


@FAMILIES.family(
    *("node", "host_application_name", "resource", "priority_class", "qos"),
    bound="2 per host application",
    most=1024,
    form=_EXACT,
)
def koordlet_host_application_resource_usage(now: view.ReportView) -> families.Rows:
    """Resource use of a host application (a workload outside Kubernetes)."""
    for workload in now.snapshot.pods:
        if not scopes.is_host_application(workload) or workload.group is None:
            continue
        band = workload.band or qos.Band.of(workload.priority)
        kind = f"koord-{band.name.lower()}" if band is not None else ""
        for name, what in quantities.resources("groups"):
            labels = (_node(now), workload.name, name, kind, workload.qos.value)
            yield labels, now.used.groups.value(workload.group, what)


def _psi(now: view.ReportView, subjects: scopes.Subjects) -> families.Rows:
    for labels, group in subjects:
        for pressure in meter.PRESSURES:
            full = now.used.groups.value(group, pressure.full[0]) is not None
            name = _PSI_RESOURCE.get(pressure.resource, pressure.resource)
            for degree, meters in (("some", pressure.some), ("full", pressure.full)):
                for seconds, what in zip(meter.AVERAGES, meters, strict=False):
                    words = (name, f"avg{seconds}", degree, str(full).lower())
                    yield (*labels, *words), now.used.groups.value(group, what)


@FAMILIES.family("node", *scopes.PEER_POD, *_PSI, bound="18 per pod", most=16384)
def koordlet_pod_psi(now: view.ReportView) -> families.Rows:
    """PSI of a pod, in percent."""
    return _psi(now, scopes.peer_pods(now))


_CONTAINER = (*scopes.PEER_CONTAINER, *scopes.PEER_POD)


@FAMILIES.family("node", *_CONTAINER, *_PSI, bound="18 per container", most=16384)
def koordlet_container_psi(now: view.ReportView) -> families.Rows:
    """PSI of a container, in percent."""
    return _psi(now, scopes.peer_containers(now))


FAMILIES += usage_families.of(scopes.PEER_CONTAINERS)

_of_containers = functools.partial(
    FAMILIES.family,
    *("node", "resource", "unit", *scopes.PEER_POD, *scopes.PEER_CONTAINER),
    bound="one per resource of a container",
    most=16384,
    form=_EXACT,
)


def _resources(
    now: view.ReportView, read: Callable[[pod.Container], resources.Amounts]
) -> families.Rows:
    for workload in now.snapshot.pods:
        names = (workload.uid, workload.name, workload.namespace)
        for box in workload.containers:
            for (name, word), value in _known(read(box)):
                yield (_node(now), name, word, *names, box.url, box.name), value


def _known(amounts: resources.Amounts) -> Iterator[tuple[tuple[str, str], float]]:
    """Resource with its unit, and the amount in it."""
    for name, amount in amounts.items():
        yield (name, unit(name)), amount / 1000 if name == resources.CPU else amount


@_of_containers()
def koordlet_container_resource_requests(now: view.ReportView) -> families.Rows:
    """Resource requests of a container."""
    return _resources(now, lambda box: box.requests)


@_of_containers()
def koordlet_container_resource_limits(now: view.ReportView) -> families.Rows:
    """Resource limits of a container."""
    return _resources(now, lambda box: box.limits)


_predicted = functools.partial(
    FAMILIES.family, "node", "predictor", "resource", "unit", bound="2", form=_EXACT
)


@_predicted()
def koordlet_node_predicted_resource_reclaimable(now: view.ReportView) -> families.Rows:
    """Requested by prod workloads, but not needed at their predicted peak."""
    for name, value in now.predicted.reclaimable.items():
        yield (_node(now), _PREDICTOR, name, unit(name)), value


@_predicted()
def koordlet_node_predicted_resource_peak(now: view.ReportView) -> families.Rows:
    """Predicted peak demand of prod workloads."""
    for name, value in now.predicted.peak.items():
        yield (_node(now), _PREDICTOR, name, unit(name)), value


@FAMILIES.family("node", form="%d")
def koordlet_start_time(now: view.ReportView) -> families.Rows:
    """Unix time at which the agent started."""
    yield (_node(now),), now.counters.started


_collecting = functools.partial(FAMILIES.family, "node", "status", bound="2", form="%d")


def _collected(now: view.ReportView, what: str) -> families.Rows:
    """Both results, once this was tried at all."""
    counted = now.counters.collected.get(what)
    if counted is not None:
        yield (_node(now), "succeeded"), counted[0]
        yield (_node(now), "failed"), counted[1]


@_collecting()
def koordlet_collect_node_cpu_info_status(now: view.ReportView) -> families.Rows:
    """Ticks by whether the processor topology could be read (succeeded, failed)."""
    return _collected(now, "cpu_info")


@_collecting()
def koordlet_collect_node_numa_info_status(now: view.ReportView) -> families.Rows:
    """Ticks by whether the NUMA topology could be read (succeeded, failed)."""
    return _collected(now, "numa_info")


@_collecting()
def koordlet_collect_node_local_storage_info_status(now: view.ReportView) -> families.Rows:
    """Ticks by whether file system usage could be read (succeeded, failed)."""
    return _collected(now, "local_storage_info")


@FAMILIES.family("node", "reason", bound=families.EVICTING, most=128, form="%d")
def koordlet_pod_eviction(now: view.ReportView) -> families.Rows:
    """Evicted pods, by policy and signal."""
    counted: dict[str, int] = {}
    for (policy, signal, outcome), count in now.counters.evictions.items():
        if outcome == "evicted":
            reason = f"{policy}/{signal}"
            counted[reason] = counted.get(reason, 0) + count
    return (((_node(now), reason), count) for reason, count in counted.items())


_members = functools.partial(FAMILIES.family, "node", "cpu", bound="one per CPU", form="%d")


@_members(most=4096)
def koordlet_cpuset_share_pool_info(now: view.ReportView) -> families.Rows:
    """1 for each CPU of the LS pool, under Koordinator's metric name."""
    return (((_node(now), str(cpu)), 1) for cpu in now.plan.ledger.pool("LS"))


@_members(most=4096)
def koordlet_cpuset_be_share_pool_info(now: view.ReportView) -> families.Rows:
    """1 for each CPU of the BE pool, under Koordinator's metric name."""
    return (((_node(now), str(cpu)), 1) for cpu in now.plan.ledger.pool("BE"))


_limited = functools.partial(
    FAMILIES.family,
    *("node", "pod_namespace", "pod_name", "container_id", "container_name"),
    bound="one per container",
    most=8192,
    form="%d",
)


def _scaled(now: view.ReportView, what: str) -> families.Rows:
    """Containers whose limit or burst we have set."""
    for workload in now.snapshot.pods if now.scaled else ():
        for box in workload.containers:
            labels = (_node(now), workload.namespace, workload.name, box.url, box.name)
            yield labels, now.scaled.get((what, box.group or ""))


@_limited()
def koordlet_container_scaled_cfs_quota_us(now: view.ReportView) -> families.Rows:
    """CFS quota of a container as cpu_burst last wrote it, in microseconds."""
    return _scaled(now, scaled.QUOTA)


@_limited()
def koordlet_container_scaled_cfs_burst_us(now: view.ReportView) -> families.Rows:
    """CFS burst of a container as cpu_burst last wrote it, in microseconds."""
    return _scaled(now, scaled.BURST)


@FAMILIES.family(
    *("node", *scopes.PEER_POD, "container_name"), bound="one per container", most=8192, form="%d"
)
def koordlet_container_oom_score_adj(now: view.ReportView) -> families.Rows:
    """Highest oom_score_adj of a container's processes; only if the policy oom_score is on."""
    for workload in now.snapshot.pods if now.snapshot.oom_scores else ():
        for box in workload.containers:
            scores = now.snapshot.oom_scores.get(box.group or "")
            if scores:
                labels = (_node(now), workload.uid, workload.name, workload.namespace, box.name)
                yield labels, max(scores.values())


@FAMILIES.family(
    *("node", "verb", "path", "code"),
    kind=families.HISTOGRAM,
    bound="10 per path and status",
    most=640,
)
def koordlet_kubelet_request_duration_seconds(now: view.ReportView) -> families.Rows:
    """Duration of kubelet requests."""
    for (path, status), durations in now.took.items():
        labels = (_node(now), "get", _PATHS.get(path, path), status)
        yield from families.spread_rows(labels, durations)


@_amounts(bound="one per resource of the node", most=families.FEW)
def koordlet_node_resource_allocatable(now: view.ReportView) -> families.Rows:
    """Allocatable resources of the Node, including batch and mid resources."""
    for words, value in _known(now.snapshot.node.allocatable):
        yield (_node(now), *words), value
