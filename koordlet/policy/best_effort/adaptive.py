"""adaptive: best-effort work runs on idle CPU only; conditions name work that still waits.

Covers: when it is in charge, the files that make best-effort work yield, the configured bound, what
latency-sensitive work waits for all the same.
Does not cover: reading the waiting (``host.counters.strain``), counting cycles
(``host.counters.performance``), the peer's formula (``cpu_suppress``).

Rules:
1. The policy is in charge where no NodeSLO and no ``slo-controller-config`` exists and the file
   does not choose ``cpu_suppress``. Elsewhere it wants nothing, so koordlet restores what it wrote.
2. Best-effort work yields through files that are written once: ``cpu.idle`` of cgroups that
   koordlet made or that are declared to it (``CPUWeight=idle`` where systemd owns the cgroup and
   supports it), else the lowest weight. The kubelet already gives its BestEffort tier the lowest
   weight.
3. The policy takes no CPU away beyond that. Measured at every load, a quota or a smaller cpuset
   cost best-effort work up to two thirds of the idle CPU, and the service waited longer than with
   ``cpu.idle`` alone (docs/colocation.md).
4. A cgroup yields to its siblings. A condition names best-effort work that does not yield to a
   latency-sensitive workload, because it is in another branch of the cgroup tree.
5. ``limits.maxPercent`` sets a CPU quota for all best-effort work.
6. Waiting that lasts ``lasting`` seconds becomes a condition with a remedy; it changes nothing.
7. A neighbour that takes the cache or the memory's bandwidth makes nobody wait for a CPU: threads
   run, and get less done. Cycles per instruction (CPI) say so, one window of some seconds a minute.
   Usual is the lower quartile of half an hour, of each container by itself: what it needs while it
   is left alone. While less than half of that is known, nothing is said. Of many containers the
   excess over the usual is the mean, weighted by cycles. A window that is old says nothing. Which
   pods are slowed for long, and by whom, is told as well (``interference``).

* Formula: none: it yields always; told is waiting beyond its own, and cycles per instruction beyond
  the usual, above their tolerance
* Writes: `cpu.idle` (`CPUWeight=idle` of a unit) and the least `cpu.weight`; `cpu.max`, on v1
  `cpu.cfs_quota_us`, where `limits.maxPercent` is set
* See: `koordlet top`, *CPU use over time* on the console, `bestEffort` in `/api/v1/node`
* More: best-effort.md
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from koordlet.history import series
from koordlet.model import best_effort, cgroup, decision, meter, remember, snapshot
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.best_effort import groups, interference, own_waiting, usage
from koordlet.policy.cpu import shared_pools
from koordlet.policy.framework import declaration, proposals
from koordlet.policy.resctrl import pressure

STEM = "adaptive"

#: 1 ms of each 100 ms: the least that the kernel takes.
_LEAST_QUOTA_MILLI = 10
_YIELDS = "best-effort work runs on idle CPU only"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The operator's settings."""

    #: Another policy of the file limits best-effort work.
    stand_back: bool = False
    #: Seconds of waiting for each second of CPU, beyond its own, that are tolerated.
    tolerance: float = 0.15
    #: Cycles per instruction beyond the usual that are tolerated; 0: they are not looked at.
    work_tolerance: float = 0.25
    #: Seconds that waiting lasts until it is told.
    lasting: float = 30.0
    max_percent: int | None = None


#: Seconds of which the usual is made, and which part of the windows are better.
_HISTORY = 1800.0
_USUAL = 0.25
#: A window is felt for so long: two intervals and the window itself.
_OLD = 150.0
#: Two times of a clock that are closer than this are one.
_SAME = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The newest measurement window, in monotonic seconds."""

    #: When it ended, and the excess that it told of; ``None``: nothing is known.
    window_at: float | None = None
    excess: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """When waiting beyond the tolerance began, and the state of cycle measurement."""

    waits_since: float | None = None
    work: Work = Work()
    #: One of each of the last measurement windows.
    samples: interference.Samples = ()


def in_charge(now: snapshot.Snapshot, settings: Settings) -> str:
    """The reason that this policy is not in charge; empty where it is."""
    if now.slo is not None:
        return f"{now.slo.source or 'a cluster object'} sets the limit"
    return "policies.cpu_suppress is enabled" if settings.stand_back else ""


def decide(
    now: snapshot.Snapshot, past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Decide the files that make best-effort work yield, and report work that still waits."""
    why = in_charge(now, settings)
    places = groups.places(now)
    if why or not places:
        why = f"not in charge: {why}" if why else "no best-effort workloads"
        return decision.Decision(next_state=State(), explanation={"limit": why})
    use = usage.measure(now, past)
    counted = groups.timed(places, now)
    proposal = proposals.Proposal(STEM, now, reason="Adaptive")
    proposal.actions += groups.yielding(now, counted, STEM, _YIELDS)
    yielding = len(proposal.actions)
    milli = _bound(now, use, settings)
    if milli is not None:
        parts = groups.split(milli, groups.used(counted, past), _LEAST_QUOTA_MILLI)
        why = f"adaptive: {milli / 1000:.2f} CPUs by limits.maxPercent"
        groups.limit_time(proposal, counted, parts, why)
    bounded = len(proposal.actions) > yielding
    waiting = beyond(now, past)
    work = look_at_work(now, past, state.work)
    samples = state.samples
    if work.window_at is not None and work != state.work:
        slowdown = slowdowns(now, past, settings.work_tolerance)
        minute = interference.Sample(now.at, slowdown, _used(now, past))
        samples = interference.taken(samples, minute)
    since = _since(now.at, waiting, settings, state)
    for problem in groups.untimed(places, now):
        proposal.say("BestEffortLimitNotApplied", problem)
    proposal.conditions += (*_apart(places, now.pods), *groups.enclosed(places, now.pods))
    if waiting is not None and since is not None and use.be:
        _tell_waiting(proposal, now.at - since, settings)
    proposal.conditions += work_conditions(work, settings.work_tolerance, use.be)
    if work.window_at is not None and settings.work_tolerance > 0:
        proposal.conditions += interference.conditions(samples)
    reason = f"at most {settings.max_percent} % (limits.maxPercent)" if bounded else _YIELDS
    actuator = "weights+cfsQuota" if bounded else "weights"
    proposal.why |= {
        "limit": "none" if milli is None else f"{milli / 1000:.2f} CPUs",
        "reason": reason,
        "actuator": actuator,
    }
    return proposal.decided(
        State(waits_since=since, work=work, samples=samples),
        signals=(
            _signal(waiting, settings),
            *work_signal(work, settings.work_tolerance),
            *pressure.of(now),
        ),
        limit=best_effort.Limit(
            policy=STEM,
            actuator=actuator,
            milli=milli,
            ls_milli=use.ls,
            system_milli=use.system,
            be_milli=use.be,
            reason=reason,
        ),
    )


# The operator's bound ----------------------------------------------------------------------------


def _bound(now: snapshot.Snapshot, use: usage.Use, settings: Settings) -> int | None:
    """``limits.maxPercent`` of the node's CPU; ``None`` where it does not limit the BE pool."""
    if settings.max_percent is None:
        return None
    milli = max(_LEAST_QUOTA_MILLI, use.capacity * settings.max_percent // 100)
    return milli if milli < 1000 * len(shared_pools.divide(now).be) else None


# Who waits ---------------------------------------------------------------------------------------


def beyond(now: snapshot.Snapshot, past: series.History) -> float | None:
    """Seconds that latency-sensitive work waits per second of CPU, beyond its own queueing.

    Its own are the queue that it would have on its CPUs alone, and what its own limits take from
    it. ``None`` where nothing tells.
    """
    if now.strain is None or now.strain.waiting is None:
        return None
    confined = own_waiting.confined(now.pods, now.groups, now.topology.online)
    cores = past.groups.lasts(own_waiting.names(confined), meter.CPU)
    used = [each or 0.0 for each in cores]
    own = own_waiting.own(confined, used)
    if math.isinf(own):
        # Whoever fills all CPUs that it may use waits, whatever others do.
        return 0.0
    throttled = past.groups.lasts(groups.sensitive_groups(now.pods), meter.THROTTLED_TIME)
    limited = sum(filter(None, throttled)) / max(math.fsum(used), 0.01)
    return max(0.0, now.strain.waiting - own - limited)


def _since(at: float, waiting: float | None, settings: Settings, state: State) -> float | None:
    """When waiting began; an unknown value neither begins nor ends it."""
    if waiting is None:
        return state.waits_since
    if waiting <= settings.tolerance:
        return None
    return at if state.waits_since is None else state.waits_since


def _signal(waiting: float | None, settings: Settings) -> decision.Signal:
    return decision.Signal(
        name="cpu.waiting",
        observed="unknown" if waiting is None else f"{waiting:.0%}",
        threshold=f"{settings.tolerance:.0%} beyond its own queueing",
        met=None if waiting is None else waiting > settings.tolerance,
        why="CPU waiting has not been measured yet" if waiting is None else "",
    )


def _tell_waiting(proposal: proposals.Proposal, lasted: float, settings: Settings) -> None:
    """Rule 6. Amounts are the signal's: words that move would be a write of the Node each time."""
    if lasted >= settings.lasting:
        proposal.say(
            "LatencySensitiveWaits",
            f"latency-sensitive work has waited more than {settings.tolerance:.0%} of its CPU time"
            f" beyond its own queueing for {settings.lasting:.0f} s while best-effort work ran at"
            " the lowest weight: limit it with policies.adaptive.limits.maxPercent or"
            " policies.cpu_suppress, or give the service exclusive CPUs (qos LSE or LSR)",
        )


# Where yielding has no effect --------------------------------------------------------------------


@remember.last
def _apart(
    places: tuple[groups.Place, ...], pods: tuple[pods.Pod, ...]
) -> list[decision.Condition]:
    """Rule 4."""
    return [
        decision.Condition(
            type="BestEffortDoesNotYield",
            reason="AnotherBranch",
            subject=place.group,
            message=(
                f"{place.who} in cgroup {place.group} yields only to sibling cgroups:"
                f" latency-sensitive work in {other} competes with cgroup {above}, whose"
                f" weight is unchanged. Declare {above} as the best-effort workload, or give it the"
                " lowest weight (CPUWeight=idle in its unit)"
            ),
        )
        for place, above, other in _elsewhere(places, pods)
    ]


def _elsewhere(
    places: tuple[groups.Place, ...], pods: tuple[pods.Pod, ...]
) -> list[tuple[groups.Place, str, str]]:
    """Places that do not meet a latency-sensitive group as siblings: the branch that does."""
    apart = []
    for place in places:
        for workload in groups.sensitive(pods):
            other = workload.group or ""
            branch = _branch(place.group, other) if workload.active else place.group
            # The kubelet gives its tiers their weights beside each other.
            if branch != place.group and not place.tier:
                apart.append((place, branch, other))
                break
    return apart


def _branch(group: str, other: str) -> str:
    """The group at or above ``group`` that competes with ``other`` or with what is above that."""
    above = {other, *cgroup.ancestors(other)}
    lineage = [*reversed(list(cgroup.ancestors(group))), group]
    return next((path for path in lineage if path and path not in above), group)


# Who runs slower -------------------------------------------------------------------------------


def look_at_work(now: snapshot.Snapshot, past: series.History, state: Work) -> Work:
    """The state with the newest window; sums are made once for each, because they cost."""
    age = past.work.age(meter.CPI, now.at)
    if age is None or age > _OLD:
        return Work()
    ended = now.at - age
    if state.window_at is not None and ended - state.window_at <= _SAME:
        return state
    return Work(window_at=ended, excess=excess(now, past))


def excess(now: snapshot.Snapshot, past: series.History) -> float:
    """Excess cycles per instruction over the usual, as a fraction."""
    return _mean((cycles, max(0.0, ratio - 1)) for _, cycles, ratio in _of_each(now, past))


def slowdowns(now: snapshot.Snapshot, past: series.History, tolerance: float) -> dict[str, float]:
    """How far each pod is beyond the tolerance, as a fraction; negative where it is within."""
    by_pod: dict[str, list[tuple[float, float]]] = {}
    for pod, cycles, ratio in _of_each(now, past):
        by_pod.setdefault(pod, []).append((cycles, ratio))
    return {pod: _mean(ratios) / (1 + tolerance) - 1 for pod, ratios in by_pod.items()}


def _used(now: snapshot.Snapshot, past: series.History) -> dict[str, float]:
    """The CPUs that each pod used in the last minute, where that is known."""
    minutes = (
        (pod.key, past.groups.window(pod.group, meter.CPU, now.at, 60.0))
        for pod in now.pods
        if pod.active and pod.group is not None
    )
    return {pod: minute.average for pod, minute in minutes if minute is not None}


def _mean(values: Iterable[tuple[float, float]]) -> float:
    """The mean of values, weighted by cycles."""
    several = list(values)
    weight = sum(cycles for cycles, _ in several)
    return sum(cycles * value for cycles, value in several) / weight if weight > 0 else 0.0


def _of_each(now: snapshot.Snapshot, past: series.History) -> Iterator[tuple[str, float, float]]:
    """Each latency-sensitive container of which the usual is known: pod, cycles, newest to it."""
    for pod, group in _watched(now.pods):
        cycles, newest = (past.work.last(group, what) for what in (meter.CYCLES, meter.CPI))
        window = past.work.window(group, meter.CPI, now.at, _HISTORY)
        if cycles is None or newest is None or window is None:
            continue
        usual = window.quantile(_USUAL)
        if usual > 0:
            yield pod, cycles, newest / usual


def _watched(pods: Iterable[pods.Pod]) -> Iterator[tuple[str, str]]:
    """As ``host.counters.performance`` counts them: containers, and workloads that have none."""
    for pod in pods:
        if not pod.active or groups.is_best_effort(pod):
            continue
        boxes = [box.group for box in pod.containers if box.group is not None]
        boxes = boxes or ([pod.group] if pod.group and not pod.containers else [])
        yield from ((pod.key, group) for group in boxes)


def work_signal(state: Work, tolerance: float) -> tuple[decision.Signal, ...]:
    """The signal of the newest window; none where the machine does not count cycles."""
    if state.window_at is None:
        return ()
    return (
        decision.Signal(
            name="cpu.cycles",
            observed=f"{state.excess:.0%} more than usual",
            threshold=f"{tolerance:.0%} more",
            met=_slowed(state, tolerance),
        ),
    )


def work_conditions(
    state: Work, tolerance: float, be_milli: int | None
) -> tuple[decision.Condition, ...]:
    """The condition that latency-sensitive work runs slower than usual beside best-effort work."""
    if not be_milli or not _slowed(state, tolerance):
        return ()
    return (
        decision.Condition(
            type="LatencySensitiveSlowed",
            status=True,
            reason="CyclesPerInstruction",
            message=(
                f"latency-sensitive work needs over {tolerance:.0%} more cycles per instruction"
                " than usual while best-effort work runs: a neighbour takes cache or memory"
                " bandwidth. Give best-effort work fewer cache ways and less bandwidth"
                " (policies.resctrl), or limit it with policies.adaptive.limits.maxPercent"
            ),
        ),
    )


def _slowed(state: Work, tolerance: float) -> bool:
    return state.window_at is not None and 0 < tolerance < state.excess


POLICY = declaration.Policy(
    stem=STEM,
    summary="best-effort work on idle CPU only; names work that still waits",
    protects="it makes best-effort work yield",
    decide=decide,
    settings=Settings(),
    state=State(),
)
