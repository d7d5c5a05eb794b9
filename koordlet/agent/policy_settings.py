"""Translates the operator's configuration into the settings of policies and readers.

Covers: policy settings and modes, declared workloads, the node, from one ``Config``.
Does not cover: reading configuration (``config``), one pass (``tick``).
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import replace

from koordlet.agent import pressure_settings
from koordlet.model import (
    cpuset,
    plan,
    pod,
    qos,
    quantity,
    resources,
    snapshot,
    strategies,
    strategy_field,
    wishes,
)
from koordlet.policy.best_effort import adaptive, batch_limits, batch_resources, cpu_suppress
from koordlet.policy.cpu import (
    core_scheduling,
    cpu_burst,
    cpu_normalization,
    cpu_qos,
    exclusive_cpus,
    housekeeping,
    reserved_cpus,
    shared_pools,
)
from koordlet.policy.eviction import (
    allocatable_evict,
    cpu_evict,
    local_storage_evict,
    memory_evict,
    node_pressure,
)
from koordlet.policy.framework import registry
from koordlet.policy.memory_io import (
    blkio_qos,
    memory_qos,
    network_qos,
    page_cache_reclaim,
    system_qos,
)
from koordlet.policy.resctrl import annotation, resctrl, values
from koordlet.workloads import declared

if typing.TYPE_CHECKING:
    from koordlet.config import (
        best_effort_sections,
        cpu_sections,
        eviction_sections,
        memory_io_sections,
        schema,
        workload_sections,
    )
    from koordlet.config import resctrl_section as ways
    from koordlet.host.counters import performance


def settings(config: schema.Config) -> Mapping[str, object]:
    """Build the settings of each policy that has any, by stem."""
    reserved = config.policies.reserved_cpus
    exclusive = config.policies.exclusive_cpus
    pools = config.policies.shared_pools
    return {
        reserved_cpus.STEM: reserved_cpus.Settings(
            cpus=None if reserved.cpus is None else cpuset.CPUSet.parse(reserved.cpus),
            quantity_milli=None if reserved.quantity is None else quantity.milli(reserved.quantity),
            max_cpus=reserved.limits.max_cpus,
        ),
        exclusive_cpus.STEM: exclusive_cpus.Settings(
            choose=exclusive.choose,
            repack=exclusive.repack,
            trust_annotations=exclusive.trust_annotations,
            max_cpus=exclusive.limits.max_cpus,
        ),
        shared_pools.STEM: shared_pools.Settings(
            enable_controllers=pools.enable_controllers, tiers=pools.tiers
        ),
        housekeeping.STEM: housekeeping.Settings(
            interrupts=config.policies.housekeeping.interrupts,
            kernel_threads=config.policies.housekeeping.kernel_threads,
            onto_reserved=config.policies.housekeeping.onto_reserved,
        ),
        cpu_normalization.STEM: cpu_normalization.Settings(
            max_ratio=config.policies.cpu_normalization.limits.max_ratio
        ),
        batch_limits.STEM: batch_limits.Settings(
            # Where one quota holds best-effort work together, its pods have none of their own.
            quota=not (
                config.policies.cpu_suppress.enable
                and config.policies.cpu_suppress.cpu_suppress_policy == cpu_suppress.QUOTA
            )
        ),
        adaptive.STEM: _adaptive(
            config.policies.adaptive, stand_back=config.policies.cpu_suppress.enable
        ),
        batch_resources.STEM: _batch(config.policies.batch_resources),
        allocatable_evict.CPU.stem: _threshold(config.policies.cpu_allocatable_evict),
        cpu_evict.STEM: _threshold(config.policies.cpu_evict),
        blkio_qos.STEM: _blkio(config.policies.blkio_qos),
        cpu_suppress.STEM: _suppress(config.policies.cpu_suppress),
        resctrl.STEM: _resctrl(config.policies.resctrl),
        cpu_burst.STEM: _cpu_burst(config.policies.cpu_burst),
        core_scheduling.STEM: core_scheduling.Settings(
            classes=frozenset(config.policies.core_scheduling.classes)
        ),
        cpu_qos.STEM: _cpu_qos(config),
        local_storage_evict.STEM: local_storage_evict.Settings(
            act=config.policies.local_storage_evict.act
        ),
        allocatable_evict.MEMORY.stem: _threshold(config.policies.memory_allocatable_evict),
        memory_evict.STEM: _threshold(config.policies.memory_evict),
        memory_qos.STEM: _memory_qos(config.policies.memory_qos),
        node_pressure.STEM: pressure_settings.of(config),
        network_qos.STEM: _network(config.policies.network_qos),
        page_cache_reclaim.STEM: _page_cache(config.policies.page_cache_reclaim),
        system_qos.STEM: _system(config.policies.system_qos),
    }


def _network(section: memory_io_sections.NetworkQos) -> network_qos.Settings:
    total = section.total_network_bandwidth
    return network_qos.Settings(
        total=0 if total is None else quantity.units(total),
        interfaces=section.interfaces,
        ingress=section.ingress,
        least=section.limits.least_bps,
        classes={
            network_qos.SYSTEM: _bandwidth(section.system_class),
            network_qos.LS: _bandwidth(section.ls_class),
            network_qos.BE: _bandwidth(section.be_class),
        },
    )


def _bandwidth(section: memory_io_sections.NetworkClass) -> strategies.NetworkQos:
    return replace(strategy_field.configured(strategies.NetworkQos, section), enable=True)


def _threshold(section: eviction_sections.Evict) -> strategies.Threshold:
    return strategy_field.configured(strategies.Threshold, section)


def _memory_qos(section: memory_io_sections.MemoryQos) -> memory_qos.Settings:
    classes = {"LSR": section.lsr_class, "LS": section.ls_class, "BE": section.be_class}
    return memory_qos.Settings(
        classes={
            name: strategy_field.configured(strategies.MemoryQos, own)
            for name, own in classes.items()
            if own.enable
        },
        max_percent=section.limits.max_percent,
    )


def _cpu_qos(config: schema.Config) -> cpu_qos.Settings:
    section = config.policies.cpu_qos
    classes: Mapping[str, cpu_sections.CpuQosClass | cpu_sections.BeCpuQosClass] = {
        "LSR": section.lsr_class,
        "LS": section.ls_class,
        "BE": section.be_class,
    }
    return cpu_qos.Settings(
        classes={
            name: strategy_field.configured(strategies.CpuQos, own)
            for name, own in classes.items()
            if own.enable
        },
        most=section.limits.max_identity,
        cores=config.policies.core_scheduling.mode != "off",
    )


def _blkio(section: memory_io_sections.BlkioQos) -> blkio_qos.Settings:
    def blocks(own: memory_io_sections.BlkioClass) -> tuple[strategies.Block, ...]:
        blkio = strategy_field.configured(strategies.BlkioQos, own)
        return blkio.blocks or () if blkio.enable else ()

    return blkio_qos.Settings(
        be=blocks(section.be_class),
        root=blocks(section.cgroup_root),
        least_bps=section.limits.least_bps,
        least_iops=section.limits.least_iops,
    )


def _page_cache(section: memory_io_sections.PageCacheReclaim) -> page_cache_reclaim.Settings:
    classes = {"LSR": section.lsr_class, "LS": section.ls_class, "BE": section.be_class}
    return page_cache_reclaim.Settings(
        classes={
            name: strategy_field.configured(strategies.MemoryQos, own)
            for name, own in classes.items()
            if own.page_cache_limit_enable
        },
        max_bytes=section.limits.max_bytes,
    )


def _system(section: memory_io_sections.SystemQos) -> system_qos.Settings:
    return system_qos.Settings(
        system=strategy_field.configured(strategies.System, section),
        max_free_percent=section.limits.max_free_percent,
    )


def _batch(section: best_effort_sections.BatchResources) -> batch_resources.Settings:
    colocation = strategy_field.configured(strategies.Colocation, section)
    return batch_resources.Settings(
        strategy=strategies.overlay(batch_resources.Settings().strategy, colocation),
        seed=section.formula == "seed",
        max_cpu_percent=section.limits.cpu_percent,
        max_memory_percent=section.limits.memory_percent,
    )


def _adaptive(section: best_effort_sections.Adaptive, *, stand_back: bool) -> adaptive.Settings:
    return adaptive.Settings(
        stand_back=stand_back,
        tolerance=section.tolerance_percent / 100,
        work_tolerance=section.cycles_tolerance_percent / 100,
        max_percent=section.limits.max_percent,
    )


def _suppress(section: best_effort_sections.CpuSuppress) -> cpu_suppress.Settings:
    return cpu_suppress.Settings(
        enable=section.enable,
        threshold_percent=section.cpu_suppress_threshold_percent,
        min_percent=section.cpu_suppress_min_percent,
        actuator=section.cpu_suppress_policy,
        seed=section.formula == "seed",
        max_age=float(section.max_age_seconds),
        max_percent=section.limits.max_percent,
    )


def _cpu_burst(section: cpu_sections.CpuBurst) -> cpu_burst.Settings:
    return cpu_burst.Settings(
        strategy=strategy_field.configured(strategies.CpuBurst, section),
        max_percent=section.limits.max_percent,
    )


def _resctrl(section: ways.Resctrl) -> resctrl.Settings:
    classes = {"LSR": section.lsr_class, "LS": section.ls_class, "BE": section.be_class}
    return resctrl.Settings(
        classes={
            name: annotation.Wish(
                ways=(own.cat_range_start_percent, own.cat_range_end_percent),
                percent=own.mba_percent,
            )
            for name, own in classes.items()
            if own.enable
        },
        mount=section.mount,
        mount_options=tuple(section.mount_options),
        bandwidth=section.bandwidth,
        slow_bandwidth=section.slow_bandwidth,
        runtime_classes=section.runtime_classes,
        peer=section.peer_numbers,
        pod_monitoring=section.pod_monitoring,
        most_monitors=section.limits.pod_monitors,
        tighten=section.tighten,
        partitions=values.stacked(
            (part.name, part.ways, part.bandwidth, part.classes) for part in section.partitions
        ),
    )


def counting(config: schema.Config) -> performance.PerformanceSettings | None:
    """Build how cycles and instructions are counted; ``None`` where counting is off."""
    section = config.counters.cpi
    if not section.enabled:
        return None
    from koordlet.host.counters import performance  # noqa: PLC0415 -- off by default

    return performance.PerformanceSettings(
        window=float(section.window_seconds),
        interval=float(section.interval_seconds),
        descriptors=section.descriptors,
    )


def modes(config: schema.Config) -> Mapping[str, plan.Mode]:
    """Build the configured mode of each policy, by stem."""
    policies = config.policies
    return {row.stem: plan.Mode(getattr(policies, row.stem).mode) for row in registry.POLICIES}


def node(config: schema.Config, hostname: str) -> snapshot.NodeInfo:
    """Build the node as the configuration describes it."""
    named = snapshot.NodeInfo(name=config.node.name or hostname)
    labels, annotations = dict(config.node.labels), dict(config.node.annotations)
    if not labels and not annotations:
        return named
    from koordlet.workloads import colocation  # noqa: PLC0415 -- a node without them reads no JSON

    problems: list[str] = []
    return replace(
        named,
        labels=labels,
        annotations=annotations,
        colocation=colocation.of_node(labels, annotations, problems),
        problems=tuple(f"configuration node: {problem}" for problem in problems),
    )


def workloads(config: schema.Config) -> tuple[pod.Pod, ...]:
    """Build the declared workloads, in the order of the file, without their groups."""
    return tuple(_workload(entry) for entry in config.workloads)


def _workload(entry: workload_sections.Workload) -> pod.Pod:
    match = entry.match
    listed = entry.cpus if isinstance(entry.cpus, str) else None
    return pod.Pod(
        uid=f"config/{entry.name}",
        namespace=declared.NAMESPACE,
        name=entry.name,
        qos=qos.Qos(entry.qos),
        raw_qos=qos.Qos(entry.qos),
        band=qos.Band.of(entry.priority) or qos.Band.default_of(qos.Qos(entry.qos)),
        source="configuration",
        priority=entry.priority,
        match=f"unit={match.unit}" if match.unit is not None else f"cgroup={match.cgroup}",
        cpus=None if listed is None else cpuset.CPUSet.parse(listed),
        cpu_count=entry.cpus if isinstance(entry.cpus, int) else None,
        requests=resources.read(entry.requests, [], entry.name),
        limits=resources.read(entry.limits, [], entry.name),
        addresses=tuple(str(address) for address in entry.addresses),
        wishes=wishes.Wishes(
            binding=wishes.Binding(required=entry.cpu_bind, exclusive=entry.cpu_exclusive),
            numa=wishes.Numa(policy=entry.numa),
        ),
    )
