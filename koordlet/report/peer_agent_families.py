"""Metric families of Koordinator's agent about itself, its pools and the node's promises.

Covers: the peer's names for the start, collecting, evictions, pools, allocatable. Does not cover:
use and pressure (``peer_families``), what we leave out and why (``docs/observe.md``).

The peer's counters are called without ``_total``. So that its dashboards find them in both text
formats (OpenMetrics knows no such counter) they are gauges here; ``rate()`` takes either.
"""

from __future__ import annotations

from collections.abc import Callable

from koordlet.model import resources
from koordlet.report import families, peer_families, scaled, view

_RESULTS = "succeeded, failed"
#: The peer asks the same under another path.
_PATHS = {"/pods": "/pods/"}


def _node(now: view.ReportView) -> str:
    return now.snapshot.node.name


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
        yield (_node(now), name, peer_families.unit(name)), value


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
    for one in now.snapshot.pods if now.snapshot.oom_scores else ():
        for part in one.containers:
            scores = now.snapshot.oom_scores.get(part.group or "")
            if scores:
                labels = (_node(now), one.uid, one.name, one.namespace, part.name)
                yield labels, max(scores.values())


def _kubelet(now: view.ReportView) -> families.Rows:
    for (path, status), one in now.took.items():
        labels = (_node(now), "get", _PATHS.get(path, path), status)
        yield from families.spread_rows(labels, one)


FAMILIES = (
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
