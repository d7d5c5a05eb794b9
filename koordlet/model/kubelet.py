"""State of the kubelet: configuration, allocations, statistics.

Covers: its configuration, its allocations of CPUs and memory, its statistics.
Does not cover: asking it (``workloads.kubelet``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from koordlet.model import cpuset, resources
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Fields of the KubeletConfiguration that koordlet uses."""

    cpu_manager_policy: str = "none"
    cpu_manager_options: Mapping[str, str] = field(default_factory=dict)
    topology_manager_policy: str = "none"
    topology_manager_scope: str = "container"
    cgroup_root: str = ""
    #: Those that are set, by file or by flag; others are as its version has them.
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    #: As written: the kubelet's explicit list, empty where it has only quantities.
    reserved_cpus: cpuset.CPUSet = field(default_factory=cpuset.CPUSet)
    system_reserved: resources.Amounts = field(default_factory=dict)
    kube_reserved: resources.Amounts = field(default_factory=dict)
    #: Signal to threshold, as texts: ``memory.available`` to ``100Mi``.
    eviction_hard: Mapping[str, str] = field(default_factory=dict)
    eviction_soft: Mapping[str, str] = field(default_factory=dict)
    eviction_soft_grace: Mapping[str, str] = field(default_factory=dict)
    eviction_minimum_reclaim: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuState:
    """``cpu_manager_state``: the CPUs that the kubelet holds for single containers."""

    policy: str = ""
    default: cpuset.CPUSet = field(default_factory=cpuset.CPUSet)
    #: Pod UID to container to CPUs; without a name those of the whole pod, its containers' too.
    entries: Mapping[str, Mapping[str, cpuset.CPUSet]] = field(default_factory=dict)

    def of_pod(self, uid: str) -> cpuset.CPUSet | None:
        """The CPUs of a pod's containers together; ``None`` where it has none of its own."""
        held = self.entries.get(uid)
        return cpuset.union(held.values()) if held else None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBlock:
    """Memory of some NUMA nodes, held for a container."""

    nodes: tuple[int, ...]
    type: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryState:
    """``memory_manager_state``: the memory that the kubelet holds for single containers."""

    policy: str = ""
    #: Pod UID to container to blocks; without a name those of the whole pod, in place of theirs.
    entries: Mapping[str, Mapping[str, tuple[MemoryBlock, ...]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystem:
    """Bytes and inodes of a file system; ``None`` where unknown."""

    available_bytes: int | None = None
    capacity_bytes: int | None = None
    used_bytes: int | None = None
    inodes: int | None = None
    inodes_free: int | None = None
    inodes_used: int | None = None


#: The source that brings ``Summary``.
STATISTICS = "kubelet stats"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodStatistics:
    """Statistics of one pod."""

    uid: str
    working_set_bytes: int | None = None
    #: Containers' writable layers, logs and emptyDirs together.
    ephemeral: FileSystem = FileSystem()
    #: Container to its writable layer and logs.
    rootfs: Mapping[str, FileSystem] = field(default_factory=dict)
    logs: Mapping[str, FileSystem] = field(default_factory=dict)
    #: Volume to what is in it.
    volumes: Mapping[str, FileSystem] = field(default_factory=dict)
    processes: int | None = None
    #: Container to its working set.
    memory: Mapping[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """``/stats/summary``."""

    node_fs: FileSystem = FileSystem()
    image_fs: FileSystem = FileSystem()
    container_fs: FileSystem = FileSystem()
    memory_available_bytes: int | None = None
    memory_working_set_bytes: int | None = None
    max_pids: int | None = None
    processes: int | None = None
    #: By UID.
    pods: Mapping[str, PodStatistics] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerDevices:
    """Resources that the kubelet assigned to one container (pod-resources)."""

    cpus: cpuset.CPUSet = field(default_factory=cpuset.CPUSet)
    #: Resource name to device ids.
    devices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    memory: tuple[MemoryBlock, ...] = ()


#: ``namespace/name`` of a pod, and a container's name, to what it holds.
Holdings = Mapping[tuple[str, str], ContainerDevices]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubelet:
    """The kubelet's last answers."""

    configuration: Configuration | None = None
    summary: Summary | None = None
    cpu: CpuState | None = None
    memory: MemoryState | None = None
    holdings: Holdings | None = None

    @property
    def knows_cpus(self) -> bool:
        """Whether its CPU manager policy is known."""
        return self.configuration is not None or self.cpu is not None

    @property
    def static_cpus(self) -> bool:
        """Whether its CPU manager policy is static."""
        policy = self.configuration.cpu_manager_policy if self.configuration is not None else ""
        return policy == "static" or (self.cpu is not None and self.cpu.policy == "static")
