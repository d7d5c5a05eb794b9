"""CPU use now of latency-sensitive work, the system and best-effort work.

Covers: the peer's sums in thousandths of a core, what is reserved, how old what was read is.
Does not cover: what follows for best-effort work (``cpu_suppress``, ``adaptive``).

Rules, as the peer has them:
1. Latency-sensitive is whatever is not best-effort: neither by its label nor by Kubernetes.
2. The system is what the node uses beside all workloads, and at least what is reserved for it: the
   larger of capacity less allocatable and the reservation; ``formula: seed`` has the latter only.
3. Every sum is cut to whole thousandths by itself.
4. CPUs outside of the cgroup tree are no capacity, what they do is not the node's use, and keeping
   them from workloads is no reservation.
"""

from __future__ import annotations

from koordlet.history import series
from koordlet.kubeapi import node_annotations
from koordlet.model import cgroup, ledger, meter, remember, resources, snapshot
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.best_effort import groups as best_effort_groups
from koordlet.policy.cpu import reserved_cpus

#: What is older was not read lately: the peer takes nothing that is older for the system's use.
FRESH_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """CPU sums at one moment, in thousandths of a core."""

    capacity: int
    #: ``None``: the node's own counters are too old, or were never read.
    node: int | None
    #: ``None``: those of the workloads are; so are the following.
    ls: int | None
    #: Of ``ls``, what runs beside Kubernetes.
    applications: int = 0
    be: int | None = None
    #: What the node uses beside workloads, as it was measured.
    system: int | None = None
    #: What is kept for the system at least.
    reserved: int = 0
    #: Why something is missing.
    problem: str = ""

    @property
    def system_or_reserved(self) -> int:
        """CPU of the system in the formula: measured or reserved, the larger."""
        return max(self.system or 0, self.reserved)


def measure(now: snapshot.Snapshot, past: series.History, *, seed: bool = False) -> Use:
    """Measure the sums at this moment."""
    capacity, kept = now.cpu_capacity, reserved(now, resources.CPU, now.declared_cpu, seed=seed)
    cores = past.node.recent("", meter.CPU, now.at, FRESH_SECONDS)
    elsewhere = past.cpus_now(now.outside, now.at, FRESH_SECONDS)
    node = None if cores is None else max(int((cores - elsewhere) * 1000), 0)
    problem = _problem(now, past)
    if problem or node is None:
        problem = problem or "the counters of the node are not known yet"
        return Use(capacity=capacity, node=node, ls=None, reserved=kept, problem=problem)
    ls, applications, be = (
        int(1000 * sum(filter(None, past.groups.lasts(groups, meter.CPU))))
        for groups in _kinds(now.pods)
    )
    return Use(
        capacity=capacity,
        node=node,
        ls=ls + applications,
        applications=applications,
        be=be,
        system=max(node - ls - applications - be, 0),
        reserved=kept,
    )


def _problem(now: snapshot.Snapshot, past: series.History) -> str:
    """The reason that workload use is unknown; empty where it is known."""
    if stale := best_effort_groups.stale(now):
        return stale
    age = past.groups.age(meter.CPU, now.at)
    if now.pods and (age is None or age > FRESH_SECONDS):
        return "the counters of the workloads are too old"
    return ""


@remember.last
def _kinds(pods: tuple[pods.Pod, ...]) -> tuple[list[str], list[str], list[str]]:
    """The groups of each kind; one inside another counts with that."""
    groups = {pod.group for pod in pods if pod.group is not None}
    kinds: tuple[list[str], list[str], list[str]] = [], [], []
    for pod in pods:
        if pod.group is not None and groups.isdisjoint(cgroup.ancestors(pod.group)):
            beside = pod.kube_qos is None
            kinds[2 if best_effort_groups.is_best_effort(pod) else int(beside)].append(pod.group)
    return kinds


def reserved(now: snapshot.Snapshot, name: str, capacity: int, *, seed: bool = False) -> int:
    """Amount of one resource reserved for the system (rule 2)."""
    annotation = annotated(now, name)
    amount = annotation if isinstance(annotation, int) else 0
    if name == resources.CPU and not isinstance(annotation, int):
        # Without a cluster the configuration file takes the annotation's place; of one that nobody
        # can read ``reserved_cpus`` holds what it said last.
        amount = 1000 * len(now.ledger.held(ledger.Owner.RESERVED) - now.outside)
    if seed:
        return amount
    allocatable = now.node.allocatable.get(name)
    return max(amount, 0 if allocatable is None else capacity - allocatable)


def annotated(now: snapshot.Snapshot, name: str) -> int | str | None:
    """Amount that the annotation reserves; a text is why it is unreadable; ``None``: nothing."""
    text = now.node.annotations.get(reserved_cpus.ANNOTATION)
    if text is None:
        return None
    reservation = node_annotations.reservation(text)
    if name == resources.CPU and (reservation.cpus is not None or reservation.fault):
        # Which CPUs count, ``reserved_cpus`` has decided.
        return 1000 * len(now.ledger.held(ledger.Owner.RESERVED) - now.outside)
    why = reservation.unread.get("") or reservation.unread.get(name)
    if why:
        return f"annotation {reserved_cpus.ANNOTATION}: {name}: {why:.120}"
    return reservation.amounts.get(name)
