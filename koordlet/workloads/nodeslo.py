"""The peer's NodeSLO into strategies in force.

Covers: the object's spec, defaults underneath, host applications.
Does not cover: making a spec out of ``slo-controller-config`` (``sloconfig``).

Rules:
1. A section or field that does not fit costs itself: its last valid value holds
   (``strategy_holding``), else its default is in force, and the problem is said.
2. Another version of the object is read for what it has in common with ours.
3. A missing object is all defaults, which switch everything off.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from koordlet.kubeapi import classes, shapes
from koordlet.model import cgroup, nodeslo, qos, strategies
from koordlet.workloads import colocation, strategy_holding
from koordlet.workloads.annotations import blkio_qos, cpu_burst, cpu_qos, memory_qos

_PERCENT = shapes.integer(0, 100)
_COUNT = shapes.integer(0)
_PRIORITY = shapes.integer(-(2**31), 2**31 - 1)

_THRESHOLD = shapes.record(
    strategies.Threshold,
    {
        "enable": ("enable", shapes.boolean),
        "cpu_suppress_threshold_percent": ("cpuSuppressThresholdPercent", _PERCENT),
        "cpu_suppress_min_percent": ("cpuSuppressMinPercent", _PERCENT),
        "cpu_suppress_policy": ("cpuSuppressPolicy", shapes.choice("cpuset", "cfsQuota")),
        "memory_evict_threshold_percent": ("memoryEvictThresholdPercent", _PERCENT),
        "memory_evict_lower_percent": ("memoryEvictLowerPercent", _PERCENT),
        "memory_allocatable_evict_threshold_percent": (
            "memoryAllocatableEvictThresholdPercent",
            _COUNT,
        ),
        "memory_allocatable_evict_lower_percent": ("memoryAllocatableEvictLowerPercent", _COUNT),
        "cpu_evict_be_satisfaction_upper_percent": (
            "cpuEvictBESatisfactionUpperPercent",
            _PERCENT,
        ),
        "cpu_evict_be_satisfaction_lower_percent": (
            "cpuEvictBESatisfactionLowerPercent",
            _PERCENT,
        ),
        "cpu_evict_be_usage_threshold_percent": ("cpuEvictBEUsageThresholdPercent", _PERCENT),
        "cpu_evict_time_window_seconds": ("cpuEvictTimeWindowSeconds", shapes.integer(1)),
        "cpu_evict_threshold_percent": ("cpuEvictThresholdPercent", _PERCENT),
        "cpu_evict_lower_percent": ("cpuEvictLowerPercent", _PERCENT),
        "cpu_allocatable_evict_threshold_percent": (
            "cpuAllocatableEvictThresholdPercent",
            _COUNT,
        ),
        "cpu_allocatable_evict_lower_percent": ("cpuAllocatableEvictLowerPercent", _COUNT),
        "cpu_evict_policy": (
            "cpuEvictPolicy",
            shapes.choice("evictByRealLimit", "evictByAllocatable"),
        ),
        "evict_enabled_priority_threshold": ("evictEnabledPriorityThreshold", _PRIORITY),
        "allocatable_evict_priority_threshold": (
            "allocatableEvictPriorityThreshold",
            shapes.integer(-(2**31), 7999),
        ),
    },
)
_BURST = shapes.record(
    strategies.CpuBurst,
    {
        **cpu_burst.FIELDS,
        "share_pool_threshold_percent": ("sharePoolThresholdPercent", _PERCENT),
    },
)


def _share(value: object, problems: list[str]) -> strategies.Share:
    """A number is percent of the node's bandwidth, a text is bits per second."""
    if isinstance(value, str):
        return strategies.Share(bits=shapes.units(value, problems))
    return strategies.Share(percent=_PERCENT(value, problems))


_CLASS = shapes.record(
    strategies.ClassQos,
    {
        "cpu": ("cpuQOS", cpu_qos.read),
        "memory": ("memoryQOS", shapes.record(strategies.MemoryQos, memory_qos.FIELDS)),
        "blkio": ("blkioQOS", shapes.record(strategies.BlkioQos, blkio_qos.FIELDS)),
        "resctrl": (
            "resctrlQOS",
            shapes.record(
                strategies.ResctrlQos,
                {
                    "enable": ("enable", shapes.boolean),
                    "cat_range_start_percent": ("catRangeStartPercent", _PERCENT),
                    "cat_range_end_percent": ("catRangeEndPercent", _PERCENT),
                    "mba_percent": ("mbaPercent", _PERCENT),
                },
            ),
        ),
        "network": (
            "networkQOS",
            shapes.record(
                strategies.NetworkQos,
                {
                    "enable": ("enable", shapes.boolean),
                    "ingress_request": ("ingressRequest", _share),
                    "ingress_limit": ("ingressLimit", _share),
                    "egress_request": ("egressRequest", _share),
                    "egress_limit": ("egressLimit", _share),
                },
            ),
        ),
    },
)
_SYSTEM = shapes.record(
    strategies.System,
    {
        "min_free_kbytes_factor": ("minFreeKbytesFactor", _COUNT),
        "watermark_scale_factor": ("watermarkScaleFactor", _COUNT),
        "memcg_reap_back_ground": ("memcgReapBackGround", _COUNT),
        "sched_group_identity_enabled": ("schedGroupIdentityEnabled", _COUNT),
        "sched_idle_saver_wmark": ("schedIdleSaverWmark", _COUNT),
        "sched_features": ("schedFeatures", shapes.table(shapes.boolean)),
        "page_cache_limit_enabled": ("pageCacheLimitEnabled", shapes.boolean),
        "total_network_bandwidth": ("totalNetworkBandwidth", shapes.units),
    },
)

#: Our name of a class to the object's.
_CLASSES = {
    "LSR": "lsrClass",
    "LS": "lsClass",
    "BE": "beClass",
    "SYSTEM": "systemClass",
    "root": "cgroupRoot",
}


def _policies(
    *, cpu: str = nodeslo.DEFAULTS.cpu_policy, network: str = nodeslo.DEFAULTS.network_policy
) -> tuple[str, str]:
    return cpu, network


_POLICIES = shapes.record(
    _policies,
    {
        "cpu": ("cpuPolicy", shapes.choice("groupIdentity", "coreSched")),
        "network": ("netQOSPolicy", shapes.choice("tc", "terway-qos")),
    },
)


def _class_table(**said: strategies.ClassQos | tuple[str, str]) -> dict[str, object]:
    return dict(said)


_QOS = shapes.record(
    _class_table,
    {
        "policies": ("policies", _POLICIES),
        **{ours: (theirs, _CLASS) for ours, theirs in _CLASSES.items()},
    },
)

_BASES = {
    "CgroupRoot": "",
    "Kubepods": "kubepods",
    "KubepodsBurstable": "kubepods/burstable",
    "KubepodsBesteffort": "kubepods/besteffort",
}


def _place(*, base: str = "", parent: str = "", relative: str = "") -> str:
    return posixpath.join(_BASES[base] if base else "", parent.strip("/"), relative.strip("/"))


_PLACE = shapes.record(
    _place,
    {
        "base": ("base", shapes.choice("", *_BASES)),
        "parent": ("parentDir", shapes.text),
        "relative": ("relativePath", shapes.text),
    },
)
#: Where an application without a path is, by class.
_USUAL = {
    qos.Qos.LSE: "host-latency-sensitive/",
    qos.Qos.LSR: "host-latency-sensitive/",
    qos.Qos.LS: "host-latency-sensitive/",
    qos.Qos.BE: "host-best-effort/",
}


def _named(value: object, problems: list[str]) -> str:
    text = shapes.text(value, problems)
    if not text or "/" in text or not cgroup.is_plain(text):
        msg = f"{shapes.shown(text)} is not a name"
        raise ValueError(msg)
    return text


def _application(
    *,
    name: str,
    priority: str = "",
    qos_class: str = "",
    place: str | None = None,
    rest: None = None,
) -> nodeslo.HostApplication:
    del rest
    complaints: list[str] = []
    kind = classes.raw_qos({classes.QOS_LABEL: qos_class}, complaints)
    band = qos.Band.labelled(priority)
    group = place or _USUAL.get(kind, "") + name if kind else place or name
    if not cgroup.is_plain(group):
        complaints.append(f"{shapes.shown(group)} is not a plain cgroup path")
    if complaints:
        raise ValueError(complaints[0])
    return nodeslo.HostApplication(name=name, group=group, qos=kind, band=band)


def _ignored(value: object, problems: list[str]) -> None:
    del value, problems


_APPLICATION = shapes.record(
    _application,
    {
        "name": ("name", _named),
        "priority": ("priority", shapes.text),
        "qos_class": ("qos", shapes.text),
        "place": ("cgroupPath", _PLACE),
        "rest": ("strategy", _ignored),
    },
)
_APPLICATIONS = shapes.listing(_APPLICATION)


def decode(
    body: Mapping[str, object],
    *,
    source: str = "NodeSLO",
    where: str = "NodeSLO",
    before: Mapping[str, object] | None = None,
) -> nodeslo.NodeSlo:
    """The strategies in force under this object; ``before``: the words that were until now."""
    problems: list[str] = []
    meta = body.get("metadata")
    name = meta.get("name") if isinstance(meta, dict) else None
    found = spec(shapes.find(body, "spec"), source, problems, before=before)
    said = meta if isinstance(meta, dict) else {}
    revision, uid = (str(said.get(key) or "") for key in ("resourceVersion", "uid"))
    culprit = f"{where} {shapes.plain(name)}" if name else where
    return replace(
        found,
        revision=revision,
        uid=uid,
        problems=tuple(f"{culprit}: {problem}" for problem in problems),
    )


def spec(
    value: object,
    source: str,
    problems: list[str],
    *,
    before: Mapping[str, object] | None = None,
    broken: Iterable[str] = (),
) -> nodeslo.NodeSlo:
    """Merge a spec over the defaults; ``broken``: sections with unreadable text."""
    complaints = shapes.Problems()
    complaints.unread.extend((one,) for one in broken)
    body: Mapping[str, object] = {}
    try:
        body = shapes.mapping(value) if value is not None else {}
    except ValueError as error:
        complaints.append(f"spec: {error}")
        complaints.unread.extend((one,) for one in strategy_holding.SECTIONS)
    found = _in_force(body, source, complaints)
    problems += complaints
    if not complaints.unread:
        return replace(found, said=body)
    body = strategy_holding.mended(body, complaints.unread, before)
    return replace(_in_force(body, source, []), said=body, unread=frozenset(complaints.unread))


def _in_force(body: Mapping[str, object], source: str, problems: list[str]) -> nodeslo.NodeSlo:
    def section(key: str, reader: shapes.Reader) -> Any:
        return shapes.guarded(reader, shapes.find(body, key), key, problems)

    qos_said = section(strategy_holding.CLASSES, _QOS)
    said = qos_said if isinstance(qos_said, dict) else {}
    cpu_policy, network_policy = said.get("policies") or _policies()
    base = nodeslo.DEFAULTS
    applications = section("hostApplications", _APPLICATIONS)
    return nodeslo.NodeSlo(
        source=source,
        threshold=strategies.overlay(
            base.threshold, section(strategy_holding.THRESHOLD, _THRESHOLD)
        ),
        cpu_burst=strategies.overlay(base.cpu_burst, section("cpuBurstStrategy", _BURST)),
        system=strategies.overlay(base.system, section("systemStrategy", _SYSTEM)),
        classes={
            name: nodeslo.in_force(name, said.get(name) or strategies.ClassQos())
            for name in _CLASSES
        },
        cpu_policy=cpu_policy,
        network_policy=network_policy,
        colocation=strategies.overlay(base.colocation, section(colocation.KEY, colocation.read)),
        applications=applications if isinstance(applications, tuple) else (),
    )
