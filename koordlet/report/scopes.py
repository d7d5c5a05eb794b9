"""The subjects of metric families: who has series, under which labels, and how many.

Covers: workloads, containers, classes, the node and its parts; also labelled as Koordinator's agent
does. Does not cover: what is measured of them (``quantities``).

Cardinality: what grows with the machine and with its workloads is cut at ``most``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from koordlet.model import counters, meter, pod, remember
from koordlet.model.record import dataclass
from koordlet.report import families, view

Labels = tuple[str, ...]
#: Label values and name of each subject.
Subjects = Iterable[tuple[Labels, str]]


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """The subjects that a family has series for."""

    #: In the name of a family, and in its help.
    stem: str
    word: str
    labels: Labels
    #: How many series a quantity has: in words, and at most where that is not a few.
    bound: str = "1"
    most: int = 0
    #: ``None``: whatever is in the table.
    subjects: Callable[[view.ReportView], Subjects] | None = None
    #: Of the families, where they can be switched off together.
    group: str = ""


def is_host_application(workload: pod.Pod) -> bool:
    """True if a workload is a host application (outside Kubernetes)."""
    return workload.kube_qos is None and not workload.containers


@remember.last
def _labelled(pods: tuple[pod.Pod, ...]) -> list[tuple[Labels, pod.Pod]]:
    """Every family of workloads has the same ones, as long as none comes or goes."""
    return [((each.namespace, each.name, each.qos.value), each) for each in pods]


def _workloads(now: view.ReportView) -> Subjects:
    for labels, workload in _labelled(now.snapshot.pods):
        if workload.group is not None:
            yield labels, workload.group


def _containers(now: view.ReportView) -> Subjects:
    for workload in now.snapshot.pods:
        for box in workload.containers:
            if box.group is not None:
                yield (workload.namespace, workload.name, box.name), box.group


def _counted(now: view.ReportView) -> Subjects:
    """Separately counted subjects: containers, and workloads without containers."""
    yield from _containers(now)
    for workload in now.snapshot.pods:
        if workload.group is not None and not workload.containers:
            yield (workload.namespace, workload.name, ""), workload.group


def peer_pods(now: view.ReportView) -> Subjects:
    """Pods, labelled as the peer does."""
    for workload in now.snapshot.pods:
        if workload.group is not None and not is_host_application(workload):
            names = (workload.uid, workload.name, workload.namespace)
            yield (now.snapshot.node.name, *names), workload.group


def peer_containers(now: view.ReportView) -> Subjects:
    """Containers, labelled as the peer does."""
    for workload in now.snapshot.pods:
        names = (workload.uid, workload.name, workload.namespace)
        for box in workload.containers:
            if box.group is not None:
                yield (now.snapshot.node.name, box.url, box.name, *names), box.group


_OF_WORKLOAD, _OF_CONTAINER = ("namespace", "name", "qos"), ("namespace", "pod", "container")
PEER_POD, PEER_CONTAINER = (
    *(("pod_uid", "pod_name", "pod_namespace"), ("container_id", "container_name")),
)
WORKLOADS = Scope(
    *("workload", "workload", _OF_WORKLOAD, "one per workload", 4096, _workloads),
    families.WORKLOADS,
)
CONTAINERS, COUNTED = (
    Scope(
        *("container", "container", _OF_CONTAINER, "one per container", 8192, subjects),
        families.CONTAINERS,
    )
    for subjects in (_containers, _counted)
)
WORKLOAD_NODES = Scope(
    *("workload", "workload", (*_OF_WORKLOAD, "numa_node")),
    *("one per workload and NUMA node", 8192, _workloads),
    group=families.WORKLOADS,
)
SHARES = Scope("share", "QoS class", ("class",), "5")
CLASSES = Scope("share", "QoS class", ("class",), "4")
CPUS = Scope("cpu", "CPU", ("cpu",), "one per online CPU", 1024, group=families.CPUS)
NODE = Scope("node", "node", (), subjects=lambda _: (((), ""),))
LINKS = Scope("link", "network interface", ("interface",), "2 per physical interface")
DISKS = Scope("disk", "directory", ("directory",), "2 per watched directory")
#: Those under names of our own, in the order of their families.
OWN = (
    *(WORKLOADS, CONTAINERS, COUNTED, WORKLOAD_NODES),
    *(SHARES, CLASSES, CPUS, NODE, LINKS, DISKS),
)
PEER_NODE = Scope(
    *("node", "node", ("node",)),
    subjects=lambda now: (((now.snapshot.node.name,), ""),),
    group=families.PEER,
)
PEER_CONTAINERS = Scope(
    *("container", "container", ("node", *PEER_CONTAINER, *PEER_POD)),
    *("2 per container", 8192, peer_containers),
    group=families.PEER,
)


def workload_cores(now: view.ReportView) -> families.Rows:
    """CPU use of each workload."""
    for labels, workload in _labelled(now.snapshot.pods):
        yield labels, now.usage.get(workload.key)


def workload_kills(now: view.ReportView) -> families.Rows:
    """OOM kills of workloads per second."""
    return _kills(now, now.used.groups)


def workload_kills_total(now: view.ReportView) -> families.Rows:
    """OOM kills of workloads."""
    return _kills(now, now.used.groups.growing())


def _kills(now: view.ReportView, table: counters.Table) -> families.Rows:
    """Cgroup v1 counts them in the container's group only."""
    for labels, workload in _labelled(now.snapshot.pods):
        if workload.group is not None:
            groups = [workload.group, *(box.group or "" for box in workload.containers)]
            own, *each = (table.value(group, meter.OOM_KILLS) for group in groups)
            inside = [value for value in each if value is not None]
            if inside:
                own = max(own or 0.0, sum(inside))
            yield labels, own
