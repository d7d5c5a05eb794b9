"""Translates the operator's configuration into the settings of policies and readers.

Covers: policy settings and modes, declared workloads, the node, the directories and groups that
node pressure is about, from one ``Config``.
Does not cover: reading configuration (``config``), one pass (``tick``).
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from koordlet.host.counters import pressure
from koordlet.model import (
    cpuset,
    duration,
    grouppath,
    node_ratios,
    plan,
    pod,
    qos,
    quantity,
    remember,
    resources,
    slices,
    snapshot,
    strategies,
    strategy_field,
    thresholds,
    wishes,
)
from koordlet.policy.best_effort import adaptive, batch_limits, batch_resources, cpu_suppress
from koordlet.policy.cpu import core_scheduling, cpu_qos, dra_driver, real_time, reserved_cpus
from koordlet.policy.eviction import node_pressure
from koordlet.policy.framework import registry
from koordlet.policy.memory_io import blkio_qos, memory_qos, network_qos, page_cache_reclaim
from koordlet.policy.resctrl import annotation, resctrl, values
from koordlet.workloads import declared

if typing.TYPE_CHECKING:
    from koordlet.config import (
        best_effort_sections,
        cpu_sections,
        memory_io_sections,
        schema,
        workload_sections,
    )
    from koordlet.config import resctrl_section as ways
    from koordlet.host.counters import performance

_T = TypeVar("_T")


def settings(config: schema.Config) -> Mapping[str, object]:
    """Build the settings of each policy that has any, by stem."""
    policies = config.policies
    suppress = policies.cpu_suppress
    other: dict[str, object] = {
        reserved_cpus.STEM: _reserved(policies.reserved_cpus),
        dra_driver.STEM: dra_driver.Settings(
            name=policies.dra_driver.name,
            enforced=policies.exclusive_cpus.mode == policies.shared_pools.mode == "enforce",
            group_by=policies.dra_driver.group_by,
            compatible=policies.dra_driver.compatible_attributes,
            most=policies.exclusive_cpus.limits.max_cpus,
            caches=policies.resctrl.mode == "enforce",
            ways=policies.dra_driver.cache_ways,
            groups=policies.dra_driver.cache_groups,
        ),
        batch_limits.STEM: batch_limits.Settings(
            # Where one quota holds best-effort work together, its pods have none of their own.
            quota=not (suppress.enable and suppress.cpu_suppress_policy == cpu_suppress.QUOTA)
        ),
        adaptive.STEM: _adaptive(policies.adaptive, stand_back=suppress.enable),
        batch_resources.STEM: _batch(policies.batch_resources),
        blkio_qos.STEM: _blkio(policies.blkio_qos),
        cpu_suppress.STEM: _suppress(suppress),
        resctrl.STEM: _resctrl(policies.resctrl),
        core_scheduling.STEM: core_scheduling.Settings(
            classes=frozenset(policies.core_scheduling.classes)
        ),
        real_time.STEM: _real_time(policies.real_time.limits),
        cpu_qos.STEM: cpu_qos.Settings(
            classes=_classes(strategies.CpuQos, policies.cpu_qos),
            most=policies.cpu_qos.limits.max_identity,
            cores=policies.core_scheduling.mode != "off",
        ),
        memory_qos.STEM: memory_qos.Settings(
            classes=_classes(strategies.MemoryQos, policies.memory_qos),
            max_percent=policies.memory_qos.limits.max_percent,
        ),
        node_pressure.STEM: _node_pressure(config),
        network_qos.STEM: _network(policies.network_qos),
        page_cache_reclaim.STEM: page_cache_reclaim.Settings(
            classes=_classes(
                strategies.MemoryQos, policies.page_cache_reclaim, "page_cache_limit_enable"
            ),
            max_bytes=policies.page_cache_reclaim.limits.max_bytes,
        ),
    }
    return {
        row.stem: strategy_field.configured(type(row.settings), getattr(policies, row.stem))
        for row in registry.POLICIES
        if row.stem not in other
    } | other


def _real_time(section: cpu_sections.RealTimeLimits) -> real_time.Settings:
    return real_time.Settings(
        max_percent=section.max_percent,
        namespaces=None if section.namespaces is None else frozenset(section.namespaces),
    )


def _reserved(section: cpu_sections.ReservedCpus) -> reserved_cpus.Settings:
    return reserved_cpus.Settings(
        cpus=None if section.cpus is None else cpuset.CPUSet.parse(section.cpus),
        quantity_milli=None if section.quantity is None else quantity.milli(section.quantity),
        max_cpus=section.limits.max_cpus,
    )


def _by_class(section: Any) -> Mapping[str, Any]:
    return {"LSR": section.lsr_class, "LS": section.ls_class, "BE": section.be_class}


def _classes(strategy: type[_T], section: Any, switch: str = "enable") -> Mapping[str, _T]:
    """Strategy of each class that is switched on."""
    return {
        name: strategy_field.configured(strategy, own)
        for name, own in _by_class(section).items()
        if getattr(own, switch)
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


def _resctrl(section: ways.Resctrl) -> resctrl.Settings:
    return resctrl.Settings(
        classes={
            name: annotation.Wish(
                ways=(own.cat_range_start_percent, own.cat_range_end_percent),
                percent=own.mba_percent,
            )
            for name, own in _by_class(section).items()
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


def _node_pressure(config: schema.Config) -> node_pressure.Settings:
    policies, section = config.policies, config.policies.node_pressure
    swap = section.swap_available
    local = section.local_storage_capacity_isolation and policies.local_storage_evict.mode != "off"
    return node_pressure.Settings(
        limits=thresholds.parse(thresholds.Texts.of(section)),
        transition=duration.parse(section.eviction_pressure_transition_period),
        max_grace=section.eviction_max_pod_grace_period,
        own=thresholds.own(section.eviction_own, duration.parse(section.eviction_own_grace_period)),
        act=section.act,
        kubelet=_kubelet_texts(config.kubelet.config_file),
        pass_seconds=None if section.pass_seconds is None else float(section.pass_seconds),
        local_storage=local,
        reclaim=section.reclaim_page_cache,
        tight_percent=section.workload_memory_percent,
        stalls=section.pressure_limits,
        swap=None if swap is None else thresholds.value("swapAvailable", "swap.available", swap),
    )


def pressure_paths(config: schema.Config, base: str) -> pressure.PressurePaths:
    """Choose the directories and groups whose space and memory a node may run out of."""
    section = config.policies.node_pressure
    usual = (config.kubelet.directory or pressure.NODEFS[0], *pressure.NODEFS[1:])
    return pressure.PressurePaths(
        nodefs=usual if section.nodefs is None else (section.nodefs,),
        imagefs=pressure.IMAGEFS if section.imagefs is None else (section.imagefs,),
        containerfs=() if section.containerfs is None else (section.containerfs,),
        pods=(*_pods_below(base), *pressure.PODS),
        memory=section.memory_cgroup or "",
    )


@remember.last
def proved(paths: pressure.PressurePaths, pods: tuple[pod.Pod, ...]) -> pressure.PressurePaths:
    """Put the group first that pods really are in: a kubelet may be nested."""
    trees = (grouppath.parse(pod.group).tree for pod in pods if pod.group is not None)
    root = next((tree.root for tree in trees if tree is not None), None)
    if root is None or root in paths.pods:
        return paths
    return replace(paths, pods=(root, *paths.pods))


def _kubelet_texts(path: str | None) -> thresholds.Texts | None:
    if path is None:
        return None
    from koordlet.config import kubelet_file  # noqa: PLC0415 -- YAML: 13 ms of a start that names no file

    return kubelet_file.texts(path)


def _pods_below(base: str) -> tuple[str, ...]:
    """Name the group of all pods below a slice, as systemd does."""
    stem = slices.stem(base.rstrip("/").rpartition("/")[2])
    return (f"{stem}-{pressure.PODS[0]}",) if stem else ()


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


def ratio_table(config: schema.Config) -> node_ratios.RatioTable:
    """Build the table of CPU models and amplifications."""
    section = config.node.cpu_normalization
    return node_ratios.RatioTable(
        models={
            row.model: node_ratios.ModelRatios(
                base=row.base,
                hyper_thread=row.hyper_thread,
                turbo=row.turbo,
                hyper_thread_turbo=row.hyper_thread_turbo,
            )
            for row in section.models
        },
        other=section.other,
        amplification=config.node.amplification,
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
            real_time=entry.real_time,
        ),
    )
