"""Workloads: one model for pods, systemd units and declared cgroups.

Covers: identity, class, what was asked for, and the cgroup that holds the processes.
Does not cover: where a workload was learned from beyond a name (``source``), usage (``snapshot``).

All amounts are integers in the units of ``model.resources``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field

from koordlet.model import cpuset, resources, wishes
from koordlet.model import qos as classes
from koordlet.model.record import dataclass


class Kind(enum.Enum):
    """Kind of a container, which decides how its requests add up."""

    REGULAR = "regular"
    #: Runs to its end before the regular ones start.
    INIT = "init"
    #: An init container that stays: ``restartPolicy: Always``.
    SIDECAR = "sidecar"
    #: Put into a running pod by a person; asks for nothing.
    EPHEMERAL = "ephemeral"


class Phase(enum.Enum):
    """Phase of a pod."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"

    @property
    def ended(self) -> bool:
        """True where no container will run again."""
        return self in (Phase.SUCCEEDED, Phase.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """One container of a pod; a standalone workload has none."""

    name: str
    #: The runtime's id without its scheme.
    id: str = ""
    #: The scheme of the id: ``containerd``, ``cri-o``, ``docker``.
    runtime: str = ""
    kind: Kind = Kind.REGULAR
    running: bool = False
    #: Why it did not start, where it was the kernel that refused something of its cgroups.
    refused: str = ""
    #: Cgroup below the layout's root; ``None`` while unknown.
    group: str | None = None
    requests: resources.Amounts = field(default_factory=dict)
    limits: resources.Amounts = field(default_factory=dict)
    #: Resource claims that it uses: ``NAME``, or ``NAME/REQUEST`` for one request of a claim.
    claims: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """The id as a status of a pod has it, ``containerd://…``; bare where no scheme is known."""
        return f"{self.runtime}://{self.id}" if self.runtime and self.id else self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """One volume of a pod, as far as it takes room on the node."""

    name: str
    #: Its files are on the node's own disk.
    local: bool = False
    #: What it may hold; ``None`` where there is no limit.
    limit: int | None = None
    #: The limit as it is written.
    limit_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One workload. Identity is the UID: names and paths are used again."""

    uid: str
    namespace: str
    name: str
    #: With the default where no label says it.
    qos: classes.Qos
    #: Who told us: ``configuration``, ``kubelet``, ``cluster``, ``manifest``, ``cgroups`` …
    source: str
    #: What the label says; ``None`` where it says nothing.
    raw_qos: classes.Qos | None = None
    kube_qos: classes.KubeQos | None = None
    #: ``spec.priority`` as it is; ``None`` where there is none.
    priority: int | None = None
    priority_class: str = ""
    #: The label's band, else that of the priority; ``None`` outside all bands.
    band: classes.Band | None = None
    #: Order among pods of one priority, from the label.
    sub_priority: int | None = None
    phase: Phase = Phase.RUNNING
    #: Unix times; ``None`` where the source does not know.
    created: float | None = None
    deleting: float | None = None
    #: From a manifest of the kubelet, not from the API.
    static: bool = False
    node: str = ""
    #: What is known of a resize in place: ``""``, ``Deferred``, ``Infeasible``, ``InProgress``.
    resize: str = ""
    #: Its cgroup below the layout's root; ``None`` while unknown or when it is gone.
    group: str | None = None
    #: What was asked for, by name of the match: ``unit=nginx.service`` or ``cgroup=web/nginx``.
    match: str = ""
    #: Concrete CPUs that were granted or declared (LSE and LSR), ``None`` where none were.
    cpus: cpuset.CPUSet | None = None
    #: How many CPUs were asked for without naming them.
    cpu_count: int | None = None
    #: What the whole pod asks for: init containers, sidecars and overhead counted in.
    requests: resources.Amounts = field(default_factory=dict)
    limits: resources.Amounts = field(default_factory=dict)
    overhead: resources.Amounts = field(default_factory=dict)
    #: What was asked for in the name of the whole pod (pod-level resources).
    own_requests: resources.Amounts = field(default_factory=dict)
    #: Seconds that its processes have to end.
    grace_seconds: int | None = None
    volumes: tuple[Volume, ...] = ()
    #: Where it is found on the network; those of the host where it is in the host's network.
    addresses: tuple[str, ...] = ()
    host_network: bool = False
    containers: tuple[Container, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    #: Its annotations, decoded.
    wishes: wishes.Wishes = wishes.NONE
    #: What was wrong with its labels and annotations; each is shown, none is fatal.
    problems: tuple[str, ...] = ()
    #: True where the kubelet owns the cgroup files: violations are reported, not rewritten.
    kubelet_owned: bool = False
    #: True where what is said here may be out of date: reason to hold, never to evict or shrink.
    stale: bool = False

    @property
    def key(self) -> str:
        """``namespace/name``, as a person says it."""
        return f"{self.namespace}/{self.name}"

    @property
    def declared(self) -> bool:
        """True where the operator of this machine wrote it; a pod's texts are its tenant's."""
        return self.kube_qos is None or self.match.partition("=")[0] in ("unit", "cgroup")

    @property
    def memory_limit(self) -> int:
        """Its limit of memory, of batch memory for best-effort pods that have one; 0: none."""
        batch = self.limits.get(resources.BATCH_MEMORY) if self.raw_qos is classes.Qos.BE else None
        return batch or self.limits.get(resources.MEMORY, 0)

    @property
    def slo_class(self) -> str:
        """The class whose strategies hold for it: ``LSR``, ``LS`` or ``BE``; empty for SYSTEM."""
        if self.raw_qos is None and self.kube_qos is not None:
            return classes.SLO_CLASS_OF_KUBE[self.kube_qos]
        return classes.SLO_CLASS.get(self.raw_qos or self.qos, "")

    @property
    def active(self) -> bool:
        """False once no container will run again."""
        return not self.phase.ended

    @property
    def priority_value(self) -> int:
        """The priority, or the default of the band where there is none.

        A priority of zero is what the API server gives a pod that names none, so it counts as none.
        """
        if self.priority:
            return self.priority
        return self.band.default if self.band is not None else 0

    @property
    def critical(self) -> bool:
        """Never a victim: a system pod by its priority, or the kubelet's own.

        Two thousand million is where Kubernetes puts its system classes; users stay below.
        """
        return self.static or (self.priority is not None and self.priority >= _SYSTEM_PRIORITY)


_SYSTEM_PRIORITY = 2_000_000_000
