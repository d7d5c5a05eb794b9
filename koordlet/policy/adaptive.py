"""adaptive: best-effort work gets every idle cycle, until latency-sensitive work feels it.

Covers: when it is in charge, from what was felt to pain, from a limit to files.
Does not cover: the control loop and its stability (``adaptive_controller``), cycles that neighbours
cost (``adaptive_work``), reading (``host.strain``), the peer's formula (``cpu_suppress``).

Rules:
1. It is in charge where no NodeSLO and no ``slo-controller-config`` exists and the file does not
   choose ``cpu_suppress``. Everywhere else it names nothing, so what it wrote is put back.
2. Three actuators, the gentlest first. Weights, always: best-effort work runs when nobody else
   wants to (``cpu.idle`` for groups that koordlet made, the least weight for declared ones; the
   kubelet's tier has it already). Below the whole machine, fewer CPUs, where those that it leaves
   are twice what latency-sensitive work uses at its peak; else a quota. A thread that wakes up
   displaces best-effort work at once, but it does not look for a CPU where there is some, and so a
   few CPUs that are left free fill up while the others are there for the asking. Below one CPU, a
   quota in any case.
3. CPUs are given up in one fixed order, whole cores first, so that growing and shrinking move as
   little as can be.
4. What is not known never raises the limit. Without a signal it is held for ``max_age``, then falls
   by a tenth of the machine each second to what the node's own counters leave of ``threshold``, or,
   where those are old too, to the floor.
5. ``limits.maxPercent`` is applied last.

Waiting that a workload's own CPU limit makes is not felt: the throttled time is taken off.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import field

from koordlet.history import series
from koordlet.model import (
    action,
    best_effort,
    cgroup,
    cpuset,
    decision,
    ledger,
    meter,
    pod,
    remember,
    snapshot,
    strain,
)
from koordlet.model.record import dataclass
from koordlet.policy import adaptive_controller as controller
from koordlet.policy import adaptive_work, be_cpus, be_groups, be_usage, resctrl_pressure

STEM = "adaptive"
#: Version of ``State``: a checkpoint of another one is discarded.
SCHEMA = 1

#: Sources of workloads whose groups koordlet made.
_OURS = ("demo",)
#: Of the machine, what all together may use when only the node's counters are known.
_THRESHOLD = 65
#: The limit falls by one part in so many of the machine each second when nothing is known.
_STEPS = 10
#: 1 ms of each 100 ms: the least that the kernel takes.
_LEAST_QUOTA_MILLI = 10
#: Why it was cut where nobody waits.
_CYCLES = "latency-sensitive work needs more cycles than it usually does"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the operator configured."""

    #: Another policy of the file limits best-effort work.
    stand_back: bool = False
    #: Seconds of waiting for each second of CPU, beyond its own, that are one pain.
    tolerance: float = 0.15
    #: Cycles per instruction beyond the usual that are one pain; 0: they are not felt.
    work_tolerance: float = 0.25
    #: What best-effort work always has, in thousandths of a core.
    floor_milli: int = 50
    max_age: float = 30.0
    max_percent: int | None = None
    law: controller.Law = field(default_factory=controller.Law)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The loop's memory, and when something was felt last."""

    loop: controller.State = field(default_factory=controller.State)
    felt_at: float | None = None
    #: CPUs that workloads may use at all.
    machine: int = 1
    #: CPUs that neither kind of work used at the last pass.
    others: float = 0.0
    reason: str = ""
    #: What is remembered of cycles per instruction.
    work: adaptive_work.State = field(default_factory=adaptive_work.State)


def revive(body: Mapping[str, object]) -> State:
    """The state from a checkpoint; ``ValueError`` when it is none."""
    said = body.get("loop")
    known = {one.name for one in dataclasses.fields(controller.State)}
    if not isinstance(said, dict) or not said.keys() <= known:
        raise ValueError("loop is not the memory of this controller")
    if not all(isinstance(one, int | float | None) for one in said.values()):
        raise ValueError("the loop remembers numbers only")
    return State(loop=controller.State(**said))


def keep(state: State) -> State:
    """What of the state is worth a checkpoint: what is allowed, no more exact than it matters.

    Not what a crowd leaves: that one may be over.
    """
    return State(loop=controller.State(limit=round(state.loop.allowed, 2)))


def in_charge(now: snapshot.Snapshot, settings: Settings) -> str:
    """Why this policy is not in charge; empty where it is."""
    if now.slo is not None:
        return f"{now.slo.source or 'an object of the cluster'} decides"
    return "policies.cpu_suppress is enabled" if settings.stand_back else ""


def pain(
    felt: strain.Strain, cpus: int, throttled: float, tolerance: float, others: float = 0.0
) -> tuple[float, float]:
    """The pain of the last moment, and of the mean since the last pass; zero where nothing tells.

    ``others`` are the CPUs that neither latency-sensitive nor best-effort work uses.
    """
    ls = felt.ls_cores or 0.0
    mean = beyond(felt.waiting, ls, cpus, throttled) * _blame(ls, felt.be_cores, others)
    # What a spike waits for itself is measured by the use of the spike, not by that before it.
    lately = max(ls, felt.ls_lately or 0.0)
    now = beyond(felt.waiting_lately, lately, cpus, throttled)
    be = felt.be_cores if felt.be_lately is None else felt.be_lately
    now *= _blame(felt.ls_lately or ls, be, others)
    return now / tolerance, mean / tolerance


def beyond(waiting: float | None, ls: float, cpus: int, throttled: float) -> float:
    """Waiting for each second of CPU that is not behind itself, whoever is to blame."""
    if waiting is None:
        return 0.0
    own = controller.own_waiting(ls, max(1, cpus)) + throttled / max(ls, 0.01)
    return max(0.0, waiting - own)


def _blame(ls: float, be: float | None, others: float) -> float:
    """Whoever waits, waits behind those that run: best-effort work by its part of the CPU."""
    return 1.0 if be is None or ls + be <= 0 else be / (ls + be + others)


def urgent(felt: strain.Strain, settings: Settings, state: State) -> bool:
    """Whether the limit would be cut, or given back, now: a pass does not wait for its tick."""
    loop, law = state.loop, settings.law
    if loop.at is None or settings.stand_back:
        return False
    if loop.crowded and _emptied(felt, state.machine, loop, law):
        return True
    jumped = _jumped(felt, state.machine, loop, law)
    if felt.at < loop.crowd_over + law.echo:
        return jumped
    now, _ = pain(felt, state.machine, 0.0, settings.tolerance, state.others)
    excused = law.excuse * loop.excused if felt.at < loop.deaf_until else 0.0
    ready = loop.limit > settings.floor_milli / 1000 and felt.at - loop.cut_at >= law.settle
    return ready and (jumped or now > max(law.sudden, excused))


def _emptied(felt: strain.Strain, cpus: int, loop: controller.State, law: controller.Law) -> bool:
    """A crowd is over."""
    lately = felt.ls_lately
    return lately is not None and controller.crest(lately, felt.at, loop, law) <= law.roomy * cpus


def _jumped(felt: strain.Strain, cpus: int, loop: controller.State, law: controller.Law) -> bool:
    """Latency-sensitive work has just filled the machine."""
    return not loop.crowded and (felt.ls_lately or 0.0) > law.crowded * cpus


def decide(
    now: snapshot.Snapshot, past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """The limit at this moment, and the files that hold it."""
    why = in_charge(now, settings)
    if why:
        return decision.Decision(next_state=State(), explanation={"limit": f"not here: {why}"})
    there = be_groups.places(now)
    if not there:
        return decision.Decision(
            next_state=State(), explanation={"limit": "there is no best-effort work"}
        )
    use = be_usage.measure(now, past)
    stepped, felt_pain = _step(now, past, use, settings, state)
    whole = 1000 * max(1, len(_pool(now)))
    # Before the first step there is no limit, but one that a restart found.
    milli = _bounded(int(stepped.loop.limit * 1000) or whole, use, settings)
    deciding = _Deciding(now, past, there, f"adaptive: {stepped.reason}")
    actuator, cpus = deciding.files(milli, peak=stepped.loop.peak)
    return decision.Decision(
        next_state=stepped,
        actions=tuple(deciding.actions),
        conditions=tuple(deciding.conditions),
        signals=(
            _signal(now, felt_pain, settings),
            *adaptive_work.signal(stepped.work, settings.work_tolerance),
            *resctrl_pressure.of(now),
        ),
        limit=best_effort.Limit(
            policy=STEM,
            actuator=actuator,
            milli=None if milli >= whole else milli,
            cpus=cpus,
            ls_milli=use.ls,
            system_milli=use.system,
            be_milli=use.be,
            reason=stepped.reason,
        ),
        explanation={
            "limit": "none" if milli >= whole else f"{milli / 1000:.2f} CPUs",
            "reason": stepped.reason,
            "actuator": actuator,
        },
    )


def _signal(now: snapshot.Snapshot, felt_pain: float | None, settings: Settings) -> decision.Signal:
    known = felt_pain is not None and now.strain is not None
    return decision.Signal(
        name="cpu.waiting",
        observed=f"{felt_pain * settings.tolerance:.0%}" if felt_pain is not None else "unknown",
        threshold=f"{settings.tolerance:.0%} more than its own",
        met=felt_pain > 1 if felt_pain is not None else None,
        why="" if known else "nothing tells yet whether latency-sensitive work waits",
    )


def _bounded(milli: int, use: be_usage.Use, settings: Settings) -> int:
    """The upper bound of the file, which nothing exceeds."""
    if settings.max_percent is None:
        return milli
    return min(milli, use.capacity * settings.max_percent // 100)


def _step(
    now: snapshot.Snapshot,
    past: series.History,
    use: be_usage.Use,
    settings: Settings,
    state: State,
) -> tuple[State, float | None]:
    """The loop's next state, and the pain that was felt."""
    felt, cpus, most = now.strain, len(_usable(now)), max(1, len(_pool(now)))
    law = dataclasses.replace(settings.law, floor=settings.floor_milli / 1000)
    # Without a signal of waiting, use still says when the machine is full.
    old = felt is not None and now.at - felt.at > be_usage.FRESH_SECONDS
    if use.ls is None or old:
        return _unsure(now.at, use, cpus, settings, state), None
    lately, mean, waited, ls = 0.0, 0.0, 0.0, [use.ls / 1000]
    others = max(0, use.system or 0) / 1000
    if felt is not None:
        throttled = _throttled(now, past)
        lately, mean = pain(felt, cpus, throttled, settings.tolerance, others)
        waited = beyond(felt.waiting, felt.ls_cores or 0.0, cpus, throttled) / settings.tolerance
        ls += (one for one in (felt.ls_cores, felt.ls_lately) if one is not None)
    blame = _blame(max(ls), None if felt is None else felt.be_cores, others)
    work = adaptive_work.look(now, past, state.work)
    cycles, work = adaptive_work.feel(state.work, work, now.at, blame, settings.work_tolerance)
    feeling = controller.Feeling(
        at=now.at,
        machine=float(cpus),
        ls=max(ls),
        most=float(most),
        pain=lately,
        mean=mean,
        sure=cycles,
        waited=waited,
    )
    loop, reason = controller.step(feeling, state.loop, law)
    if loop.cut_at == now.at:
        work = adaptive_work.cut(cycles, work)
        reason = _CYCLES if max(lately, mean) <= 1 else reason
    made = State(loop=loop, felt_at=now.at, machine=cpus, others=others, reason=reason, work=work)
    return made, max(lately, mean)


def _throttled(now: snapshot.Snapshot, past: series.History) -> float:
    """CPU that latency-sensitive workloads were kept from by limits of their own."""
    found = past.groups.lasts(be_groups.sensitive_groups(now.pods), meter.THROTTLED_TIME)
    return sum(filter(None, found))


def _unsure(at: float, use: be_usage.Use, cpus: int, settings: Settings, state: State) -> State:
    """Rule 4."""
    loop = state.loop
    if loop.at is None or state.felt_at is None:
        return dataclasses.replace(state, reason="nothing is known yet")
    if at - state.felt_at <= settings.max_age:
        return dataclasses.replace(state, reason=f"held: {use.problem or 'nothing is felt'}")
    floor = settings.floor_milli / 1000
    left = floor
    if use.node is not None:
        left = (use.capacity * _THRESHOLD // 100 - max(use.node, use.reserved)) / 1000
    step = cpus / _STEPS * min(2.0, max(0.0, at - loop.at))
    limit = min(loop.limit, max(floor, left, loop.limit - step))
    reason = f"falls: {use.problem or 'nothing is felt'}"
    fallen = dataclasses.replace(loop, limit=limit, allowed=limit, at=at)
    return dataclasses.replace(state, loop=fallen, reason=reason)


class _Deciding:
    """One decision on its way."""

    def __init__(
        self,
        now: snapshot.Snapshot,
        past: series.History,
        there: tuple[be_groups.Place, ...],
        reason: str,
    ) -> None:
        self.now = now
        self.past = past
        self.there = there
        self.reason = reason
        self.counted = be_groups.counted(there, past, now)
        self.writer = be_groups.Writer(now, STEM)
        self.actions: list[action.Action] = []
        self.conditions = [_not_applied(why) for why in be_groups.untimed(there, now)]

    def files(self, milli: int, peak: float) -> tuple[str, cpuset.CPUSet | None]:
        """The actuators for a limit, and the CPUs where it has some."""
        self.actions += _weights(self.now.layout, self.counted, self.now.pods)
        order = self._order()
        count = -(-milli // 1000)
        if milli >= 1000 * len(order):
            return "weights", None
        cpus, used = None, "weights"
        room = len(_usable(self.now)) - count >= 2 * peak
        if count < len(order) and (room or not self.counted):
            cpus = cpuset.CPUSet.of(order[: max(1, count)])
            why = f"{self.reason}: {milli / 1000:.2f} CPUs"
            found, problems = self.writer.sets(self.there, cpus, why)
            self.actions += found
            self.conditions += (_not_applied(problem) for problem in problems)
            used = "cpuset" if found else used
        if self.counted and (milli < 1000 or cpus is None or used == "weights"):
            self._quota(milli)
            used = "cpuset+cfsQuota" if used == "cpuset" else "cfsQuota"
        return used, cpus

    def _quota(self, milli: int) -> None:
        used = be_groups.used(self.counted, self.past)
        parts = be_groups.split(milli, used, _LEAST_QUOTA_MILLI)
        why = f"{self.reason}: {milli / 1000:.2f} CPUs"
        self.actions += self.writer.quotas(self.counted, parts, why)

    def _order(self) -> tuple[int, ...]:
        """Every CPU that best-effort work may have, in the order in which it gets them."""
        pool = _pool(self.now)
        return be_cpus.pick(self.now.topology, pool, len(pool))[::-1]


@remember.last
def _weights(
    layout: cgroup.Layout, there: tuple[be_groups.Place, ...], pods: tuple[pod.Pod, ...]
) -> tuple[action.Action, ...]:
    """Asked for at every tick, and the same while the same groups are there."""
    ours = {one.group for one in pods if one.source in _OURS}
    others = [one for one in there if one.group not in ours]
    return (
        *be_groups.idle(
            layout,
            [one.group for one in there if one.group in ours],
            STEM,
            "best-effort work runs when nobody else wants to",
        ),
        *be_groups.weights(layout, others, STEM, "best-effort work has the least weight"),
    )


def _usable(now: snapshot.Snapshot) -> cpuset.CPUSet:
    """Every CPU that workloads may use."""
    held = now.ledger.held(ledger.Owner.RESERVED, ledger.Owner.SYSTEM)
    return now.topology.online - held or now.topology.online


def _pool(now: snapshot.Snapshot) -> cpuset.CPUSet:
    """Every CPU that best-effort work may ever have."""
    held = now.ledger.held(ledger.Owner.RESERVED, ledger.Owner.SYSTEM, ledger.Owner.LSE)
    return now.topology.online - held


def _not_applied(problem: str) -> decision.Condition:
    return decision.Condition(
        type="BestEffortLimitNotApplied", status=True, reason="Adaptive", message=problem
    )
