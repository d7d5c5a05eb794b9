"""Translates the node-pressure configuration into the settings of its policy and readers.

Covers: thresholds, the kubelet's own, which directories and groups count.
Does not cover: the other policies (``policy_settings``).
"""

from __future__ import annotations

import typing
from dataclasses import replace

from koordlet.host.counters import pressure
from koordlet.model import duration, grouppath, pod, remember, slices, thresholds
from koordlet.policy.eviction import node_pressure

if typing.TYPE_CHECKING:
    from koordlet.config import schema


def of(config: schema.Config) -> node_pressure.Settings:
    """Build the settings of the policy."""
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


def places(config: schema.Config, base: str) -> pressure.PressurePaths:
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
def proved(
    pressure_paths: pressure.PressurePaths, pods: tuple[pod.Pod, ...]
) -> pressure.PressurePaths:
    """Put the group first that pods really are in: a kubelet may be nested."""
    trees = (grouppath.parse(pod.group).tree for pod in pods if pod.group is not None)
    root = next((tree.root for tree in trees if tree is not None), None)
    if root is None or root in pressure_paths.pods:
        return pressure_paths
    return replace(pressure_paths, pods=(root, *pressure_paths.pods))


def _kubelet_texts(path: str | None) -> thresholds.Texts | None:
    if path is None:
        return None
    from koordlet.config import kubelet_file  # noqa: PLC0415 -- few name the kubelet's file

    return kubelet_file.texts(path)


def _pods_below(base: str) -> tuple[str, ...]:
    """Name the group of all pods below a slice, as systemd does."""
    stem = slices.stem(base.rstrip("/").rpartition("/")[2])
    return (f"{stem}-{pressure.PODS[0]}",) if stem else ()
