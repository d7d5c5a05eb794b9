"""memory_qos: memory protection and throttling of each class.

Covers: ``memory.min``, ``low`` and ``high`` of pods and containers, the sums that the QoS groups
above must hold for them, ``memory.oom.group``, and the watermarks and priorities of kernels that
have them.
Does not cover: which strategy a class has (NodeSLO, configuration), hard limits, page
cache limits, which no kernel in the table has.

Rules:
1. A protection counts only as far as every group above holds it, too: a pod's containers are
   protected within the pod, the pods within their QoS group, what crun nests within its scope.
2. What a strategy leaves at its neutral value is not written: a file is ours only while something
   is asked of it, and goes back to what it was afterwards. (Koordinator's agent writes zeros.)
3. Annotation ``policy: none`` is nothing at all, ``auto`` the class's defaults even where the node
   has switched them off; single fields of the annotation lie over either.
4. ``memory.high`` is never below ``memory.min``. What this kernel has no file for is said once.

* Formula: min = request * minLimitPercent; low = request * lowLimitPercent; high = request + (limit
  - request) * throttlingPercent
* Writes: `memory.min`, `memory.low`, `memory.high`, `memory.oom.group`; `memory.wmark_*`,
  `memory.priority` and `memory.use_priority_oom` where the kernel has them
* See: `koordlet explain pod NS/NAME`
* More: qos.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from koordlet.history import series
from koordlet.model import (
    cgroup,
    decision,
    knob,
    limits,
    nodeslo,
    qos,
    resources,
    snapshot,
    strategies,
)
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.framework import declaration, proposals

STEM = "memory_qos"
State = decision.Stateless
_PAGE = 4096

#: Files of one vendor's kernel, their field, and whether QoS groups have them, too.
_VENDOR = (
    (knob.WMARK_RATIO, "wmark_ratio"),
    (knob.WMARK_SCALE, "wmark_scale_permill"),
    (knob.WMARK_MIN_ADJ, "wmark_min_adj"),
    (knob.MEMORY_PRIORITY, "priority"),
    (knob.USE_PRIORITY_OOM, "priority_enable"),
    (knob.OOM_GROUP, "oom_kill_group"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The operator's settings; a NodeSLO replaces them."""

    #: ``LSR``, ``LS`` or ``BE`` to the strategy, where the class has one.
    classes: Mapping[str, strategies.MemoryQos] = field(default_factory=dict)
    #: No protection of one pod beyond this part of the machine's memory, in percent.
    max_percent: int = 100


@dataclass(frozen=True, slots=True)
class Protection:
    """Protected bytes: ``min`` always, ``low`` while others have memory to reclaim."""

    min: int = 0
    low: int = 0

    def __add__(self, other: Protection) -> Protection:
        return Protection(self.min + other.min, self.low + other.low)


def decide(
    now: snapshot.Snapshot, _past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Decide the memory files of every pod whose strategy sets something."""
    deciding = _Deciding(now, settings)
    for pod in now.pods:
        deciding.place(pod)
    deciding.above()
    deciding.unsupported()
    return deciding.decided(state)


def strategy_of(
    pod: pods.Pod, slo: nodeslo.NodeSlo | None, settings: Settings
) -> strategies.MemoryQos | None:
    """The strategy of a pod; ``None`` where there is none."""
    name = pod.slo_class
    if not name:
        return None
    if slo is not None and slo.source:
        node = slo.classes[name].memory
    else:
        mine = settings.classes.get(name)
        node = nodeslo.NEUTRAL.memory if mine is None else mine
    wish = pod.wishes.memory_qos
    policy = "default" if wish is None else wish.policy or "default"
    if policy == "none":
        return None
    if policy == "auto":
        node = replace(nodeslo.CLASSES[name].memory, enable=True)
    merged = strategies.overlay(node, wish)
    # A field that a pod asks for itself counts although the node's section is off.
    neutral = nodeslo.NEUTRAL.memory
    return None if merged is neutral or merged == neutral else merged


def protection(asked: strategies.MemoryQos, request: int) -> Protection:
    """Protection computed from a request."""
    least = request * (asked.min_limit_percent or 0) // 100
    low = request * (asked.low_limit_percent or 0) // 100
    return Protection(least, max(least, low) if low > 0 else 0)


def high(asked: strategies.MemoryQos, request: int, most: int) -> int | None:
    """``memory.high`` of a container: between request and limit, in whole pages."""
    percent = asked.throttling_percent or 0
    if percent <= 0 or most <= 0:
        return None
    between = request + (most - request) * percent // 100
    return max(between // _PAGE * _PAGE, protection(asked, request).min)


class _Deciding(proposals.Proposal):
    """Builds one decision."""

    def __init__(self, now: snapshot.Snapshot, settings: Settings) -> None:
        super().__init__(STEM, now)
        self.settings = settings
        #: QoS groups of the kubelet's tree and what the pods in them are promised together.
        self._sums: dict[str, Protection] = {}
        self._missing: set[str] = set()

    def place(self, pod: pods.Pod) -> None:
        """Decide the files of one pod and of its containers."""
        asked = strategy_of(pod, self.now.slo, self.settings)
        if asked is None or not pod.active or pod.group not in self.now.groups:
            return
        group = pod.group or ""
        kept = protection(asked, self._bound(_request(pod, pod.requests)))
        self._protect(group, kept, f"{pod.qos.value} {pod.key}")
        self._vendor(group, asked, f"{pod.qos.value} {pod.key}")
        if pod.kube_qos is not None:
            for above in _qos_groups(pod):
                self._sums[above] = self._sums.get(above, Protection()) + kept
        for each in _parts(pod):
            if each.group in self.now.groups:
                self._container(pod, each, asked)
        self.why[pod.key] = f"min {kept.min}, low {kept.low} bytes"

    def _container(self, pod: pods.Pod, each: pods.Container, asked: strategies.MemoryQos) -> None:
        group, name = each.group or "", f"{pod.key}/{each.name}"
        request = self._bound(_request(pod, each.requests))
        if group != pod.group:
            for around in cgroup.with_scopes([group], pod.group):
                self._protect(around, protection(asked, request), name)
            self._vendor(group, asked, name)
        most = _request(pod, each.limits) or self.now.node.allocatable.get(resources.MEMORY, 0)
        slow = high(asked, request, most)
        if slow is not None:
            reason = f"{name}: throttled at {asked.throttling_percent} % between request and limit"
            self._bytes(knob.MEMORY_HIGH, group, slow, reason)

    def above(self) -> None:
        """Protect the QoS cgroups by the sums of their pods, which the kernel requires."""
        for group, kept in self._sums.items():
            if group in self.now.groups:
                self._protect(group, kept, "its pods together")

    def _protect(self, group: str, kept: Protection, who: str) -> None:
        if kept.min:
            self._bytes(knob.MEMORY_MIN, group, kept.min, f"{who}: protected memory")
        if kept.low:
            self._bytes(knob.MEMORY_LOW, group, kept.low, f"{who}: memory protected if possible")

    def _vendor(self, group: str, asked: strategies.MemoryQos, who: str) -> None:
        for row, name in _VENDOR:
            value = getattr(asked, name)
            if value is None or value == getattr(nodeslo.NEUTRAL.memory, name):
                continue
            if not self.write_knob(row, group, str(value), f"{who}: {name.replace('_', ' ')}"):
                self._missing.add(row.name)

    def _bytes(self, row: knob.Knob, group: str, size: int, reason: str) -> None:
        settings = limits.memory(self.now.layout, group, row, size)
        if not settings:
            self._missing.add(row.name)
        self.write_settings(settings, group, reason)

    def _bound(self, request: int) -> int:
        """Cap a request at the operator's percentage of the machine's memory."""
        capacity = self.now.node.capacity.get(resources.MEMORY)
        most = None if capacity is None else capacity * self.settings.max_percent // 100
        return request if most is None else min(request, most)

    def unsupported(self) -> None:
        """One condition for all files that this kernel lacks."""
        if self._missing:
            gaps = [self.now.layout.why_not(knob.TABLE[name]) for name in sorted(self._missing)]
            self.say("MemoryQosUnsupported", "; ".join(map(str, gaps)))


def _request(pod: pods.Pod, amounts: resources.Amounts) -> int:
    """Memory amount of the pod's class: batch memory for best-effort pods."""
    if pod.raw_qos is qos.Qos.BE and resources.BATCH_MEMORY in amounts:
        return amounts[resources.BATCH_MEMORY]
    return amounts.get(resources.MEMORY, 0)


def _parts(pod: pods.Pod) -> tuple[pods.Container, ...]:
    """Its containers; a workload without any is its own only part."""
    whole = pods.Container(name=pod.name, group=pod.group, requests=pod.requests, limits=pod.limits)
    return pod.containers or (whole,)


def _qos_groups(pod: pods.Pod) -> Iterator[str]:
    """The QoS groups above a pod of the kubelet's: its class's, and the root of the tree.

    The root holds the sum of all; Guaranteed pods are in it directly.
    """
    parent = (pod.group or "").rpartition("/")[0]
    if not parent:
        return
    yield parent
    above = parent.rpartition("/")[0]
    if pod.kube_qos is not qos.KubeQos.GUARANTEED and above:
        yield above


POLICY = declaration.Policy(
    stem=STEM,
    summary="memory protection and throttling of each class",
    protects="it protects memory of some workloads and limits others",
    decide=decide,
    settings=Settings(),
    timeless=True,
)
