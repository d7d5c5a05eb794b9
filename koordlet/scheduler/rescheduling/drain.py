"""The calendar of a drain: which pod of a node can go when, where to, and who never can.

Covers: the order of pods, the rounds of the clock, replacements that are expected. Does not cover:
evicting anybody, the bounds (``disruption.limiter``), where a pod fits (``descheduling.landing``).

Rules:
1. Order: lower priority first, then those whose budgets have most left, then by name.
2. Room first: a pod that no other node takes stays, and is an obstacle.
3. PodDisruptionBudgets and DisruptionRates hold, at each moment of the calendar. A replacement is
   taken to be up ``ready_seconds`` after its pod left.
4. Pods of DaemonSets and static pods belong to the node: they stay, and are no obstacle.
5. Data on the node would be lost: such a pod is an obstacle unless that is wanted. So is a pod
   that its gang needs.
"""

from __future__ import annotations

import dataclasses

from koordlet.model import moment
from koordlet.model.record import dataclass
from koordlet.scheduler.descheduling.landing import Landing
from koordlet.scheduler.descheduling.state import GHOST, ClusterState
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.disruption.answers import Allow, Answer, Clock, Deny, Mover
from koordlet.scheduler.disruption.limiter import Limiter
from koordlet.scheduler.migration import gang
from koordlet.scheduler.objects.disruption import DisruptionBudgets
from koordlet.scheduler.objects.pods import Pod

CAUSE = "Drained"
MOVER = Mover(name="drain", acts=True)
#: Nobody plans further ahead.
HORIZON = 30 * 86400.0


@dataclass(frozen=True, slots=True)
class Departure:
    """A pod that can go."""

    pod: Pod
    #: Seconds since 1970.
    at: float
    target: str
    #: What it waits for until then; empty: nothing.
    waits_for: str = ""


@dataclass(frozen=True, slots=True)
class DrainObstacle:
    """A pod that cannot go, however long somebody waits."""

    pod: Pod
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainCalendar:
    """A drain from its beginning."""

    node: str
    began: float
    departures: tuple[Departure, ...]
    obstacles: tuple[DrainObstacle, ...]
    #: Pods that belong to the node, and why.
    staying: tuple[tuple[Pod, str], ...]


def belongs(resident: Resident) -> str:
    """Why a pod belongs to its node; empty: it does not (rule 4)."""
    if resident.traits.mirror or resident.traits.static:
        return "static pod"
    return "of a DaemonSet" if resident.pod.pod_class.owner[0] == "DaemonSet" else ""


class DrainPlanner:
    """Plays the drain of one node."""

    def __init__(
        self,
        state: ClusterState,
        limiter: Limiter,
        budgets: DisruptionBudgets,
        *,
        ready_seconds: float = 60.0,
        loses_data: bool = False,
    ) -> None:
        self._state, self._limiter, self._budgets = state, limiter, budgets
        self._ready_seconds, self._loses_data = ready_seconds, loses_data
        self._landing = Landing(state)
        #: Replacements that are not up yet: when they will be, and the UID of the pod that left.
        self._coming: list[tuple[float, str, Pod]] = []

    def calendar(self, row: int) -> DrainCalendar:
        """The calendar; the state is another one afterwards."""
        node = self._state.node(row).name
        residents = self._state.residents(row)
        staying = [(each.pod, why) for each in residents if (why := belongs(each))]
        waiting = sorted((each for each in residents if not belongs(each)), key=self._order)
        departures: list[Departure] = []
        clock = self._state.now
        answers: dict[str, Answer] = {}
        waited: dict[str, str] = {}
        while waiting:
            gone = self._pass(waiting, clock, answers, waited)
            departures += gone
            left = {departure.pod.uid for departure in gone}
            waiting = [each for each in waiting if each.pod.uid not in left]
            if gone:
                continue
            following = self._next(clock, answers)
            if following is None:
                break
            clock = self._later(clock, following)
        return DrainCalendar(
            node=node,
            began=self._state.now.wall,
            departures=tuple(departures),
            obstacles=tuple(self._obstacle(each, answers.get(each.pod.uid)) for each in waiting),
            staying=tuple(staying),
        )

    def _order(self, resident: Resident) -> tuple[int, int, str]:
        pod = resident.pod
        slack = [
            budget.allowed - len(budget.taken)
            for budget in self._budgets.at(self._state.now.steady)
            if budget.means(pod.pod_class)
        ]
        return pod.priority, -min(slack, default=1 << 30), pod.key

    def _pass(
        self,
        waiting: list[Resident],
        clock: Clock,
        answers: dict[str, Answer],
        waited: dict[str, str],
    ) -> list[Departure]:
        """The pods that can go at a moment; answers of the others are kept."""
        gone = []
        for resident in waiting:
            pod = resident.pod
            answer = self._limiter.may_evict(pod, CAUSE, MOVER, clock)
            if not self._loses_data and resident.traits.local_storage:
                text = f"{pod.key} has data on its node, which would be lost"
                answer = Deny("LocalData", text)
            if why := gang.keeps(self._state.gangs.of(pod)):
                answer = Deny("GangStays", why)
            if isinstance(answer, Allow):
                target = self._landing.best(resident)
                if target >= 0:
                    self._leave(resident, target, clock)
                    name = self._state.node(target).name
                    gone.append(Departure(pod, clock.wall, name, waited.get(pod.uid, "")))
                    answers.pop(pod.uid, None)
                    continue
                answer = Deny("NoRoom", f"no other node takes {pod.key}")
            answers[pod.uid] = answer
            waited[pod.uid] = f"{answer.reason}: {answer.message}"
        return gone

    def _leave(self, resident: Resident, target: int, clock: Clock) -> None:
        pod, known = resident.pod, self._limiter.workloads
        self._limiter.begin(pod, CAUSE, MOVER, clock)
        self._limiter.accepted(pod, clock)
        self._limiter.pace.gone(pod.uid, clock.steady)
        self._landing.depart(resident, target)
        known.of(pod.namespace)
        known.drop(pod)
        replacement = dataclasses.replace(
            pod,
            name=f"{GHOST}{pod.name}",
            uid=f"{GHOST}{pod.uid}",
            node=self._state.node(target).name,
            created=moment.spell(clock.wall),
            ready=False,
        )
        known.put(replacement)
        self._coming.append((clock.wall + self._ready_seconds, pod.uid, replacement))

    def _next(self, clock: Clock, answers: dict[str, Answer]) -> float | None:
        """When anything changes next; ``None``: nothing does."""
        moments = [at for at, _, _ in self._coming]
        moments += [
            answer.until
            for answer in answers.values()
            if isinstance(answer, Deny) and answer.until is not None
        ]
        later = [at for at in moments if at > clock.wall]
        if not later or min(later) - self._state.now.wall > HORIZON:
            return None
        return min(later)

    def _later(self, clock: Clock, wall: float) -> Clock:
        """The clock at that moment, with the replacements that are up by then."""
        for at, uid, replacement in self._coming:
            if at <= wall:
                self._budgets.spare(uid)
                self._limiter.workloads.put(dataclasses.replace(replacement, ready=True))
        self._coming = [each for each in self._coming if each[0] > wall]
        return Clock(wall=wall, steady=clock.steady + wall - clock.wall)

    @staticmethod
    def _obstacle(resident: Resident, answer: Answer | None) -> DrainObstacle:
        if answer is None or isinstance(answer, Allow):
            return DrainObstacle(resident.pod, "", "")
        return DrainObstacle(resident.pod, answer.reason, answer.message)
