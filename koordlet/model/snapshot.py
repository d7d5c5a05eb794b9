"""Snapshot: everything that a policy may know about one moment.

Covers: the value. Does not cover: making it (``host.observe``), the past (``history``).
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import field

from koordlet.model.record import dataclass

if typing.TYPE_CHECKING:
    # A machine without a cluster never loads them.
    from koordlet.model import (
        blocks,
        cookies,
        kubelet,
        node_ratios,
        nodemetric,
        nodeslo,
        prepared_claim,
        real_time,
        reservation,
        strain,
        strategies,
    )

from koordlet.model import (
    absence,
    cgroup,
    cpuset,
    ledger,
    pod,
    pressure,
    queueing,
    resctrl,
    resources,
    topology,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInfo:
    """This node as the control plane (or the configuration file) describes it."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    #: Empty where nobody said it. What is missing here is unknown, not zero.
    capacity: resources.Amounts = field(default_factory=dict)
    allocatable: resources.Amounts = field(default_factory=dict)
    #: What of it was amplified, as it was before.
    raw_allocatable: resources.Amounts = field(default_factory=dict)
    #: What it says for itself about batch and mid resources; ``None``: nothing.
    colocation: strategies.Colocation | None = None
    #: Condition types to whether they hold.
    conditions: Mapping[str, bool] = field(default_factory=dict)
    #: As ``KEY:EFFECT``.
    taints: tuple[str, ...] = ()
    #: What was wrong with the object; each is shown, none is fatal.
    problems: tuple[str, ...] = ()
    #: False while the control plane was not heard yet: what it annotated is unknown, not absent.
    known: bool = True
    #: Ratios that this agent computes for it; ``None``: it is not asked to.
    ratios: node_ratios.NodeRatios | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A source of the snapshot, and its health."""

    name: str
    ok: bool
    #: Monotonic time of its last good answer; ``None`` before the first.
    last_good: float | None = None
    problem: str = ""
    #: How long its last good answer is believed; ``None``: for ever, it cannot change behind us.
    max_age: float | None = None
    #: Of this machine alone: having it does not make the machine part of a cluster.
    local: bool = False

    def aged(self, now: float) -> bool:
        """Whether the last good answer is older than the source's limit."""
        if self.max_age is None:
            return False
        return self.last_good is None or now - self.last_good > self.max_age


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A cluster object that could not be read."""

    #: As its ``kind`` spells it.
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One moment of one machine."""

    #: Monotonic seconds: intervals are computed from this one only.
    at: float
    #: Unix time, for people.
    wall: float
    boot_id: str
    machine_id: str
    node: NodeInfo
    topology: topology.Topology
    layout: cgroup.Layout
    #: Groups by path: those of known workloads, what is above them and what is below.
    groups: Mapping[str, cgroup.Group] = field(default_factory=dict)
    #: Those of them whose use is read.
    counted: Mapping[str, cgroup.Group] = field(default_factory=dict)
    #: Workloads with so many groups inside that only their top is counted, and whether those inside
    #: are among the groups: on v1 their sets must fit.
    crowded: Mapping[str, bool] = field(default_factory=dict)
    pods: tuple[pod.Pod, ...] = ()
    #: Containers that nobody declared, for people to see: no policy is about them.
    unmanaged: tuple[pod.Pod, ...] = ()
    sources: tuple[Source, ...] = ()
    unread: tuple[Unread, ...] = ()
    unsupported: tuple[absence.Unsupported, ...] = ()
    ledger: ledger.Ledger = field(default_factory=ledger.Ledger)
    #: Cache ways and memory bandwidth; ``None`` where they cannot be controlled (see unsupported).
    resctrl: resctrl.Resctrl | None = None
    #: What the cluster's control plane wants of this node; ``None``: nobody says it.
    slo: nodeslo.NodeSlo | None = None
    #: What the kubelet says beside its pods; ``None``: it is not asked.
    kubelet: kubelet.Kubelet | None = None
    #: Room on this node that is held for pods to come, as the control plane bound it.
    reservations: tuple[reservation.Reservation, ...] = ()
    #: Resource claims that are prepared here, by their time.
    claims: tuple[prepared_claim.PreparedClaim, ...] = ()
    #: What latency-sensitive work feels; ``None``: nothing tells, or nobody wants to know.
    strain: strain.Strain | None = None
    #: True where limits of units are set through the running systemd, which hands controllers down.
    through_systemd: bool = False
    #: … and systemd knows ``CPUWeight=idle``.
    unit_idle: bool = False
    #: Block devices; ``None`` while nobody limits one.
    blocks: blocks.Blocks | None = None
    #: Network links and how they queue; empty while nobody shapes traffic.
    links: queueing.Links = field(default_factory=queueing.Links)
    #: Containers that began with a set of ours: group to the set that they would have had.
    born: Mapping[str, cpuset.CPUSet] = field(default_factory=dict)
    #: Groups whose set is decided already, or goes back to what it was before us unless somebody
    #: decides it: to that set, empty where it is the one of the group above.
    sets: Mapping[str, cpuset.CPUSet] = field(default_factory=dict)
    #: CPUs that were offline at some time since the agent started: v1 takes such a CPU out of every
    #: set for good, and that is nobody's wish.
    went_offline: cpuset.CPUSet = field(default_factory=cpuset.CPUSet)

    #: Files that say where the kernel's own work runs, and their texts; empty where nobody asks.
    kernel_work: Mapping[str, str] = field(default_factory=dict)
    #: Of the processes of workloads, by group; empty where nobody asks.
    oom_scores: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    #: Which processes of workloads may share a core; ``None`` while nobody asks.
    cookies: cookies.Cookies | None = None
    #: Scheduling classes of the threads of those that ask for real time.
    classes: real_time.Classes | None = None
    #: Usage that somebody else reported; only of files (``plan --pods``).
    metric: nodemetric.NodeMetric | None = None
    #: Reads of this moment that got no answer.
    unanswered: tuple[absence.Unanswered, ...] = ()
    #: What the whole node may run out of.
    pressure: pressure.Reading = field(default_factory=pressure.Reading)

    @property
    def cluster_slo(self) -> nodeslo.NodeSlo | None:
        """The strategies of a cluster object; ``None`` where there is none."""
        return self.slo if self.slo is not None and self.slo.source else None

    @property
    def allowed(self) -> cpuset.CPUSet:
        """Online CPUs that workloads can have: those of the root of the cgroup tree.

        A cpuset partition of another program takes CPUs out of all groups outside of it
        (Documentation/admin-guide/cgroup-v2.rst, cpuset.cpus.partition), and the root that a
        container sees has the container's CPUs. A CPU that was offline counts: the kernel gives it
        to the root a moment after it is online.
        """
        root = self.groups.get("")
        own = None if root is None else root.effective() or root.cpus()
        online = self.topology.online
        return online if own is None else online & (own | self.went_offline) or online

    @property
    def outside(self) -> cpuset.CPUSet:
        """Online CPUs that no workload can have."""
        return self.topology.online - self.allowed

    @property
    def declared_cpu(self) -> int:
        """CPU capacity of the Node object, else of the machine, in thousandths of a core."""
        return self.node.capacity.get(resources.CPU) or 1000 * len(self.topology.online)

    @property
    def cpu_capacity(self) -> int:
        """The part of it that workloads can have: CPUs that are ``outside`` are no capacity."""
        inside = 1000 * len(self.allowed)
        return min(self.declared_cpu, inside) if self.outside else self.declared_cpu

    def taken_out(self, path: str) -> cpuset.CPUSet:
        """CPUs that hotplug may have taken out of the set of a group, which is nobody's wish.

        What went and came while no agent ran is known from v1 itself: it takes a CPU out of all
        sets at once, but of that of the machine's root. Another program that narrows a group
        leaves those around it.
        """
        top, _, inside = path.partition("/")
        around = None if self.layout.unified("cpuset") else self.groups.get(top if inside else "")
        cpus = None if around is None else around.cpus()
        return self.went_offline | (self.topology.online - cpus if cpus else cpuset.CPUSet())

    def children(self) -> Mapping[str, tuple[cgroup.Group, ...]]:
        """The observed groups by parent path, in order. Cost: one walk over all groups."""
        by_parent: dict[str, list[cgroup.Group]] = {}
        for path in sorted(self.groups):
            if path:
                by_parent.setdefault(self.groups[path].parent, []).append(self.groups[path])
        return {parent: tuple(groups) for parent, groups in by_parent.items()}
