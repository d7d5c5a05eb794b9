"""cpu_burst: CPU time beyond the limit for latency-sensitive work, while the node has it to spare.

Covers: the burst that a container may save up (``cpuBurstOnly``), its limit raised while it is
throttled (``cfsQuotaBurstOnly``), both (``auto``), for containers and for the pod around them.
Does not cover: which strategy a pod
has (NodeSLO, configuration, annotation: ``model.strategies``).

Rules:
1. Only pods whose class is not LSE, LSR or BE; only containers with a CPU limit.
2. A burst is cut to the limit: the kernel refuses more on both cgroup versions, and Koordinator's
   agent, which does not cut it, never bursts where its default of 1000 % applies. Where another
   policy lowers that limit, the burst is cut to what is left of it (``apply.bursts``).
3. The raised limit moves once a second by a fifth, between the container's own limit and
   ``cfsQuotaBurstPercent`` of it: up while it was throttled and the shared pool is idle, down while
   the pool is overloaded or its budget is used up. Where nothing is raised, nothing is written.
4. A budget of tokens bounds how long a container may exceed its limit. A token is one percent of
   the limit for one second. Above its limit a container spends them, below 60 % of it saves them;
   there are never more than one period's worth of them, nor less than minus that. (Koordinator's
   agent begins with a random part of up to half of them, so that containers do not all burst at
   once. Here that part follows from the container's name.)
5. Without a measurement nothing is raised; a pod that is known from a stale source
   keeps what it has.

* Formula: burst = limit * cpuBurstPercent, at most the limit; a raised quota moves by a fifth each
  second between the limit and cfsQuotaBurstPercent of it
* Writes: `cpu.max.burst`, `cpu.max`; on v1 `cpu.cfs_burst_us`, `cpu.cfs_quota_us`
* See: `koordlet explain pod NS/NAME`
* More: qos.md
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import field

from koordlet.history import series
from koordlet.model import (
    decision,
    limits,
    meter,
    qos,
    remember,
    resources,
    snapshot,
    strategies,
    strategy_field,
)
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.framework import declaration, proposals

STEM = "cpu_burst"
#: Where neither a NodeSLO nor the configuration says otherwise.
DEFAULTS = strategy_field.defaults(strategies.CpuBurst)
_SAVING = ("cpuBurstOnly", "auto")
_RAISING = ("cfsQuotaBurstOnly", "auto")
#: Use of the shared pool is averaged over this long; limits move this often.
_WINDOW_SECONDS, _STEP_SECONDS = 5.0, 0.9
_UP, _DOWN = 1.2, 0.8
#: Part of the threshold from which on the pool is no more called idle.
_COOLING = 0.9
_OTHERS = (qos.Qos.LSE, qos.Qos.LSR, qos.Qos.BE)


class Pool(enum.Enum):
    """State of the shared CPU pool."""

    IDLE = "idle"
    COOLING = "cooling"
    OVERLOADED = "overloaded"
    UNKNOWN = "unknown"


class Move(enum.Enum):
    """Direction in which a raised limit moves."""

    UP = "up"
    REMAIN = "remain"
    DOWN = "down"
    RESET = "reset"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """CPU time beyond their limit for containers that are neither LSE, LSR nor BE."""

    #: A NodeSLO replaces it.
    strategy: strategies.CpuBurst = strategy_field.keys(strategies.CpuBurst, DEFAULTS)
    #: Upper bound of bursts and raised limits, in percent of the CPU limit; null sets no bound.
    max_percent: int | None = strategy_field.bound(100)


#: Percent of the limit below which tokens are saved.
_FRUGAL = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Burst rule: seconds at the highest burst, and its height in percent of the limit."""

    period: int
    percent: int

    @property
    def capacity(self) -> float:
        """The most tokens; negative where no burst is allowed at all."""
        return float(self.period * (self.percent - 100))


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Tokens of one container."""

    tokens: float
    at: float
    capacity: float


def spend(rule: Rule, kept: Budget | None, name: str, at: float, percent: float) -> Budget:
    """The budget after using ``percent`` of the limit since it was looked at last.

    A budget that nobody looked at for two periods, or of another rule, starts anew.
    """
    most = max(rule.capacity, 0.0)
    expired = kept is not None and at - kept.at > 2 * rule.period
    if kept is None or expired or kept.capacity != rule.capacity:
        return Budget(tokens=most * _first_tokens(name), at=at, capacity=rule.capacity)
    seconds = max(at - kept.at, 0.0)
    tokens = kept.tokens
    if percent >= 100:
        tokens -= (percent - 100) * seconds
    elif percent < _FRUGAL:
        tokens += (100 - percent) * seconds
    return Budget(tokens=min(max(tokens, -most), most), at=at, capacity=rule.capacity)


def _first_tokens(name: str) -> float:
    """A fraction from 0 to 0.5 that depends on the name alone."""
    digest = hashlib.blake2b(name.encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") / 2**33


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """Limit in force and budget of one container."""

    #: Microseconds of each 100 ms.
    quota: int
    budget: Budget | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Limits by cgroup path, and when they moved last. A new process starts from the limits."""

    at: float | None = None
    raised: Mapping[str, Raised] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    """One group with a CPU limit of its own: a container, or a workload without any."""

    group: str
    name: str
    base: int


def decide(
    now: snapshot.Snapshot, past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Bursts and raised limits of every pod that may have them."""
    deciding = _Deciding(now, past, settings, state)
    for pod, asked in _asking(now.pods, deciding.strategy):
        deciding.place(pod, asked)
    return deciding.decided(deciding.next_state)


def pool_state(now: snapshot.Snapshot, past: series.History, percent: int) -> Pool:
    """Use of the shared pool against a threshold in percent.

    What the system uses stays in, but for CPUs that no workload can have; a pool without any CPU
    counts as fully used.
    """
    seen = past.node.window("", meter.CPU, now.at, _WINDOW_SECONDS)
    if seen is None:
        return Pool.UNKNOWN
    total = len(now.allowed) * 1000
    used = seen.average - past.cpus_average(now.outside, now.at, _WINDOW_SECONDS)
    for pod in now.pods:
        if pod.raw_qos in (qos.Qos.LSE, qos.Qos.LSR):
            total -= pod.requests.get(resources.CPU, 0)
        if pod.raw_qos in _OTHERS and pod.group is not None:
            used -= past.groups.last(pod.group, meter.CPU) or 0.0
    ratio = max(used, 0.0) * 1000 / total if total > 0 else 1.0
    threshold = percent / 100
    if ratio >= threshold:
        return Pool.OVERLOADED
    return Pool.COOLING if ratio >= threshold * _COOLING else Pool.IDLE


def move(wish: Move, pool: Pool) -> Move:
    """The move that a wish becomes in this state of the pool."""
    if pool is Pool.OVERLOADED and wish in (Move.UP, Move.REMAIN):
        return Move.DOWN
    if pool in (Pool.COOLING, Pool.UNKNOWN) and wish is Move.UP:
        return Move.REMAIN
    return wish


def target(wish: Move, current: int, base: int, percent: int) -> int:
    """The next limit in microseconds: never below the container's own, never above the ceiling."""
    ceiling = base * percent // 100 if percent > 100 else base
    after = {
        Move.UP: int(current * _UP),
        Move.DOWN: int(current * _DOWN),
        Move.RESET: base,
        Move.REMAIN: current,
    }[wish]
    return max(base, min(after, ceiling))


class _Deciding(proposals.Proposal):
    """Builds one decision."""

    def __init__(
        self, now: snapshot.Snapshot, past: series.History, settings: Settings, state: State
    ) -> None:
        super().__init__(STEM, now)
        self.past = past
        self.most = settings.max_percent
        self.before = state
        slo = now.cluster_slo
        self.strategy = settings.strategy if slo is None else slo.cpu_burst
        self.elapsed = 0.0 if state.at is None else now.at - state.at
        self.steps = state.at is None or self.elapsed >= _STEP_SECONDS
        self.raised: dict[str, Raised] = {}
        self._pools: dict[int, Pool] = {}

    @property
    def next_state(self) -> State:
        """The state to keep for the next tick."""
        return State(at=self.now.at if self.steps else self.before.at, raised=self.raised)

    def place(self, pod: pods.Pod, asked: strategies.CpuBurst) -> None:
        """Decide the files of one pod."""
        policy = asked.policy
        units = tuple(_units(pod, self.now))
        more = saved = 0
        for unit in units:
            quota = self._quota(pod, unit, asked) if policy in _RAISING else unit.base
            if quota > unit.base:
                more += quota - unit.base
                self._raise(
                    pod, unit.group, quota, f"{unit.name}: CPU limit raised while throttled"
                )
            if policy in _SAVING:
                percent = self._cut(asked.cpu_burst_percent or 0)
                burst = min(unit.base * percent // 100, unit.base)
                saved += burst
                self._save(unit.group, burst, f"{unit.name}: may accumulate CPU burst")
        self._around(pod, units, more, saved)

    def _around(self, pod: pods.Pod, units: tuple[_Unit, ...], more: int, saved: int) -> None:
        """The pod's own group, where its containers are limited and are not the group itself."""
        milli = pod.limits.get(resources.CPU)
        group = pod.group
        if milli is None or group is None or group not in self.now.groups:
            return
        if not units or any(unit.group == group for unit in units):
            return
        whole = milli * limits.PERIOD_USEC // 1000
        if more:
            self._raise(
                pod, group, whole + more, f"{pod.key}: room for its containers' raised limits"
            )
        if saved:
            self._save(group, min(saved, whole), f"{pod.key}: room for its containers' bursts")

    def _cut(self, percent: int) -> int:
        return percent if self.most is None else min(percent, self.most)

    def _quota(self, pod: pods.Pod, unit: _Unit, asked: strategies.CpuBurst) -> int:
        """The limit in force from now on; remembers it."""
        kept = self.before.raised.get(unit.group) or Raised(quota=unit.base)
        percent = self._cut(asked.cfs_quota_burst_percent or 100)
        if not self.steps:
            self.raised[unit.group] = kept
            return max(kept.quota, unit.base)
        budget, allowed = self._budget(unit, asked, kept.budget)
        throttled = self.past.groups.last(unit.group, meter.THROTTLED)
        if pod.stale or throttled is None:
            wish = Move.REMAIN
        else:
            wish = Move.UP if throttled > 0 else Move.REMAIN
        if not allowed:
            wish = Move.DOWN
        share = asked.share_pool_threshold_percent or 0
        if share not in self._pools:
            self._pools[share] = pool_state(self.now, self.past, share)
        pool = self._pools[share]
        done = move(wish, pool)
        quota = target(done, kept.quota, unit.base, percent)
        self.raised[unit.group] = Raised(quota=quota, budget=budget)
        self.why[unit.name] = (
            f"limit {quota} µs of {unit.base} µs: {done.value}"
            f" (wanted {wish.value}, pool {pool.value})"
        )
        return quota

    def _budget(
        self, unit: _Unit, asked: strategies.CpuBurst, kept: Budget | None
    ) -> tuple[Budget | None, bool]:
        period = asked.cfs_quota_burst_period_seconds
        if period is None or period < 0:
            return None, True
        used = self.past.groups.last(unit.group, meter.CPU)
        # Milliseconds of each period over the same of the limit; what is not known counts as full.
        percent = 100.0 if used is None else used * limits.PERIOD_USEC * 100 / unit.base
        rule = Rule(period=period, percent=asked.cfs_quota_burst_percent or 100)
        budget = spend(rule, kept, unit.group, self.now.at, percent)
        return budget, budget.tokens > 0

    def _raise(self, pod: pods.Pod, group: str, usec: int, reason: str) -> None:
        period = limits.cpu_period(self.now.groups.get(group))
        scaled = usec * period // limits.PERIOD_USEC
        settings = limits.cpu_time(self.now.layout, group, scaled, period_usec=period)
        self.write_settings(settings, group, f"{pod.qos.value} {reason}")

    def _save(self, group: str, usec: int, reason: str) -> None:
        if usec <= 0:
            return
        period = limits.cpu_period(self.now.groups.get(group))
        settings = limits.cpu_burst(self.now.layout, group, usec * period // limits.PERIOD_USEC)
        self.write_settings(settings, group, reason)


@remember.last
def _asking(
    pods: tuple[pods.Pod, ...], strategy: strategies.CpuBurst
) -> list[tuple[pods.Pod, strategies.CpuBurst]]:
    """Pods whose limit may move, with their strategy."""
    asking = [
        (pod, strategies.overlay(strategy, pod.wishes.cpu_burst)) for pod in pods if _may(pod)
    ]
    return [(pod, asked) for pod, asked in asking if asked.policy in (*_SAVING, *_RAISING)]


def _may(pod: pods.Pod) -> bool:
    """Whether a pod may burst: by its label, or without a cluster by its class."""
    label = pod.raw_qos or (pod.qos if pod.kube_qos is None else None)
    return label not in _OTHERS and pod.phase in (pods.Phase.PENDING, pods.Phase.RUNNING)


def _units(pod: pods.Pod, now: snapshot.Snapshot) -> Iterator[_Unit]:
    """Groups with a limit, in the order of the pod."""
    inside = [(each.group, f"{pod.key}/{each.name}", each.limits) for each in pod.containers]
    for group, name, most in inside or [(pod.group, pod.key, pod.limits)]:
        milli = most.get(resources.CPU, 0)
        if group is not None and group in now.groups and milli > 0:
            yield _Unit(group=group, name=name, base=milli * limits.PERIOD_USEC // 1000)


POLICY = declaration.Policy(
    stem=STEM,
    summary="CPU time beyond the limit of LS workloads, while the node has spare CPU",
    decide=decide,
    settings=Settings(),
    state=State(),
)
