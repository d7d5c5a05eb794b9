"""The ordered list of policies: one row each. ``grep`` a stem to find everything about it.

Covers: the rows and their order. Does not cover: running them (``chain``).

Rules:
1. Later rows see the claims of earlier ones in ``snapshot.ledger``.
2. Where two policies want different values in one file, the earlier row wins. One may say that its
   set of CPUs only narrows the other's: ``shared_pools`` owns the sets of best-effort workloads,
   ``cpu_suppress`` and ``adaptive`` narrow them.
3. Each row says whom its policy protects, and how. Only what protects nobody and merely makes
   better use of the machine may be taken back by the guard (``guard``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from koordlet.history import series
from koordlet.model import adjustment, decision, ledger, plan, pod, snapshot
from koordlet.model.record import dataclass
from koordlet.policy.best_effort import (
    adaptive,
    batch_limits,
    batch_offer,
    batch_resources,
    cpu_suppress,
)
from koordlet.policy.cpu import (
    bound_quota,
    core_scheduling,
    cpu_burst,
    cpu_normalization,
    cpu_qos,
    exclusive_cpus,
    holdings,
    housekeeping,
    reserved_cpus,
    shared_pools,
)
from koordlet.policy.eviction import (
    cpu_allocatable_evict,
    cpu_evict,
    local_storage_evict,
    memory_allocatable_evict,
    memory_evict,
    node_pressure,
)
from koordlet.policy.memory_io import (
    blkio_qos,
    memory_qos,
    network_qos,
    oom_score,
    page_cache_reclaim,
    system_qos,
)
from koordlet.policy.resctrl import resctrl

SettingsT = TypeVar("SettingsT")
StateT = TypeVar("StateT")

Decide = Callable[[snapshot.Snapshot, series.History, object, object], decision.Decision[object]]
#: Snapshot with the ledger of this round, settings, state after it, the pod, the container's name.
Admit = Callable[[snapshot.Snapshot, object, object, pod.Pod, str], adjustment.Adjustment]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One registered policy. Settings and state are opaque to all other code."""

    stem: str
    summary: str
    #: Whom it protects, as a sentence says it; empty: it only optimises.
    protects: str
    decide: Decide
    #: Settings and state to start with.
    settings: object
    state: object
    #: Makes a state from a checkpoint, ``ValueError`` when it is none. ``None``: what it knows is
    #: of this moment, is never saved, and a new process starts without it.
    revive: Callable[[Mapping[str, object]], object] | None
    #: Version of the state: a checkpoint of another one is discarded.
    schema: int
    default_mode: plan.Mode = plan.Mode.ENFORCE
    #: The claims that a state from a checkpoint stands for: they count while the policy fails
    #: before it has decided anything.
    recall: Callable[[object], tuple[ledger.Claim, ...]] | None = None
    #: What a container gets before it starts; ``None``: this policy is not about single containers.
    admit: Admit | None = None
    #: What of a state is worth a checkpoint: one that changes with every tick is a write each time.
    keep: Callable[[object], object] = lambda state: state
    #: It looks neither at the time nor at the history: while nothing else changes, its last
    #: decision stands, and it is not asked again.
    timeless: bool = False
    #: While one of its signals is met it chooses among workloads, by what they use of memory and
    #: processes at this moment.
    compares: bool = False


def row(
    *,
    stem: str,
    summary: str,
    protects: str,
    decide: Callable[
        [snapshot.Snapshot, series.History, SettingsT, StateT], decision.Decision[StateT]
    ],
    settings: SettingsT,
    state: StateT,
    revive: Callable[[Mapping[str, object]], StateT] | None = None,
    schema: int = 1,
    keep: Callable[[StateT], object] = lambda state: state,
    timeless: bool = False,
    compares: bool = False,
    default_mode: plan.Mode = plan.Mode.ENFORCE,
    recall: Callable[[StateT], tuple[ledger.Claim, ...]] | None = None,
    admit: Callable[[snapshot.Snapshot, SettingsT, StateT, pod.Pod, str], adjustment.Adjustment]
    | None = None,
) -> Row:
    """Build a row; a policy's own types are erased here, and only here."""
    return Row(
        stem=stem,
        summary=summary,
        protects=protects,
        decide=cast("Decide", decide),
        settings=settings,
        state=state,
        revive=revive,
        schema=schema,
        keep=cast("Callable[[object], object]", keep),
        timeless=timeless,
        compares=compares,
        default_mode=default_mode,
        recall=cast("Callable[[object], tuple[ledger.Claim, ...]] | None", recall),
        admit=cast("Admit | None", admit),
    )


POLICIES: tuple[Row, ...] = (
    row(
        stem=reserved_cpus.STEM,
        summary="CPUs reserved for the machine",
        protects="it keeps CPUs free for the machine",
        decide=reserved_cpus.decide,
        settings=reserved_cpus.Settings(),
        state=reserved_cpus.State(),
        revive=reserved_cpus.revive,
        schema=reserved_cpus.SCHEMA,
        recall=reserved_cpus.recall,
        timeless=True,
    ),
    row(
        stem=exclusive_cpus.STEM,
        summary="exclusive CPUs: which workload holds which, why, since when",
        protects="it gives exclusive CPUs to one workload each",
        decide=exclusive_cpus.decide,
        settings=exclusive_cpus.Settings(),
        state=holdings.State(),
        revive=holdings.revive,
        schema=exclusive_cpus.SCHEMA,
        recall=exclusive_cpus.recall,
        timeless=True,
    ),
    row(
        stem=shared_pools.STEM,
        summary="LS and BE pools, and the cpuset of every workload",
        protects="it keeps workloads off reserved and exclusive CPUs",
        decide=shared_pools.decide,
        settings=shared_pools.Settings(),
        state=shared_pools.State(),
        revive=shared_pools.revive,
        schema=shared_pools.SCHEMA,
        keep=shared_pools.keep,
        admit=shared_pools.admit,
        timeless=True,
    ),
    row(
        stem=housekeeping.STEM,
        summary="interrupts and kernel threads off exclusive CPUs",
        protects="it keeps kernel work off exclusive CPUs",
        decide=housekeeping.decide,
        settings=housekeeping.Settings(),
        state=housekeeping.State(),
        default_mode=plan.Mode.OFF,
    ),
    row(
        stem=bound_quota.STEM,
        summary="no CPU quota for pods with exclusive CPUs",
        protects="it keeps pods from being throttled on their exclusive CPUs",
        decide=bound_quota.decide,
        settings=bound_quota.Settings(),
        state=bound_quota.State(),
        admit=bound_quota.admit,
        timeless=True,
    ),
    row(
        stem=cpu_normalization.STEM,
        summary="CPU limits of shared pods, scaled to the speed of the node's CPUs",
        protects="",
        decide=cpu_normalization.decide,
        settings=cpu_normalization.Settings(),
        state=cpu_normalization.State(),
        admit=cpu_normalization.admit,
        timeless=True,
        default_mode=plan.Mode.SHADOW,
    ),
    row(
        stem=batch_limits.STEM,
        summary="CPU shares, CPU quota and memory limit of batch and mid pods",
        protects="it limits best-effort work",
        decide=batch_limits.decide,
        settings=batch_limits.Settings(),
        state=batch_limits.State(),
        admit=batch_limits.admit,
        timeless=True,
    ),
    row(
        stem=cpu_suppress.STEM,
        summary="CPU limit of best-effort work, by Koordinator's formula",
        protects="it limits best-effort work",
        decide=cpu_suppress.decide,
        settings=cpu_suppress.Settings(),
        state=cpu_suppress.State(),
        revive=cpu_suppress.revive,
        schema=cpu_suppress.SCHEMA,
        keep=cpu_suppress.keep,
    ),
    row(
        stem=adaptive.STEM,
        summary="best-effort work on idle CPU only; names work that still waits",
        protects="it makes best-effort work yield",
        decide=adaptive.decide,
        settings=adaptive.Settings(),
        state=adaptive.State(),
        schema=adaptive.SCHEMA,
    ),
    row(
        stem=batch_resources.STEM,
        summary="batch and mid resources that the node offers",
        protects="it bounds what the node offers to best-effort work",
        decide=batch_resources.decide,
        settings=batch_resources.Settings(),
        state=batch_offer.State(),
        revive=batch_offer.revive,
        schema=batch_resources.SCHEMA,
        keep=batch_offer.keep,
    ),
    row(
        stem=resctrl.STEM,
        summary="cache ways and memory bandwidth of each class of workload",
        protects="it limits what best-effort work takes of caches and memory bandwidth",
        decide=resctrl.decide,
        settings=resctrl.Settings(),
        state=resctrl.State(),
        revive=resctrl.revive,
        schema=resctrl.SCHEMA,
        keep=resctrl.keep,
        admit=resctrl.admit,
        timeless=True,
        default_mode=plan.Mode.SHADOW,
    ),
    row(
        stem=cpu_burst.STEM,
        summary="CPU time beyond the limit of LS workloads, while the node has spare CPU",
        protects="",
        decide=cpu_burst.decide,
        settings=cpu_burst.Settings(),
        state=cpu_burst.State(),
    ),
    row(
        stem=cpu_qos.STEM,
        summary="CPU scheduling of each class: group identity, cpu.idle",
        protects="it lets latency-sensitive work run before best-effort work",
        decide=cpu_qos.decide,
        settings=cpu_qos.Settings(),
        state=cpu_qos.State(),
        timeless=True,
    ),
    row(
        stem=core_scheduling.STEM,
        summary="core scheduling: which workloads may share a core's threads",
        protects="it keeps other workloads off the threads of a core",
        decide=core_scheduling.decide,
        settings=core_scheduling.Settings(),
        state=core_scheduling.State(),
        default_mode=plan.Mode.OFF,
    ),
    row(
        stem=memory_qos.STEM,
        summary="memory protection and throttling of each class",
        protects="it protects memory of some workloads and limits others",
        decide=memory_qos.decide,
        settings=memory_qos.Settings(),
        state=memory_qos.State(),
        timeless=True,
    ),
    row(
        stem=page_cache_reclaim.STEM,
        summary="page cache beyond a pod's limit, reclaimed",
        protects="",
        decide=page_cache_reclaim.decide,
        settings=page_cache_reclaim.Settings(),
        state=page_cache_reclaim.State(),
    ),
    row(
        stem=network_qos.STEM,
        summary="network bandwidth of each class",
        protects="it limits what each class sends and receives",
        decide=network_qos.decide,
        settings=network_qos.Settings(),
        state=network_qos.State(),
        timeless=True,
        default_mode=plan.Mode.OFF,
    ),
    row(
        stem=oom_score.STEM,
        summary="which processes the OOM killer takes first",
        protects="it lets best-effort work be killed first",
        decide=oom_score.decide,
        settings=oom_score.Settings(),
        state=oom_score.State(),
        default_mode=plan.Mode.OFF,
    ),
    row(
        stem=system_qos.STEM,
        summary="node-wide kernel settings, opt-in",
        protects="it keeps memory free for the kernel, as the operator configured",
        decide=system_qos.decide,
        settings=system_qos.Settings(),
        state=system_qos.State(),
        default_mode=plan.Mode.OFF,
    ),
    row(
        stem=blkio_qos.STEM,
        summary="block I/O limits of best-effort work and of single pods",
        protects="it limits what best-effort work and single pods read and write",
        decide=blkio_qos.decide,
        settings=blkio_qos.Settings(),
        state=blkio_qos.State(),
        timeless=True,
    ),
    row(
        stem=local_storage_evict.STEM,
        summary="evicts pods that exceed their ephemeral-storage limits",
        protects="it frees the node's disk for others",
        decide=local_storage_evict.decide,
        settings=local_storage_evict.Settings(),
        state=local_storage_evict.State(),
    ),
    row(
        stem=cpu_evict.STEM,
        summary="evicts pods while best-effort work is starved of CPU",
        protects="it evicts best-effort work that gets no CPU",
        decide=cpu_evict.decide,
        settings=cpu_evict.Settings(),
        state=None,
        default_mode=plan.Mode.SHADOW,
    ),
    row(
        stem=cpu_allocatable_evict.STEM,
        summary="evicts pods whose CPU requests exceed what the node offers",
        protects="it keeps requests within what the node offers",
        decide=cpu_allocatable_evict.decide,
        settings=cpu_allocatable_evict.Settings(),
        state=None,
        default_mode=plan.Mode.SHADOW,
    ),
    row(
        stem=memory_evict.STEM,
        summary="evicts pods while the node uses too much memory",
        protects="it frees memory for others",
        decide=memory_evict.decide,
        settings=memory_evict.Settings(),
        state=None,
        compares=True,
        default_mode=plan.Mode.SHADOW,
    ),
    row(
        stem=memory_allocatable_evict.STEM,
        summary="evicts pods whose memory requests exceed what the node offers",
        protects="it keeps requests within what the node offers",
        decide=memory_allocatable_evict.decide,
        settings=memory_allocatable_evict.Settings(),
        state=None,
        compares=True,
        default_mode=plan.Mode.SHADOW,
    ),
    row(
        stem=node_pressure.STEM,
        summary="evicts pods when memory, disk, inodes or PIDs run short",
        protects="it keeps the node from running out of shared resources",
        decide=node_pressure.decide,
        settings=node_pressure.Settings(),
        state=node_pressure.State(),
        revive=node_pressure.revive,
        schema=node_pressure.SCHEMA,
        keep=node_pressure.keep,
        compares=True,
    ),
)
