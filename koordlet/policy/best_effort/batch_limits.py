"""batch_limits: shares, CPU time and memory of pods that ask for batch or mid resources.

Covers: the limits that the kubelet does not set, since it knows such resources as mere counts; of
pods, containers, and containers that are about to start.
Does not cover: how much batch there is (``batch_resources``), how much of the node best-effort work
may use together (``cpu_suppress``).

Rules:
1. Only pods with batch or mid amounts. Shares are 1024 for each CPU asked for; quota and memory
   limit are those asked for, and none where one container has none.
2. Containers that stay count: regular ones and sidecars. (The peer leaves sidecars out, so that
   they throttle the others.)
3. Where best-effort work together is held by a quota, its pods have none of their own: v1 lets no
   group have more than those above, and throttles twice.
4. A node's normalisation ratio scales the quota, as for other pods.
5. A memory limit is never below what is in use and a margin, where the kernel would kill at once:
   until then it is that much, in steps, and a condition says so.

* Formula: shares = 1024 * batch-cpu; quota = batch-cpu limit; memory = batch-memory limit
* Writes: `cpu.weight`, `cpu.max`, `memory.max`; on v1 `cpu.shares`, `cpu.cfs_quota_us`,
  `memory.limit_in_bytes`
* See: `koordlet explain pod NS/NAME`
* More: best-effort.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from koordlet.history import series
from koordlet.model import adjustment, cgroup, decision, limits, meter, resources, snapshot
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.cpu import cpu_normalization
from koordlet.policy.framework import declaration, proposals

STEM = "batch_limits"
State = decision.Stateless

_CPU = (resources.BATCH_CPU, resources.MID_CPU)
_MEMORY = (resources.BATCH_MEMORY, resources.MID_MEMORY)
#: The least quota is 1 ms of each 100 ms.
_LEAST_MILLI = 10
#: A twentieth above what is in use, in steps, so that the limit does not move all the time.
_MARGIN = 20
_STEP = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """CPU shares, CPU quota and memory limits of pods that request batch or mid resources."""

    #: False where best-effort work together is held by a quota (rule 3).
    quota: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Limits requested for one group. ``None`` is no limit."""

    shares: int
    cpu_milli: int | None
    memory_bytes: int | None


def decide(
    now: snapshot.Snapshot, past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Decide the limit files of every pod that requests batch or mid resources."""
    deciding = _Deciding(now, past, settings)
    for pod in now.pods:
        if _concerned(pod):
            deciding.place(pod)
    # A limit that waits follows what is in use.
    return deciding.decided(state, lasting=not deciding.conditions)


def admit(
    now: snapshot.Snapshot, settings: Settings, _state: State, pod: pods.Pod, container: str
) -> adjustment.Adjustment:
    """Adjust a container before it starts."""
    box = next((box for box in pod.containers if box.name == container), None)
    if box is None or not _concerned(pod):
        return adjustment.Adjustment()
    asked = _of_container(box, _scale(now), quota=_quota(now, settings))
    return adjustment.Adjustment(
        cpu_shares=asked.shares,
        cpu_milli=-1 if asked.cpu_milli is None else asked.cpu_milli,
        memory_bytes=-1 if asked.memory_bytes is None else asked.memory_bytes,
        reasons={STEM: _words(asked)},
    )


def of_pod(pod: pods.Pod, by: float, *, quota: bool) -> Asked:
    """The limits of the pod's own group: the sums over its containers."""
    parts = [_of_container(box, by, quota=quota) for box in _staying(pod)]
    cpu = [part.cpu_milli for part in parts]
    memory = [part.memory_bytes for part in parts]
    milli = sum(_first(box.requests, _CPU) or 0 for box in _staying(pod))
    return Asked(
        shares=_shares(milli),
        cpu_milli=None if None in cpu else sum(each or 0 for each in cpu),
        memory_bytes=None if None in memory else sum(each or 0 for each in memory),
    )


def _of_container(box: pods.Container, by: float, *, quota: bool) -> Asked:
    milli = _first(box.limits, _CPU) if quota else None
    return Asked(
        shares=_shares(_first(box.requests, _CPU) or 0),
        cpu_milli=max(_LEAST_MILLI, cpu_normalization.scaled(milli, by)) if milli else None,
        memory_bytes=_first(box.limits, _MEMORY) or None,
    )


def _shares(milli: int) -> int:
    return min(max(milli * 1024 // 1000, 2), 262_144)


def _first(amounts: Mapping[str, int], names: tuple[str, ...]) -> int | None:
    return next((amounts[name] for name in names if name in amounts), None)


def _concerned(pod: pods.Pod) -> bool:
    return pod.kube_qos is not None and any(
        name in amounts
        for box in pod.containers
        for amounts in (box.requests, box.limits)
        for name in (*_CPU, *_MEMORY)
    )


def _staying(pod: pods.Pod) -> Iterator[pods.Container]:
    kinds = (pods.Kind.REGULAR, pods.Kind.SIDECAR)
    return (box for box in pod.containers if box.kind in kinds)


def _quota(now: snapshot.Snapshot, settings: Settings) -> bool:
    """Rule 3."""
    if now.slo is None:
        return settings.quota
    strategy = now.slo.threshold
    return not (strategy.enable and strategy.cpu_suppress_policy == "cfsQuota")


def _scale(now: snapshot.Snapshot) -> float:
    try:
        return cpu_normalization.ratio(now)
    except ValueError:
        # It is said by the policy that it belongs to.
        return 1.0


def _words(asked: Asked) -> str:
    cpu = "no quota" if asked.cpu_milli is None else f"{asked.cpu_milli} m"
    memory = "no limit" if asked.memory_bytes is None else f"{asked.memory_bytes} bytes"
    return f"{asked.shares} shares, CPU time: {cpu}, memory: {memory}"


class _Deciding(proposals.Proposal):
    """Builds one decision."""

    def __init__(self, now: snapshot.Snapshot, past: series.History, settings: Settings) -> None:
        super().__init__(STEM, now, reason="InUse")
        self.past = past
        self.scale = _scale(now)
        self.quota = _quota(now, settings)

    def place(self, pod: pods.Pod) -> None:
        """Decide the files of the pod's group and of its containers."""
        whole = of_pod(pod, self.scale, quota=self.quota)
        self.why[pod.key] = _words(whole)
        self._group(pod, pod.group, whole, pod.key)
        for box in pod.containers:
            asked = _of_container(box, self.scale, quota=self.quota)
            for group in cgroup.with_scopes([box.group], pod.group):
                self._group(pod, group, asked, f"{pod.key} {box.name}")

    def _group(self, pod: pods.Pod, group: str | None, asked: Asked, who: str) -> None:
        if group is None or group not in self.now.groups:
            return
        layout, seen = self.now.layout, self.now.groups[group]
        settings = [
            *limits.cpu_shares(layout, group, asked.shares),
            *limits.cpu_quota(layout, group, asked.cpu_milli, period_usec=limits.cpu_period(seen)),
        ]
        memory = asked.memory_bytes
        used = int(self.past.groups.last(group, meter.MEMORY) or 0)
        least = used + used // _MARGIN
        if memory is not None and memory < least:
            waits = f"its memory limit of {memory} waits until use falls"
            self.say("MemoryLimitHeld", f"{who} uses {used} bytes: {waits}", pod.key)
            memory = -(-least // _STEP) * _STEP
        settings += limits.memory_max(layout, group, memory)
        self.write_settings(settings, group, f"{who}: {_words(asked)}")


POLICY = declaration.Policy(
    stem=STEM,
    summary="CPU shares, CPU quota and memory limit of batch and mid pods",
    protects="it limits best-effort work",
    decide=decide,
    settings=Settings(),
    admit=admit,
    timeless=True,
)
