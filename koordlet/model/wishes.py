"""Decoded annotations of a pod.

Covers: one value for each annotation that a policy reads. Does not cover: decoding
(``workloads.annotations``, ``kubeapi.pod_annotations``), the node's strategies of the same shape
(``model.strategies``).

``None`` is always "not said".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from koordlet.model import cpuset, resources, strategies
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaShare:
    """Resources of one NUMA node that a scheduler gave to a pod."""

    node: int
    resources: resources.Amounts = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A scheduler's decision (``resource-status``)."""

    cpus: cpuset.CPUSet | None = None
    numa: tuple[NumaShare, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """CPU bind policies of a pod (``resource-spec``)."""

    required: str | None = None
    preferred: str | None = None
    exclusive: str | None = None

    @property
    def policy(self) -> tuple[str, bool]:
        """The policy that is named, and whether it is required; empty where none is."""
        if self.required and self.required != "Default":
            return self.required, True
        return ("" if self.preferred == "Default" else self.preferred or ""), False


@dataclass(frozen=True, slots=True, kw_only=True)
class Numa:
    """On how many NUMA nodes it may lie (``numa-topology-spec``)."""

    policy: str | None = None
    exclusive: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """Whether, and by whom, a pod may be evicted."""

    #: The features that need consent may take it.
    enabled: bool = False
    #: The features that may take it at all; ``None``: every one.
    features: frozenset[str] | None = None
    #: Lower goes first.
    priority: int = 0

    def allows(self, feature: str) -> bool:
        """May this feature take it."""
        return self.features is None or feature in self.features


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Bandwidth limits in bits per second."""

    ingress: int | None = None
    egress: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OomScore:
    """``oom_score_adj`` of a pod and of its containers."""

    pod: int | None = None
    containers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreSharing:
    """Core sharing of the pod."""

    group: str | None = None
    policy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationUse:
    """The reservation that a pod was placed in."""

    name: str = ""
    uid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """All decoded annotations of a pod."""

    grant: Grant | None = None
    binding: Binding | None = None
    numa: Numa | None = None
    cpu_burst: strategies.CpuBurst | None = None
    cpu_qos: strategies.CpuQos | None = None
    memory_qos: strategies.MemoryQos | None = None
    blkio_qos: strategies.BlkioQos | None = None
    network: Network | None = None
    eviction: Eviction = Eviction()
    oom_score: OomScore | None = None
    core_sharing: CoreSharing | None = None
    #: Its threads may run in the real-time class.
    real_time: bool = False

    @property
    def shares(self) -> tuple[NumaShare, ...]:
        """What a scheduler gave it of NUMA nodes."""
        return self.grant.numa if self.grant is not None else ()

    @property
    def decided(self) -> bool:
        """Whether a scheduler gave it CPUs or NUMA resources."""
        return self.grant is not None and bool(self.grant.cpus or self.grant.numa)


#: Nothing was asked for.
NONE = Wishes()
