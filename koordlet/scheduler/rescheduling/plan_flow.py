"""The life of a MovePlan: one step, from what it is and what the cluster shows.

Covers: phases, reasons, what is to be done. Pure. Does not cover: the actions as values
(``plan_step``), finding moves (``make_room``), the life of a single move (``migration.flow``).

========= =========================================== ========= ================================
from      seen                                        to        reason
========= =========================================== ========= ================================
Pending   it has no moves: they are looked for        Pending
Pending   it has moves                                Checking
Checking  one of them could not be made now           Failed    what the check says
Checking  its mode is Shadow                          Checking  Shadow
Checking  its mode is Act                             Reserving
Reserving each move has room, and so has its pod      Moving
Reserving ``ROOM_SECONDS`` are over                   Failed    NoRoom
Moving    a move is over                              Moving    the next one may begin
Moving    all are over, or its pod has the room       Done
any       somebody else has changed what it is about  Failed    PodGone, PodMoved, BeneficiaryGone
Moving    a place is not held any more                Failed    PlaceGone
any       its pod has another node                    Aborted   NotNeeded
any       a move failed                               Failed    that of the job
any       its time is over                            Aborted   Timeout
any       somebody ends it                            Aborted   Aborted
========= =========================================== ========= ================================

Rules:
1. The status is written, and seen again, before anything is done by it; each action may be done
   twice: killed anywhere, a plan goes on where it was.
2. Room for all before anybody leaves: a job holds room and waits (``migration.job.WAITS``). Moves
   that come after others hold theirs once those are done.
3. One move after the other, those of a gang at once. Before each, what the plan is about is looked
   at again, and all moves that are to come: nobody leaves for a plan that cannot be done. The job
   that leads a gang is let go last: by then nobody else of it waits for the plan.
4. After its end jobs that have evicted nobody are ended, and all room is given back. A pod that has
   left is not brought back: its job goes on until the replacement is up, and its gang follows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from koordlet.scheduler.migration import cleanup, flow
from koordlet.scheduler.migration.job import MigrationJob, Phase
from koordlet.scheduler.rescheduling import move_unit, plan_places
from koordlet.scheduler.rescheduling.move_plan import MovePlan, PlanMove
from koordlet.scheduler.rescheduling.plan_status import MovePhase, MoveState, PlanPhase
from koordlet.scheduler.rescheduling.plan_step import (
    Action,
    EndJob,
    FindMoves,
    MakeJob,
    PlanPicture,
    PlanStep,
    ReleaseJob,
)

#: All room must be held within so many seconds.
ROOM_SECONDS = 60.0
_LONGEST = 1000


def step(plan: MovePlan, picture: PlanPicture, now: float) -> PlanStep:
    """One step of a plan."""
    made = _PlanStep(plan, picture, now)
    if plan.status.phase.over:
        return PlanStep(plan.status, tuple(made.leftovers()))
    if plan.aborts:
        return made.end(PlanPhase.ABORTED, "Aborted", "somebody ended the plan")
    if plan.fault:
        return made.fail("InvalidPlan", plan.fault)
    if plan.status.began and now - plan.status.began >= plan.ttl:
        why = f"{plan.ttl:g} s are over"
        message = f"{why}: {plan.status.message}" if plan.status.message else why
        return made.end(PlanPhase.ABORTED, "Timeout", message)
    phases = {
        PlanPhase.PENDING: made.pending,
        PlanPhase.CHECKING: made.checking,
        PlanPhase.RESERVING: made.reserving,
        PlanPhase.MOVING: made.moving,
    }
    return phases[plan.status.phase]()


def has_left(job: MigrationJob, picture: PlanPicture) -> bool:
    """Whether the pod of a job has left by it, or leaves, or that of the job which it follows."""
    leader = picture.job(job.leader) if job.leader else None
    return _leaves(job, picture) or (leader is not None and _leaves(leader, picture))


def _leaves(job: MigrationJob, picture: PlanPicture) -> bool:
    pod = picture.pod(job.pod)
    ends = pod is not None and pod.uid == job.pod.uid and pod.terminating
    return cleanup.has_evicted(job) or (ends and not job.waits)


class _PlanStep:
    """One step under way."""

    def __init__(self, plan: MovePlan, picture: PlanPicture, now: float) -> None:
        self._plan, self._picture, self._now = plan, picture, now
        states = plan.status.moves
        missing = len(plan.moves) - len(states)
        self._states = [*states, *[MoveState()] * missing]

    # Ends.

    def end(self, phase: PlanPhase, reason: str, message: str) -> PlanStep:
        """The plan is over."""
        return self._become(phase, reason, message)

    def fail(self, reason: str, message: str) -> PlanStep:
        """The plan has failed."""
        return self.end(PlanPhase.FAILED, reason, message)

    def _become(self, phase: PlanPhase, reason: str, message: str, *actions: Action) -> PlanStep:
        status = dataclasses.replace(
            self._plan.status,
            phase=phase,
            reason=reason,
            message=message,
            moves=tuple(self._states) if self._plan.status.began else (),
        )
        return PlanStep(status, actions if status == self._plan.status else ())

    def leftovers(self) -> Iterator[Action]:
        """What is to be given back (rule 4)."""
        for place in range(len(self._plan.moves)):
            job = self._picture.job(self._plan.job(place))
            ends = job is not None and job.active and not job.aborts
            if job is not None and ends and not has_left(job, self._picture):
                yield EndJob(job)
        yield from plan_places.unused(self._plan, self._picture)

    # What may have changed.

    def _changed(self, moves: tuple[PlanMove, ...]) -> tuple[str, str]:
        """What somebody else has changed: reason and sentence; empty: nothing."""
        for move in moves:
            pod = self._picture.pod(move.pod)
            if pod is None or move.pod.uid not in {"", pod.uid} or pod.terminating:
                return "PodGone", f"pod {move.pod} has left node {move.origin} by itself"
            if pod.node != move.origin:
                return "PodMoved", f"pod {move.pod} is on node {pod.node or 'none'} now"
        return "", ""

    # Steps.

    def pending(self) -> PlanStep:
        """Find the moves, where nobody has named them."""
        if not self._plan.moves:
            return PlanStep(self._plan.status, (FindMoves(),))
        return self._become(PlanPhase.CHECKING, "", f"to {self._plan.goal}")

    def checking(self) -> PlanStep:
        """Whether all moves could be made now; of a plan in shadow this is all."""
        plan = self._plan
        if (over := plan_places.over(self._plan, self._picture)) is not None:
            return self.end(*over)
        if plan.status.reason == "Shadow" and not plan.acts:
            return PlanStep(plan.status)
        reason, why = self._changed(plan.moves)
        if not reason:
            reason, why = self._picture.check(plan)
        if reason:
            return self.fail(reason, why)
        count, worth = _counted(len(plan.moves)), self._picture.worth(plan)
        if not plan.acts:
            text = f"{count} would {plan.goal}; set spec.mode to Act to make them"
            shown = self._become(PlanPhase.CHECKING, "Shadow", text)
            return PlanStep(dataclasses.replace(shown.status, worth=worth))
        began = dataclasses.replace(
            plan.status, began=self._now, phase=PlanPhase.RESERVING, worth=worth
        )
        text = f"room for {count} is looked for"
        return PlanStep(
            dataclasses.replace(began, reason="", message=text, moves=tuple(self._states))
        )

    def reserving(self) -> PlanStep:
        """Hold room for all before anybody leaves (rule 2)."""
        plan = self._plan
        reason, why = self._changed(plan.moves)
        if (over := plan_places.over(plan, self._picture)) is not None:
            return self.end(*over)
        if reason:
            return self.fail(reason, why)
        actions: list[Action] = []
        lacking = [
            *self._roomless(actions),
            *plan_places.lacking(plan, self._picture, actions),
        ]
        lost = next((s for s in self._states if s.phase is MovePhase.FAILED), None)
        if lost is not None:
            return self.fail("NoRoom", lost.message)
        if not lacking:
            return self._become(PlanPhase.MOVING, "", f"room for {_counted(len(plan.moves))}")
        if self._now - plan.status.began >= ROOM_SECONDS:
            refusal = self._picture.refusals.get(plan.uid, "")
            return self.fail("NoRoom", "; ".join(filter(None, (refusal, *lacking)))[:_LONGEST])
        return self._become(plan.status.phase, "", plan.status.message, *actions)

    def _roomless(self, actions: list[Action]) -> Iterator[str]:
        """The moves that have no room yet, but for those that come after others."""
        for place, move in enumerate(self._plan.moves):
            if move.after:
                continue
            job = self._picture.job(self._plan.job(place))
            if job is None:
                actions.append(MakeJob(place))
            else:
                self._see(place, job)
            if job is None or not job.status.node:
                why = "" if job is None else job.status.message
                yield _of(move, why or f"no room on node {move.target} yet")

    def moving(self) -> PlanStep:
        """Let one move after the other begin, and those of a gang at once (rule 3)."""
        for several in move_unit.places(move.gang for move in self._plan.moves):
            left = [n for n in several if self._states[n].phase is not MovePhase.DONE]
            if left and (made := self._unit(left)) is not None:
                return made
        return self._arrived()

    def _unit(self, places: list[int]) -> PlanStep | None:
        """A move, or those of a gang that are not done; ``None``: they are now."""
        plan = self._plan
        move = plan.moves[places[0]]
        text = f"move {places[0] + 1} of {len(plan.moves)}: {move.pod}"
        if move.gang:
            text = f"{len(places)} of {len(plan.moves)} moves: gang {move.gang}"
        jobs = {place: self._picture.job(plan.job(place)) for place in places}
        if any(job is None or job.waits for job in jobs.values()):
            if (over := self._stops()) is not None:
                return self.end(*over)
            # Nobody leaves for a plan that cannot be done: all that are to come are looked at.
            places = [
                n for n, state in enumerate(self._states) if state.phase is not MovePhase.DONE
            ]
        for place in places:
            if (failure := self._failure(place)) is not None:
                return self.fail(*failure)
        for place, job in jobs.items():
            if job is None:
                return self._become(PlanPhase.MOVING, "", text, MakeJob(place))
        active = [job for job in jobs.values() if job is not None and job.active]
        waiting = [job.status.message for job in active if job.status.reason == "FailedEvict"]
        # The one that leads is the first: it is let go last.
        actions = [ReleaseJob(job) for job in reversed(active) if job.waits]
        text = ": ".join((text, *waiting[:1]))
        return self._become(PlanPhase.MOVING, "", text, *actions) if active else None

    def _stops(self) -> tuple[PlanPhase, str, str] | None:
        """Why the next move is not made: the room is not needed, or not all there any more."""
        over = plan_places.over(self._plan, self._picture)
        why = "" if over is not None else plan_places.lost(self._plan, self._picture)
        return (PlanPhase.FAILED, "PlaceGone", why) if why else over

    def _failure(self, place: int) -> tuple[str, str] | None:
        """Why a move cannot be made any more: reason and sentence."""
        move, job = self._plan.moves[place], self._picture.job(self._plan.job(place))
        if job is None or job.waits:
            reason, why = self._changed((move,))
            if reason:
                return reason, why
        if job is None:
            comes = move.after and self._states[place].phase is MovePhase.WAITING
            return None if comes else ("JobGone", _of(move, "somebody deleted its job"))
        self._see(place, job)
        if job.status.phase.over and job.status.phase is not Phase.SUCCEEDED:
            return job.status.reason, _of(move, job.status.message)
        return None

    def _arrived(self) -> PlanStep:
        """All moves are made: its pod takes the room."""
        plan, over = self._plan, plan_places.over(self._plan, self._picture)
        if plan.pod is None:
            made = f"room for {plan.wanted} was made on node {plan.node}"
            emptied = f"node {plan.node} has no pods that could move"
            return self.end(PlanPhase.DONE, "", made if plan.room else emptied)
        if over is not None:
            return self.end(*over)
        return self._become(PlanPhase.MOVING, "", f"{plan.wanted} waits for its place")

    def _see(self, place: int, job: MigrationJob) -> None:
        """The state of a move, by its job."""
        status = job.status
        phase = MovePhase.WAITING
        if status.phase is Phase.SUCCEEDED:
            phase = MovePhase.DONE
        elif status.phase.over:
            phase = MovePhase.FAILED
        elif _holds(job, flow.BOUND):
            phase = MovePhase.REPLACED
        elif status.condition(flow.EVICTION) is not None:
            phase = MovePhase.EVICTING
        elif status.node:
            phase = MovePhase.RESERVED
        self._states[place] = MoveState(
            phase=phase,
            job=job.name,
            node=status.node,
            replacement="" if status.pod is None else str(status.pod),
            message=status.message if phase is MovePhase.FAILED else "",
        )


def _holds(job: MigrationJob, kind: str) -> bool:
    condition = job.status.condition(kind)
    return condition is not None and condition.status


def _of(move: PlanMove, text: str) -> str:
    return f"{move.pod}: {text}"


def _counted(count: int) -> str:
    return "1 move" if count == 1 else f"{count} moves"
