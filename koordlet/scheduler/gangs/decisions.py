"""The decisions about the members of a group, one after another, and taking them back.

Covers: where each member goes among those before it, pauses, the count of what is enough.
Does not cover: who takes part (``group_members``), what follows (``attempt``).

Rules:
1. After each ``TURN`` decided members other pods have theirs. What changes meanwhile is taken in:
   members that come and go, and nodes, on which decided members are judged again.
2. Room that others have met during a pause is given back with an event, as a pod's that leaves.
3. What a group gives back of its quotas wakes those that met it, and never the group: it would be
   tried again and again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace

from koordlet.scheduler import framework
from koordlet.scheduler.framework.queue import QueuePlace
from koordlet.scheduler.gangs import preemption
from koordlet.scheduler.gangs.book import GangGroup
from koordlet.scheduler.gangs.gathering import Gathering
from koordlet.scheduler.gangs.group_members import GroupMembers, gang_key
from koordlet.scheduler.gangs.held_room import HeldRoom, stays, take_from_node
from koordlet.scheduler.gangs.trial import FailedMember, GroupTrial, assume, take_back
from koordlet.scheduler.loop.outcomes import Bind, Hold, Refusal
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.objects.pods import Pod, PodClass

#: Members that are decided before other pods have a turn.
TURN = 256


class GroupDecisions:
    """The decisions about one group in one cycle."""

    def __init__(
        self,
        held: HeldRoom,
        group: GangGroup,
        now: float,
        tolerated: float,
        gathering: Gathering | None = None,
    ) -> None:
        self._core, self._book, self._held, self._now = held.core, held.book, held, now
        self.group, self.members = group, GroupMembers(held.core, group)
        #: Of its minimum, what each gang may lack while its decided members wait.
        self._tolerated = tolerated
        #: Where members go that are gathered; ``None``: none is.
        self._gathering = gathering
        #: The nodes outside of the topology domain that is tried.
        self._outside: Mapping[int, framework.Verdict] = {}
        #: Why members of a class and gang are never tried, empty where they are.
        self._never: dict[tuple[PodClass, str], str] = {}
        #: By class: the version of the columns at which no node took it, and what was said.
        self._unplaced: dict[PodClass, tuple[int, FailedMember]] = {}
        #: With pauses: the nodes of decided members as they were decided on, members that came
        #: meanwhile, and those whose room others need.
        self._nodes: dict[str, Node | None] = {}
        self.late: list[Pod] = []
        self.yielding: set[str] = set()

    @property
    def gathers(self) -> bool:
        """Whether members are gathered in the network's tree."""
        return self._gathering is not None

    def confine(self, outside: Mapping[int, framework.Verdict]) -> None:
        """Look at the other nodes alone; what failed elsewhere may fit there."""
        self._outside = outside
        self._unplaced.clear()

    def place(self, members: list[Pod]) -> GroupTrial:
        """Decide without a pause, those that are gathered at their place of the network's tree."""
        if self._gathering is None:
            return self.decide(members)
        return self._gathering.attempt(self, self.group, members, self.members.needs(members))

    def decide(self, members: Sequence[Pod]) -> GroupTrial:
        """Decide one member after another without a pause; what is decided is assumed."""
        trial = GroupTrial()
        deque(self.steps(trial, members, pausing=False), maxlen=0)
        return trial

    def fits_without(self, pods: Iterable[Pod]) -> bool:
        """Whether the group would be complete if these assumed pods were not there."""
        away = preemption.Away(self._core.pod_cache.columns, self._core.quotas)
        try:
            away.leave(pods)
            trial = self.place(self.members.past_gates())
            self.take_back(trial)
        finally:
            away.restore()
        return trial.enough

    def steps(
        self, trial: GroupTrial, members: Sequence[Pod], *, pausing: bool
    ) -> Generator[None, None, None]:
        """Decide one member after another, with pauses (rule 1)."""
        columns, group, left = self._core.pod_cache.columns, self.group, deque(members)
        tallies = self.members.tallies(left)
        while left:
            pod = left.popleft()
            tally = tallies[gang_key(pod)]
            tally.left -= 1
            outcome = self._decide(pod)
            if not isinstance(outcome, FailedMember):
                trial.binds.append(outcome)
                tally.decided += 1
                if pausing:
                    self._nodes[pod.key] = columns.nodes[columns.rows[outcome.node]]
                    if left and not len(trial.binds) % TURN:
                        trial.visible = True
                        yield
                        left = deque(self._resumed(trial, left))
                        columns, tallies = self._core.pod_cache.columns, self.members.tallies(left)
                continue
            if not trial.failed:
                trial.before = len(trial.binds)
            trial.failed.append(outcome)
            beyond = tally.missing(group, more=tally.left) > self._tolerated
            if outcome.error or beyond:
                trial.skipped = list(left)
                return
        patient = len(trial.binds) > 1 and all(
            isinstance(bind, Bind) and bind.patience for bind in trial.binds
        )
        counted = tallies.values()
        trial.enough = not patient and all(tally.enough(group) for tally in counted)
        tolerable = all(tally.missing(group) <= self._tolerated for tally in counted)
        trial.waits = not trial.enough and bool(trial.failed) and tolerable

    def _resumed(self, trial: GroupTrial, left: Iterable[Pod]) -> list[Pod]:
        """Who is left to be decided after a pause; none where the group is another one now."""
        core, entry = self._core, self._book.get(self.group.entries[0].key)
        queued = ((pod, core.queue.get(pod.key)) for pod in left)
        still = [known.pod for _, known in queued if known and known.place is QueuePlace.TAKEN]
        if entry is None or self._book.group(entry) is not self.group:
            trial.outdated, trial.skipped = True, [*still, *self.late]
            trial.binds[:] = [bind for bind in trial.binds if core.awaits(bind.pod)]
            return []
        self._unplaced.clear()
        again, binds = self._held.misfits(self.group, self._now), []
        for bind in trial.binds:
            known = core.pod_cache.assumed.get(bind.pod.key)
            if known is None or not core.awaits(bind.pod):
                continue
            if known.key in self.yielding or not stays(core, known, self._nodes[known.key]):
                take_from_node(core, known, self._now)
                again.append(known)
            else:
                binds.append(bind)
        trial.binds[:] = binds
        self.yielding.clear()
        late, self.late = self.late, []
        members = self.members.take([*again, *still, *late], self._now)
        for pod in members:
            core.nominated.drop(pod.key)
        return members

    def why_never(self, pod: Pod) -> str:
        """Why a member is never tried; empty: it is."""
        kind = pod.pod_class, gang_key(pod)
        why = self._never.get(kind)
        if why is None:
            why = self._never[kind] = self._core.why_never(pod)
        return why

    def _decide(self, pod: Pod) -> Bind | Hold | FailedMember:
        core = self._core
        if why := self.why_never(pod):
            return FailedMember(pod, why, never=True)
        gathered = None if self._gathering is None else self._gathering.row(pod)
        row = self._row(pod) if gathered is None else gathered
        if isinstance(row, FailedMember):
            return row
        core.decisions.ranking(core.cycles[pod.pod_class.scheduler], pod, self._now)
        outcome = assume(core, pod, row)
        if isinstance(outcome, Refusal):
            if self._gathering is not None and gathered is not None:
                return self._gathering.give_up(pod, outcome.message)
            error = outcome.reason == "SchedulerError"
            return FailedMember(pod, outcome.message, by=outcome.by, error=error)
        return outcome

    def _row(self, pod: Pod) -> int | FailedMember:
        """The best node of a member that goes anywhere."""
        core, cycle = self._core, self._core.cycles[pod.pod_class.scheduler]
        known = self._unplaced.get(pod.pod_class)
        if known is not None and known[0] == core.pod_cache.columns.version:
            # An equal has failed, and nothing has changed since.
            return replace(known[1], pod=pod)
        row, promised = core.choose(cycle, pod, self._outside)
        if row >= 0:
            return row
        failure = cycle.failure(pod, promised)
        failed = FailedMember(pod, failure.message, failure, failure.by)
        self._unplaced[pod.pod_class] = core.pod_cache.columns.version, failed
        return failed

    def gives_room(self, pod: Pod) -> bool:
        """Whether a pod was decided before the pause; it is decided anew after it."""
        given = pod.key in self._nodes and self._core.awaits(pod)
        if given:
            self.yielding.add(pod.key)
        return given

    def take_back(self, trial: GroupTrial) -> None:
        """Undo all decisions; their quotas have no more room for the group itself (rule 3)."""
        quotas = self._core.quotas
        relieved = quotas.book.relieved
        for bind in reversed(trial.binds):
            self._take_back(bind, visible=trial.visible)
        if trial.visible:
            quotas.settle(self._now)
        quotas.book.take_relief(left=relieved)

    def _take_back(self, bind: Bind | Hold, *, visible: bool) -> None:
        if visible and isinstance(bind, Bind):
            take_from_node(self._core, bind.pod, self._now)
        else:
            take_back(self._core, bind.pod)
