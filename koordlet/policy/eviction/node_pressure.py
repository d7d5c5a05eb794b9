"""node_pressure: evicts pods when memory, disk, inodes or PIDs run short.

Covers: when a pass takes place, conditions, the one victim of a pass, when nobody is evicted.
Does not cover: the numbers (``pressure_signals``), grace periods and minimum reclaim
(``pressure_state``), the order (``ranking``), doing it (``apply.evictor``).

Rules:
1. A pass runs every ``pass_seconds``, and at once when a threshold is crossed or a victim is gone.
   Between passes the last decision stays in force.
2. A pass evicts one pod: the first in the order that is neither critical nor static. The next pass
   waits until that pod is gone, for half a minute at most.
3. Local-storage limits come first: a pass in which they evict pods evicts no other pod.
4. On a node with a kubelet, koordlet leaves the kubelet's signals to it. With ``act`` koordlet
   evicts where its threshold is strictly earlier than the kubelet's, that is not met either, and
   the kubelet reports no condition.
5. Stale input evicts no pod: the policy waits for counters that are read in turns, and the next
   tick reads all of them; for a disk, for the kubelet's statistics from after it ran short.
6. Only the monotonic clock counts.
7. Page cache is reclaimed first, once, where that can be enough (``pressure_reclaim``).

* Formula: met where available < threshold; a soft one for its grace period
* Writes: no file: evicts; conditions of the node
* See: `koordlet explain eviction`, *Signals* on the console
* Off: nobody goes because of it any more; evictions that have begun are finished; conditions are
  not set any more
* More: eviction.md
"""

from __future__ import annotations

import math
import typing
from collections.abc import Mapping
from dataclasses import field, replace

from koordlet.history import series
from koordlet.model import action, decision, eviction, kubelet, meter, snapshot, thresholds
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.best_effort import groups
from koordlet.policy.eviction import (
    kubelet_owned,
    messages,
    own_signals,
    pressure_reclaim,
    pressure_signals,
    pressure_state,
)
from koordlet.policy.framework import declaration

if typing.TYPE_CHECKING:
    from koordlet.policy.eviction import ranking

STEM = "node_pressure"

#: Seconds that a hard threshold leaves to a pod, and the least that a soft one does.
HARD_GRACE = 1
#: Seconds that a pass waits for a victim to go.
_CLEANUP = 30.0
#: Seconds for which nobody is asked to go again (``apply.evictor`` would not).
_AGAIN = 300.0
#: Seconds for which counters of this moment are waited for.
_UNREAD = 2.5
#: Seconds for which newer statistics are waited for: the kubelet is asked every ten.
_UNASKED = 20.0
#: What file systems said longer ago is not believed.
_STALE_DISKS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The operator's settings."""

    limits: tuple[thresholds.Threshold, ...] = thresholds.parse(thresholds.Texts())
    #: Seconds that a condition holds after its last threshold was met.
    transition: float = 300.0
    #: The most that a soft threshold leaves to a pod, in seconds.
    max_grace: int = 0
    #: ``None``: on machines without a kubelet only.
    act: bool | None = None
    #: The kubelet's thresholds as a file of it says, until the kubelet says them itself.
    kubelet: thresholds.Texts | None = None
    #: Seconds between two passes; ``None``: ten beside a kubelet, each tick elsewhere.
    pass_seconds: float | None = None
    #: Whether local-storage limits evict as well (rule 3).
    local_storage: bool = True
    #: Thresholds of our own, which evict as the kubelet's do.
    own: tuple[thresholds.Threshold, ...] = ()
    #: Limits of our own that only tell: ``memory.full.avg10`` to percent of time.
    stalls: Mapping[str, float] = field(default_factory=dict)
    #: Swap space that shall be left, as a threshold.
    swap: thresholds.Value | None = None
    #: Percent of its own memory limit from which a workload is told of; ``None``: none is.
    tight_percent: int | None = None
    #: Whether page cache is taken back before; ``None``: on machines without a kubelet only.
    reclaim: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """State kept between ticks."""

    book: pressure_state.Book = field(default_factory=pressure_state.Book)
    #: When the last pass was; ``None`` before the first.
    passed: float | None = None
    #: Who was chosen in the last pass.
    victims: tuple[eviction.Eviction, ...] = ()
    #: What was below its threshold at the last tick.
    below: frozenset[str] = frozenset()
    #: Declared workloads that were to go lately, and since when. Their groups stay when they end,
    #: and where nothing counts tasks nobody can tell: they are not asked twice, others are.
    asked: Mapping[str, float] = field(default_factory=dict)
    #: When page cache was taken back last.
    reclaimed: float | None = None
    #: When somebody was chosen last: the relief of it may not be seen yet.
    eased: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The part of the state for a checkpoint."""

    first: Mapping[str, float] = field(default_factory=dict)
    seen: Mapping[str, float] = field(default_factory=dict)


#: Times are kept this exactly, so that a lasting condition is not written at every pass.
_GRAIN = 30.0


def _keep(state: State) -> Kept:
    seen = {kind: at - at % _GRAIN for kind, at in state.book.seen.items()}
    return Kept(first=state.book.first, seen=seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look(pressure_state.Look):
    """Inputs of one tick."""

    past: series.History
    settings: Settings
    #: How file systems are shared out.
    layout: str


def _look(now: snapshot.Snapshot, past: series.History, settings: Settings) -> _Look:
    seen = pressure_signals.observe(now)
    observed = {
        signal: observation
        for signal, observation in seen.by_signal.items()
        if observation.at is None or now.at - observation.at <= _STALE_DISKS
    }
    if settings.own:
        observed.update(own_signals.observe(now.pressure))
    beside = kubelet_owned.neighbour(
        now, observed, act=settings.act, file_texts=settings.kubelet, layout=seen.layout
    )
    return _Look(
        now=now,
        past=past,
        settings=settings,
        layout=seen.layout,
        observed=observed,
        missing=seen.missing,
        configured=(*thresholds.with_containerfs(settings.limits, seen.layout), *settings.own),
        beside=beside,
    )


def decide(
    now: snapshot.Snapshot, past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Decide signals, conditions and evictions at this moment."""
    look = _look(now, past, settings)
    below = frozenset(
        pressure_state.name(threshold)
        for threshold in look.configured
        if pressure_state.is_met(threshold, look.observed)
    )
    given: tuple[action.Reclaim, ...] = ()
    if _due(now, past, settings, state, below):
        state, given = _pass(look, replace(state, below=below))
    elif below != state.below:
        state = replace(state, below=below)
    signals, conditions = own_signals.judge(now, settings.stalls, settings.swap)
    if settings.tight_percent is not None:
        signal, condition = own_signals.judge_tight(now, past, settings.tight_percent)
        signals.append(signal)
        conditions.append(condition)
    return decision.Decision(
        next_state=state,
        actions=(
            *given,
            *(
                action.evict(
                    victim, f"{victim.signal} is {victim.observed}, less than {victim.threshold}"
                )
                for victim in state.victims
                if not victim.held
            ),
        ),
        evictions=state.victims,
        signals=(*pressure_state.signals(look, state.book), *signals),
        conditions=_conditions(look, state, conditions),
        explanation={"layout": look.layout, "held": groups.stale(now)},
    )


def _pass(look: _Look, state: State) -> tuple[State, tuple[action.Reclaim, ...]]:
    """One pass over all thresholds: victims, and page cache to reclaim first."""
    now, settings = look.now, look.settings
    page = pressure_state.turn(
        look.configured, look.observed, state.book, now.at, settings.transition
    )
    asked = {uid: at for uid, at in state.asked.items() if 0 <= now.at - at < _AGAIN}
    state = replace(state, book=page.book, passed=now.at, asked=asked)
    due = _first(look, page.due, state.eased)
    if due is not None and _waits(look, due, state):
        # The next tick has them: it is a pass, as if the threshold had been crossed by then.
        below = state.below - {pressure_state.name(due)}
        return replace(state, below=below, victims=()), ()
    victims = () if due is None else _victims(look, due, state)
    given: tuple[action.Reclaim, ...] = ()
    if due and victims and not victims[0].held and _may_reclaim(now, settings, state):
        given = pressure_reclaim.asked(now, look.past, due, look.observed[due.signal], STEM)
    if given:
        victims = tuple(replace(victim, held=pressure_reclaim.HELD) for victim in victims)
        state = replace(state, reclaimed=now.at)
    acted = {victim.uid for victim in victims if not victim.held}
    # Nearly never anybody: looking at each pod costs a twentieth of a tick.
    gone = [pod for pod in now.pods if pod.uid in acted] if acted else ()
    asked |= {pod.uid: now.at for pod in gone if pod.kube_qos is None}
    eased = now.at if acted else state.eased
    return replace(state, victims=victims, asked=asked, eased=eased), given


def _first(
    look: _Look, due: tuple[thresholds.Threshold, ...], eased: float | None
) -> thresholds.Threshold | None:
    """The threshold to act on: the first that may be acted on, else the first."""
    since = math.inf if eased is None else look.now.at - eased
    ready = [threshold for threshold in due if not 0 <= since < own_signals.pause(threshold.signal)]
    free = (threshold for threshold in ready if not look.beside.held(threshold))
    return next(free, next(iter(ready), None))


def _conditions(
    look: _Look, state: State, others: list[decision.Condition]
) -> tuple[decision.Condition, ...]:
    passed = look.now.at if state.passed is None else state.passed
    holding = pressure_state.holding(state.book.seen, passed, look.settings.transition)
    conditions = (
        *messages.conditions(holding),
        *own_signals.conditions(look.settings.own, holding),
        *kubelet_owned.conditions(look.beside, look.configured),
        *others,
    )
    return own_signals.united(conditions) if look.settings.own else conditions


def _due(
    now: snapshot.Snapshot,
    past: series.History,
    settings: Settings,
    state: State,
    below: frozenset[str],
) -> bool:
    """Rule 1."""
    if state.passed is None or now.at < state.passed or not below <= state.below:
        return True
    waited = now.at - state.passed
    acted = [victim for victim in state.victims if not victim.held]
    if acted:
        there = {pod.uid for pod in now.pods if _runs(pod, past)}
        left = [victim for victim in acted if victim.uid in there]
        return not left or waited >= _CLEANUP
    seconds = settings.pass_seconds
    if seconds is None:
        seconds = 10.0 if kubelet_owned.is_there(now) else 0.0
    return waited >= seconds


def _may_reclaim(now: snapshot.Snapshot, settings: Settings, state: State) -> bool:
    """Rule 7: once, and not again too soon."""
    wanted = not kubelet_owned.is_there(now) if settings.reclaim is None else settings.reclaim
    at = state.reclaimed
    return wanted and (at is None or not 0 <= now.at - at < pressure_reclaim.PAUSE)


# Victims -----------------------------------------------------------------------------------------


def _victims(look: _Look, due: thresholds.Threshold, state: State) -> tuple[eviction.Eviction, ...]:
    """Rules 2, 3 and 5."""
    now, past = look.now, look.past
    if groups.stale(now):
        return ()
    # Late: a node that lacks nothing ranks nobody.
    from koordlet.policy.eviction import local_storage_evict, pod_use, ranking  # noqa: PLC0415

    if look.settings.local_storage and next(local_storage_evict.offenders(now), None):
        return ()
    pods = [(pod, pod_use.of(pod, now, past)) for pod in now.pods if _runs(pod, past)]
    first = state.book.first.get(pressure_state.name(due), now.at)
    ranked = ranking.rank(due.signal, look.layout, pods)
    free = (ranked_pod for ranked_pod in ranked if ranked_pod.pod.uid not in state.asked)
    chosen = next((candidate for candidate in free if not ranking.spared(candidate.pod)), None)
    if chosen is None:
        return ()
    victim = _eviction(look, due, chosen)
    since = now.wall - (now.at - first)
    return (
        replace(victim, since=since, ranking=tuple(ranked_pod.candidate for ranked_pod in ranked)),
    )


def _eviction(look: _Look, due: thresholds.Threshold, chosen: ranking.Ranked) -> eviction.Eviction:
    resource, observed = thresholds.RESOURCE[due.signal], look.observed[due.signal]
    return eviction.Eviction(
        pod=chosen.pod.key,
        uid=chosen.pod.uid,
        policy=STEM,
        signal=due.signal,
        reason=messages.REASON,
        message=messages.message(chosen.pod, chosen.use, due, observed),
        observed=messages.available(due.signal, observed.available),
        threshold=messages.wanted(due, observed.capacity),
        grace_seconds=_grace(chosen.pod, due, look.settings),
        group=chosen.pod.group,
        match=chosen.pod.match,
        held=look.beside.held(due),
        annotations=messages.event_annotations(chosen.pod, chosen.use, resource),
    )


def _runs(pod: pods.Pod, past: series.History) -> bool:
    """Whether a workload runs; without a cluster, whether its cgroup has tasks."""
    if pod.kube_qos is not None or not pod.active:
        return pod.active
    return pod.group is not None and past.groups.last(pod.group, meter.PIDS) != 0


def _waits(look: _Look, due: thresholds.Threshold, state: State) -> bool:
    """Rule 5: whether to wait for counters that are being read again."""
    now = look.now.at
    first = state.book.first.get(pressure_state.name(due), now)
    if due.signal in thresholds.DISK_SIGNALS:
        answers = [s.last_good for s in look.now.sources if s.name == kubelet.STATISTICS]
        return any(at is not None and at <= first for at in answers) and now - first < _UNASKED
    return not look.past.complete and now - first < _UNREAD


def _grace(pod: pods.Pod, due: thresholds.Threshold, settings: Settings) -> int:
    """Never less than a second: an API server takes nothing as "forget the pod at once"."""
    if due.hard:
        return HARD_GRACE
    own = settings.max_grace if pod.grace_seconds is None else pod.grace_seconds
    return max(HARD_GRACE, min(settings.max_grace, own))


POLICY = declaration.Policy(
    stem=STEM,
    summary="evicts pods when memory, disk, inodes or PIDs run short",
    protects="it keeps the node from running out of shared resources",
    decide=decide,
    settings=Settings(),
    state=State(),
    kept=Kept,
    keep=_keep,
    wake=lambda kept: State(book=pressure_state.Book(first=kept.first, seen=kept.seen)),
    compares=True,
)
