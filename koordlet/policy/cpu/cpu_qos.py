"""cpu_qos: CPU scheduling of each class: group identity and ``cpu.idle``.

Covers: group identity (``cpu.bvt_warp_ns``) of pods, of the QoS groups above them and of declared
workloads; ``cpu.idle`` of groups that koordlet made or that were declared to it.
Does not cover: weights and quotas, the kernel's own switches (``policy.memory_io.system_qos``),
cookies of cores (``core_scheduling``).

Only Alibaba Cloud Linux knows a group's identity: from -1 (goes aside for everybody) to 2 (is never
held up by those, also not by a sibling thread of its core). Elsewhere nothing is written, and one
condition says so where somebody asked for it.

Rules:
1. Values are the peer's: a class that is switched on has its own (LSE that of LSR), the root of the
   kubelet's tree has 0, and the QoS groups have those of LS and BE. Pods without a class, and of
   SYSTEM, follow their Kubernetes class.
2. The annotation ``koordinator.sh/cpuQOS`` counts for LS pods alone: not enabled is 0.
3. While nothing but 0 is asked for, no file is ours. As soon as one group is told something all of
   them are, because a group is born with what the one above it has.
4. ``cpu.idle`` is never set on the kubelet's groups: while it is 1 the kernel refuses weights
   (EINVAL), which a kubelet that writes them does not survive.
5. A node whose policy is ``coreSched`` has no identities: the peer has one or the other. Where
   ``core_scheduling`` is off, one condition names whoever asks for it.

* Formula: none: identity by class as the peer has it (LSR and LS 2, BE -1); idle = 1 in groups that
  koordlet made
* Writes: `cpu.bvt_warp_ns` where the kernel has it; `cpu.idle` of groups that koordlet made
* See: `koordlet explain pod NS/NAME`, `koordlet explain write PATH`
* More: cpu.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from koordlet.history import series
from koordlet.model import decision, grouppath, knob, nodeslo, qos, snapshot, strategies
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.best_effort import groups
from koordlet.policy.cpu import core_scheduling
from koordlet.policy.framework import declaration, proposals

STEM = "cpu_qos"
State = decision.Stateless
CLASSES = ("LSR", "LS", "BE")
_NONE = nodeslo.NEUTRAL.cpu


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The operator's settings; a NodeSLO replaces them."""

    #: ``LSR``, ``LS`` or ``BE`` to the strategy, where the class has one.
    classes: Mapping[str, strategies.CpuQos] = field(default_factory=dict)
    #: No group is told more than this.
    most: int = 2
    #: Whether ``core_scheduling`` answers those who ask for it.
    cores: bool = False


def decide(
    now: snapshot.Snapshot, _past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Every group's identity, where any is asked for; idle groups."""
    deciding = _Deciding(now, settings)
    deciding.identities()
    deciding.idle()
    if not settings.cores:
        deciding.core_sharing()
    return deciding.decided(state)


class _Deciding(proposals.Proposal):
    """Builds one decision."""

    def __init__(self, now: snapshot.Snapshot, settings: Settings) -> None:
        super().__init__(STEM, now)
        self.most = settings.most
        self.classes: Mapping[str, strategies.CpuQos]
        slo = now.cluster_slo
        self.by_cores = slo is not None and slo.cpu_policy == core_scheduling.BY_CORES
        if slo is None:
            self.classes = {name: settings.classes.get(name, _NONE) for name in CLASSES}
        else:
            self.classes = {name: slo.classes[name].cpu for name in CLASSES}
        self.pods = [pod for pod in now.pods if pod.active and pod.group in now.groups]

    # Group identity (rules 1 to 3) ----------------------------------------------------------------

    def identities(self) -> None:
        """Decide the group identity of every group that has one."""
        if self.by_cores:
            return
        wanted: dict[str, tuple[int, str]] = {}
        for pod in self.pods:
            wanted |= self._above(pod)
        for pod in self.pods:
            value = min(self._identity(pod), self.most)
            wanted[pod.group or ""] = value, f"{pod.qos.value} {pod.key}"
            self.why[pod.key] = f"group identity {value}"
        wanted = {group: (min(value, self.most), who) for group, (value, who) in wanted.items()}
        if not any(value for value, _ in wanted.values()):
            self.why.clear()
            return
        for group, (value, who) in wanted.items():
            if group in self.now.groups:
                self.write_knob(knob.CPU_BVT, group, str(value), f"{who}: group identity {value}")
        gap = self.now.layout.why_not(knob.CPU_BVT)
        if gap is not None:
            self.say("CpuQosUnsupported", f"group identity: {gap}")

    def _of(self, name: str) -> int:
        return self.classes[name].group_identity or 0

    def _identity(self, pod: pods.Pod) -> int:
        wish = pod.wishes.cpu_qos
        if pod.raw_qos is qos.Qos.LS and wish is not None:
            usual = nodeslo.CLASSES["LS"].cpu
            return strategies.overlay(usual, wish).group_identity or 0 if wish.enable else 0
        if pod.kube_qos is None:
            return self._of(qos.SLO_CLASS[pod.qos]) if pod.qos in qos.SLO_CLASS else 0
        if pod.raw_qos in qos.SLO_CLASS:
            return self._of(qos.SLO_CLASS[pod.raw_qos])
        if pod.kube_qos is qos.KubeQos.GUARANTEED:
            return self._of("LSR") or self._of("LS")
        return self._of(qos.SLO_CLASS_OF_KUBE[pod.kube_qos])

    def _above(self, pod: pods.Pod) -> Mapping[str, tuple[int, str]]:
        """The groups above a pod of a kubelet's."""
        tree = grouppath.parse(pod.group or "").tree if pod.kube_qos is not None else None
        if tree is None:
            return {}
        below = {
            tree.tier(qos.KubeQos.BURSTABLE): (self._of("LS"), "Burstable pods together"),
            tree.tier(qos.KubeQos.BEST_EFFORT): (self._of("BE"), "BestEffort pods together"),
        }
        return {tree.root: (0, "all pods together"), **below}

    # Idle groups (rule 4) -------------------------------------------------------------------------

    def idle(self) -> None:
        """Decide ``cpu.idle`` of best-effort work."""
        if not self.classes["BE"].sched_idle:
            return
        places = groups.places(self.now)
        self.actions += groups.yielding(self.now, places, STEM, "schedIdle of best-effort work")
        self.conditions += groups.enclosed(places, self.now.pods)
        left = [
            pod.key for pod in self.pods if groups.is_best_effort(pod) and pod.kube_qos is not None
        ]
        if left:
            self.say(
                "CpuIdleLeft",
                f"schedIdle: cpu.idle is not set for {len(left)} workloads"
                f" ({', '.join(sorted(left)[:3])}): the kubelet owns their cgroups and cannot write"
                " weights while cpu.idle is 1; it already gives them the lowest weight",
            )

    # Core scheduling (rule 5) ---------------------------------------------------------------------

    def core_sharing(self) -> None:
        """Report requests for core scheduling, which is off."""
        asked = [
            pod.key
            for pod in self.pods
            if (wish := pod.wishes.core_sharing) is not None
            and (wish.group or wish.policy == core_scheduling.EXCLUSIVE)
        ]
        if self.by_cores:
            asked.insert(0, "the NodeSLO's cpuPolicy")
        if asked:
            self.say(
                "CoreSchedulingOff",
                f"core scheduling, asked for by {', '.join(asked[:3])}"
                f"{f' and {len(asked) - 3} more' if len(asked) > 3 else ''}, is not done:"
                " policies.core_scheduling is off",
            )


POLICY = declaration.Policy(
    stem=STEM,
    summary="CPU scheduling of each class: group identity, cpu.idle",
    protects="it lets latency-sensitive work run before best-effort work",
    decide=decide,
    settings=Settings(),
    timeless=True,
)
