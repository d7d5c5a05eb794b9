"""Preemption for a group of gangs: victims leave only where the whole minimum then fits.

Covers: who may leave, in columns without them whether the minimum fits, whom the group can spare.
Does not cover: single pods (``scheduler.framework.preemption``), evicting
(``scheduler.loop.reporter``).

Rules:
1. The group is as important as its least important member. A unit is a pod, or all pods of a gang
   that is disrupted as a whole. Units of lower priority may leave; reserve pods, pods of the group
   itself and pods that a label exempts may not; for a gang in a quota, only pods of that quota.
2. All units leave the columns, and the group's own cycle is tried. If the minimum does not fit,
   everything is as before, and nobody is harmed.
3. Units come back in this order where the minimum still fits with them: those that a budget
   protects; higher priority; larger ones, so that a whole of one pod is as good as a pod; who
   started earlier; whose workload was disrupted more.
4. Where units times members exceed ``EFFORT``, units on nodes that the first placement does not use
   come back at once, if the minimum then still fits. The others, where they are still too many, are
   asked with the members of their own nodes alone; the whole is tried once more at the end, and
   without success all of them leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from koordlet.model.record import dataclass
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.framework import dryrun
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.gangs.book import GangBook, GangGroup
from koordlet.scheduler.loop.outcomes import Bind, Hold
from koordlet.scheduler.loop.pod_cache import PodCache
from koordlet.scheduler.loop.quota_scheduler import QuotaScheduler
from koordlet.scheduler.objects.disruption import Protection
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.reservation import keys

EFFORT = 10_000
WAITING = "pod group is waiting for preemption to complete"
TERMINATING = "preemption: not eligible due to terminating pod on the nominated node."
NO_VICTIMS = "preemption: No preemption victims found for incoming preemptor"
_EXEMPT = (
    "quota.scheduling.koordinator.sh/preemptible",
    "scheduling.koordinator.sh/preemptible",
)


class PreemptingCore(Protocol):
    """The parts of ``loop.core.Core`` that preemption looks at."""

    pod_cache: PodCache
    cycles: dict[str, Cycle]
    quotas: QuotaScheduler
    disrupted: dryrun.Disrupted | None


#: Decides the members; the placements, or ``None`` where the minimum does not fit. Nothing of it
#: is left assumed.
Attempt = Callable[[], "Sequence[Placement] | None"]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a member would go."""

    pod: Pod
    node: str


@dataclass(frozen=True, slots=True)
class GroupPreemption:
    """The victims, and where the members go when they have left."""

    placements: tuple[Placement, ...]
    victims: tuple[Pod, ...]


@dataclass(frozen=True, slots=True)
class _Unit:
    """Pods that leave together or not at all."""

    pods: tuple[Pod, ...]
    priority: int

    def importance(self) -> tuple[int, int, str, int]:
        """Most important first (rule 3)."""
        started = min(pod.started or "~" for pod in self.pods)
        return -self.priority, -len(self.pods), started, self.pods[0].position

    def disrupted(self, times: dryrun.Disrupted) -> float:
        """How often the most disrupted workload of its pods was."""
        return max(map(times, self.pods))


def placements(binds: Sequence[Bind | Hold]) -> tuple[Placement, ...]:
    """The placements of a trial."""
    return tuple(Placement(bind.pod, bind.node) for bind in binds)


def priority(group: GangGroup, members: Sequence[Pod]) -> int:
    """How important a group is (rule 1)."""
    stated = [
        entry.gang.priority
        for entry in group.entries
        if entry.gang is not None and entry.gang.priority is not None
    ]
    return min([*stated, *(pod.priority for pod in members)])


def awaited(columns: Columns, members: Sequence[Pod]) -> bool:
    """Whether victims on the members' nominated nodes are terminating, and will make room."""
    rows = {columns.rows.get(pod.nominated) for pod in members if pod.nominated} - {None}
    least = min(pod.priority for pod in members)
    return any(
        other.terminating and other.preempted and other.priority < least
        for row in rows
        if row is not None
        for other in columns.pods[row].values()
    )


def attempt(
    core: PreemptingCore,
    book: GangBook,
    group: GangGroup,
    members: Sequence[Pod],
    protection: Protection,
    *,
    trial: Attempt,
) -> GroupPreemption | str:
    """The least victims by rule 3, or why preemption does not help; empty: nobody may leave."""
    columns = core.pod_cache.columns
    units = _units(core, book, group, members)
    if not units:
        return ""
    away = Away(columns, core.quotas)
    try:
        for unit in units:
            away.leave(unit.pods)
        chosen = trial()
        if chosen is None:
            return NO_VICTIMS
        remaining = _ordered(units, protection, core.disrupted)
        if len(units) * len(members) > EFFORT:
            remaining, chosen = _narrowed(columns, away, remaining, chosen, trial)
        if len(remaining) * len(members) > EFFORT:
            victims = _by_node(core, away, remaining, chosen)
            final = trial()
            victims, chosen = (remaining, chosen) if final is None else (victims, final)
        else:
            victims, chosen = _spare(away, remaining, chosen, trial)
    finally:
        away.restore()
    leaving = tuple(pod for unit in victims for pod in unit.pods)
    return GroupPreemption(tuple(chosen), leaving) if leaving else NO_VICTIMS


def _spare(
    away: Away, units: list[_Unit], chosen: Sequence[Placement], trial: Attempt
) -> tuple[list[_Unit], Sequence[Placement]]:
    """The units without which alone the minimum fits, and the placements then."""
    victims: list[_Unit] = []
    for unit in units:
        away.come_back(unit.pods)
        spared = trial()
        if spared is None:
            away.leave(unit.pods)
            victims.append(unit)
        else:
            chosen = spared
    return victims, chosen


def _by_node(
    core: PreemptingCore, away: Away, units: list[_Unit], chosen: Sequence[Placement]
) -> list[_Unit]:
    """The same, where each node is judged with its own members alone (rule 4)."""
    rows = core.pod_cache.columns.rows
    members: dict[int, list[Pod]] = {}
    for placement in chosen:
        members.setdefault(rows[placement.node], []).append(placement.pod)
    victims: list[_Unit] = []
    for unit in units:
        away.come_back(unit.pods)
        if not all(_fit(core, members.get(row, []), row) for row in away.rows_of(unit)):
            away.leave(unit.pods)
            victims.append(unit)
    return victims


def _fit(core: PreemptingCore, members: Sequence[Pod], row: int) -> bool:
    """Whether these members fit on a node, one after another."""
    columns, placed = core.pod_cache.columns, []
    try:
        for pod in members:
            if core.cycles[pod.pod_class.scheduler].verdict(pod, row) is not None:
                return False
            columns.place(pod, row)
            placed.append(pod)
    finally:
        for pod in placed:
            columns.remove(pod)
            pod.node = ""
    return True


def _narrowed(
    columns: Columns,
    away: Away,
    units: list[_Unit],
    chosen: Sequence[Placement],
    trial: Attempt,
) -> tuple[list[_Unit], Sequence[Placement]]:
    """The units that remain to be asked one by one (rule 4)."""
    used = {columns.rows[placement.node] for placement in chosen}
    elsewhere = [unit for unit in units if not used & away.rows_of(unit)]
    for unit in elsewhere:
        away.come_back(unit.pods)
    again = trial()
    if again is None:
        for unit in elsewhere:
            away.leave(unit.pods)
        return units, chosen
    return [unit for unit in units if used & away.rows_of(unit)], again


class Away:
    """Pods that have left the columns, and use nothing of their quotas, for a while."""

    def __init__(self, columns: Columns, quotas: QuotaScheduler) -> None:
        self._columns, self._quotas = columns, quotas
        self._relieved = quotas.book.relieved
        self._rows: dict[str, int] = {}
        self._gone: dict[str, Pod] = {}

    def rows_of(self, unit: _Unit) -> set[int]:
        """The rows that a unit is on."""
        return {self._rows[pod.key] for pod in unit.pods}

    def leave(self, pods: Iterable[Pod]) -> None:
        """Take pods away."""
        for pod in pods:
            self._rows[pod.key] = self._columns.remove(pod)
            self._gone[pod.key] = pod
            self._quotas.released(pod)

    def come_back(self, pods: Iterable[Pod]) -> None:
        """Give pods their places back."""
        for pod in pods:
            del self._gone[pod.key]
            self._place(pod)

    def restore(self) -> None:
        """Give everybody who is away their places back."""
        for pod in self._gone.values():
            self._place(pod)
        self._gone.clear()
        # Nobody has left a quota: who looks at it again would look for ever.
        self._quotas.book.take_relief(left=self._relieved)

    def _place(self, pod: Pod) -> None:
        self._columns.place(pod, self._rows[pod.key])
        self._quotas.put(pod)


def _units(
    core: PreemptingCore, book: GangBook, group: GangGroup, members: Sequence[Pod]
) -> list[_Unit]:
    pod_cache, below = core.pod_cache, priority(group, members)
    whose = {pod.pod_class: pod for pod in members}.values()
    eligible = [core.quotas.eligible(pod) for pod in whose]

    def may_leave(pod: Pod) -> bool:
        return _may_leave(pod) and any(allows(pod) for allows in eligible)

    own = {entry.key for entry in group.entries}
    columns = pod_cache.columns
    units: list[_Unit] = []
    wholes: dict[str, list[Pod]] = {}
    for pod in pod_cache:
        entry = book.of(pod)
        whole = entry is not None and entry.gang is not None and entry.gang.whole
        row = columns.rows.get(pod.node)
        if row is None or pod.key not in columns.pods[row]:
            continue
        if whole and entry is not None and entry.key not in own:
            wholes.setdefault(entry.key, []).append(pod)
        elif pod.priority < below and may_leave(pod) and (entry is None or entry.key not in own):
            units.append(_Unit((pod,), pod.priority))
    for key, pods in wholes.items():
        gang = entry.gang if (entry := book.get(key)) is not None else None
        stated = gang.priority if gang is not None else None
        rank = min(pod.priority for pod in pods) if stated is None else stated
        if rank < below and all(map(may_leave, pods)):
            units.append(_Unit(tuple(pods), rank))
    return units


def _may_leave(pod: Pod) -> bool:
    labels = pod.pod_class.labels
    exempt = labels.get(keys.NEVER_VICTIM) == "true"
    return not (exempt or pod.reserve_pod_of or any(labels.get(key) == "false" for key in _EXEMPT))


def _ordered(
    units: Sequence[_Unit], protection: Protection, times: dryrun.Disrupted | None
) -> list[_Unit]:
    """The order of rule 3."""
    disrupted = None if times is None else lambda unit: unit.disrupted(times)
    ordered = dryrun.ordered(units, _Unit.importance, disrupted)
    violating, _ = protection.split([pod for unit in ordered for pod in unit.pods])
    protected = {pod.uid for pod in violating}
    return sorted(ordered, key=lambda unit: not any(pod.uid in protected for pod in unit.pods))
