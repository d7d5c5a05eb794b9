"""cpu_suppress: limits best-effort CPU by Koordinator's formula.

    BE = capacity * threshold% - LS used - max(system used, node reserved)

Covers: the formula, both its actuators, what happens when counters are old.
Does not cover: the sums (``usage``), which CPUs (``cpu_choice``), files (``groups``), our own
control loop (``adaptive``).

Rules:
1. A NodeSLO or ``slo-controller-config`` decides alone: its ``enable``, its percents, its policy,
   filled with the peer's defaults. Without one, the configuration file decides.
2. ``cpuset``: BE rounded up to whole CPUs, two at least, and never more than the BE pool has; it
   grows by a tenth of the machine each time and shrinks at once. ``cfsQuota``: 2 ms of each 100 ms
   at least; less than one percent of the machine is no change; it grows by a tenth, and shrinks, or
   comes from no limit, at once.
3. Only the files of the actuator in use are wanted, so the same plan restores the other's.
4. Where latency-sensitive use rises by a tenth of the machine after a pass, the next pass runs at
   once and uses the new value (Koordinator waits for its one-second tick).
5. Unknown input never raises the limit. The limit stays for ``max_age``; then it moves by a tenth
   of the machine per step towards what the node's own counters allow, best-effort use included;
   where these are old as well, towards the actuator's minimum.
6. ``limits.maxPercent`` is applied last and caps every other value.

An empty BE pool skips a round, as Koordinator does, and sets a condition.

* Formula: BE = capacity * threshold% - LS used - max(system used, node reserved)
* Writes: `cpuset.cpus` of best-effort work, or its quota: `cpu.max`, on v1 `cpu.cfs_quota_us`
* See: `koordlet top`, *CPU use over time* on the console, `bestEffort` in `/api/v1/node`
* More: best-effort.md
"""

from __future__ import annotations

import enum
from dataclasses import field, replace

from koordlet.history import series
from koordlet.model import best_effort, cpuset, decision, ledger, snapshot, strain
from koordlet.model.record import dataclass
from koordlet.policy.best_effort import cpu_choice, groups, usage
from koordlet.policy.cpu import shared_pools
from koordlet.policy.framework import declaration, proposals, saved_state

STEM = "cpu_suppress"

CPUSET, QUOTA = "cpuset", "cfsQuota"

#: 2 ms of each 100 ms.
LEAST_QUOTA_MILLI = 20
LEAST_CPUS = 2
#: Each time it grows by at most one part in so many of the machine …
_GROWTH = 10
#: … and less than one part in so many is no change of a quota.
_SMALLEST_CHANGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The operator's settings; a NodeSLO replaces the first four."""

    enable: bool = False
    threshold_percent: int = 65
    min_percent: int | None = None
    actuator: str = CPUSET
    #: Only the annotation's reservation, as in the release that the formula was announced with.
    seed: bool = False
    #: Seconds that a limit is held when counters are old.
    max_age: float = 30.0
    #: No limit is above this part of the node's capacity.
    max_percent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """State kept between ticks."""

    #: The actuator in use; empty while there is no limit.
    using: str = field(default="", metadata=saved_state.among("", CPUSET, QUOTA))
    #: The set, or the quota in thousandths of a core (``None``: no limit yet).
    cpus: cpuset.CPUSet = cpuset.CPUSet()
    milli: int | None = None
    #: Monotonic time of the last moment at which everything was known.
    fresh_at: float | None = field(default=None, metadata=saved_state.UNKEPT)
    #: Latency-sensitive use from which on the next pass does not wait for its tick.
    alarm_milli: int | None = field(default=None, metadata=saved_state.UNKEPT)


def urgent(felt: strain.Strain, state: State) -> bool:
    """Whether latency-sensitive use has just risen far above what the limit was computed with."""
    return state.alarm_milli is not None and 1000 * (felt.ls_lately or 0.0) > state.alarm_milli


class Sure(enum.Enum):
    """Certainty of a limit (rule 5)."""

    #: Everything: the limit may move both ways.
    ALL = "all"
    #: Too little, for a short time: the limit stays.
    SHORTLY_NOT = "held"
    #: Too little, for long: the limit moves down, step by step.
    NOT = "falling"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The limit that the formula, or its fallback, allows."""

    #: Thousandths of a core; may be negative: each actuator has its own floor.
    milli: int
    reason: str
    sure: Sure = Sure.ALL


def in_force(now: snapshot.Snapshot, settings: Settings) -> Settings:
    """The settings that count (rule 1)."""
    if now.slo is None:
        return settings
    strategy = now.slo.threshold
    percent = strategy.cpu_suppress_threshold_percent
    return replace(
        settings,
        enable=bool(strategy.enable),
        threshold_percent=65 if percent is None else percent,
        min_percent=strategy.cpu_suppress_min_percent,
        actuator=strategy.cpu_suppress_policy or CPUSET,
    )


def decide(
    now: snapshot.Snapshot, past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Decide the limit at this moment and the files that enforce it."""
    force = in_force(now, settings)
    if not force.enable:
        return decision.Decision(next_state=State(), explanation={"limit": "not enabled"})
    there = groups.places(now)
    use = _jumped(usage.measure(now, past, seed=force.seed), now.strain, state)
    wish, fresh_at = _wish(now.at, use, force, state)
    if wish is None:
        return decision.Decision(
            next_state=state, explanation={"limit": f"not set yet: {use.problem}"}
        )
    # A limit of the other actuator says nothing about this one's steps.
    before = state if state.using == force.actuator else State(fresh_at=state.fresh_at)
    deciding = _Deciding(now, past, use, before, there)
    milli, cpus = deciding.set_of_cpus(wish) if force.actuator == CPUSET else deciding.quota(wish)
    using = force.actuator if milli is not None else ""
    deciding.conditions += groups.enclosed(there, now.pods)
    deciding.why |= {"limit": wish.reason, "actuator": force.actuator}
    return deciding.decided(
        State(
            using=using,
            cpus=cpus or cpuset.CPUSet(),
            milli=milli if force.actuator == QUOTA else None,
            fresh_at=fresh_at,
            alarm_milli=use.ls + use.capacity // _GROWTH if using and use.ls is not None else None,
        ),
        signals=(_signal(use, force),),
        limit=_limit(using, milli, cpus, use, wish),
    )


def _jumped(use: usage.Use, felt: strain.Strain | None, state: State) -> usage.Use:
    """Replace latency-sensitive use by that of the last tenth of a second after a jump."""
    if felt is None or use.ls is None or not urgent(felt, state):
        return use
    return replace(use, ls=max(use.ls, int(1000 * (felt.ls_lately or 0.0))))


def _signal(use: usage.Use, force: Settings) -> decision.Signal:
    known = use.ls is not None
    taken = (use.ls or 0) + use.system_or_reserved
    return decision.Signal(
        name="cpu.suppress",
        observed=f"LS and system {taken / 1000:.2f} cores" if known else "unknown",
        threshold=f"{force.threshold_percent}% of {use.capacity / 1000:g}",
        met=100 * taken >= use.capacity * force.threshold_percent if known else None,
        why=use.problem,
    )


def _limit(
    using: str, milli: int | None, cpus: cpuset.CPUSet | None, use: usage.Use, wish: Wish
) -> best_effort.Limit:
    return best_effort.Limit(
        policy=STEM,
        actuator=using,
        milli=milli,
        cpus=cpus,
        ls_milli=use.ls,
        system_milli=use.system,
        be_milli=use.be,
        reason=wish.reason,
    )


# How much -----------------------------------------------------------------------------------------


def formula(use: usage.Use, force: Settings) -> Wish:
    """Compute the limit by the formula of the header; all inputs must be known."""
    ls, system = use.ls or 0, use.system_or_reserved
    milli = use.capacity * force.threshold_percent // 100 - ls - system
    reason = (
        f"{use.capacity} * {force.threshold_percent}% - LS {ls}"
        f" - max(system {use.system or 0}, reserved {use.reserved}) = {milli} thousandths of a CPU"
    )
    return _bounded(milli, reason, use, force)


def _bounded(milli: int, reason: str, use: usage.Use, force: Settings) -> Wish:
    least = None if force.min_percent is None else use.capacity * force.min_percent // 100
    if least is not None and milli < least:
        milli, reason = least, f"{reason}, at least {force.min_percent} %"
    most = None if force.max_percent is None else use.capacity * force.max_percent // 100
    if most is not None and milli > most:
        milli, reason = most, f"{reason}, limits.maxPercent {force.max_percent}"
    return Wish(milli=milli, reason=reason)


def _wish(
    at: float, use: usage.Use, force: Settings, state: State
) -> tuple[Wish | None, float | None]:
    """The limit, and when all inputs were last known; ``None`` before there is a limit."""
    if use.ls is not None:
        return formula(use, force), at
    if not state.using:
        return None, state.fresh_at
    since = at if state.fresh_at is None else state.fresh_at
    if at - since <= force.max_age:
        held = Wish(
            milli=state.milli or 0, reason=f"unchanged: {use.problem}", sure=Sure.SHORTLY_NOT
        )
        return held, since
    if use.node is not None:
        left = use.capacity * force.threshold_percent // 100 - max(use.node, use.reserved)
        reason = f"{use.problem}: from the node's total use {use.node}, best-effort work included"
        return Wish(milli=left, reason=reason, sure=Sure.NOT), since
    return Wish(milli=0, reason=f"minimum: {use.problem}", sure=Sure.NOT), since


class _Deciding(proposals.Proposal):
    """Builds one decision."""

    def __init__(
        self,
        now: snapshot.Snapshot,
        past: series.History,
        use: usage.Use,
        before: State,
        there: tuple[groups.Place, ...],
    ) -> None:
        super().__init__(STEM, now, reason="CPUSuppress")
        self.past = past
        self.use = use
        self.before = before
        self.there = there

    def set_of_cpus(self, wish: Wish) -> tuple[int | None, cpuset.CPUSet | None]:
        """Apply the limit as a set of CPUs."""
        usable = shared_pools.divide(self.now).be
        lsr = self.now.ledger.held(ledger.Owner.LSR) & usable
        before = self.before.cpus & usable
        held = bool(before) and wish.sure is Sure.SHORTLY_NOT
        chosen = before if held else self._choose(wish, lsr, usable)
        if not chosen:
            self.say(
                "CPUSuppressSkipped",
                "BE pool is empty: the limit of best-effort work stays unchanged",
            )
            chosen = before
        if not chosen:
            return None, None
        why = f"best-effort work on {len(chosen)} CPUs: {wish.reason}"
        for problem in groups.limit_sets(self, self.there, chosen, why):
            self.say("CPUSuppressNotApplied", problem)
        return 1000 * len(chosen), chosen

    def _choose(self, wish: Wish, lsr: cpuset.CPUSet, usable: cpuset.CPUSet) -> cpuset.CPUSet:
        count = len(self.now.allowed)
        step = -(-count // _GROWTH)
        there = self._present()
        wanted = max(-(-wish.milli // 1000), LEAST_CPUS)
        if wish.sure is not Sure.ALL:
            wanted = min(there, max(wanted, there - step))
        wanted = min(wanted, there + step, len(usable))
        return cpu_choice.choose(self.now.topology, wanted, usable - lsr, lsr)

    def _present(self) -> int:
        """Number of CPUs that best-effort work has now."""
        if self.before.cpus:
            return len(self.before.cpus)
        sets = [self.now.groups[place.group].effective() for place in self.there]
        known = [len(cpus) for cpus in sets if cpus is not None]
        return min(known, default=len(self.now.allowed))

    def quota(self, wish: Wish) -> tuple[int, None]:
        """Apply the limit as a CPU quota."""
        milli = self._stepped(wish)
        counted = groups.timed(self.there, self.now)
        for problem in groups.untimed(self.there, self.now):
            self.say("CPUSuppressNotApplied", problem)
        parts = groups.split(milli, groups.used(counted, self.past), LEAST_QUOTA_MILLI)
        why = f"best-effort work limited to {milli / 1000:.2f} CPUs: {wish.reason}"
        groups.limit_time(self, counted, parts, why)
        return milli, None

    def _stepped(self, wish: Wish) -> int:
        before, step = self.before.milli, self.use.capacity // _GROWTH
        wanted = max(wish.milli, LEAST_QUOTA_MILLI)
        if before is None:
            return wanted
        if wish.sure is Sure.SHORTLY_NOT:
            return before
        if wish.sure is Sure.NOT:
            return min(before, max(wanted, before - step))
        small = abs(wanted - before) * _SMALLEST_CHANGE < self.use.capacity
        if small and wanted != LEAST_QUOTA_MILLI:
            return before
        return min(wanted, before + step)


POLICY = declaration.Policy(
    stem=STEM,
    summary="CPU limit of best-effort work, by Koordinator's formula",
    protects="it limits best-effort work",
    decide=decide,
    settings=Settings(),
    state=State(),
    kept=State,
)
