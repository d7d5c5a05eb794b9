"""What becomes of each member after a cycle: bound with the others, waiting, or refused.

Covers: outcomes, and the place of each member in the queue. Does not cover: deciding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from koordlet.kubeapi.pod_groups import MatchPolicy
from koordlet.scheduler.gangs import rejection
from koordlet.scheduler.gangs.book import GangGroup
from koordlet.scheduler.gangs.gang import Obstacle
from koordlet.scheduler.gangs.held_room import GATE, HeldRoom
from koordlet.scheduler.gangs.trial import FailedMember, GroupTrial
from koordlet.scheduler.loop.outcomes import Bind, Hold, Outcome, Refusal
from koordlet.scheduler.objects.pods import Pod

_NONE: Mapping[str, str] = MappingProxyType({})
#: What those wait for that nothing but their group refuses: of the peers' gangs, of native ones.
_GATES = frozenset((GATE,)), frozenset(("GangScheduling",))


class GroupOutcomes:
    """The outcomes of one cycle."""

    def __init__(self, held: HeldRoom, group: GangGroup, now: float) -> None:
        self._core, self._book, self._held = held.core, held.book, held
        self._group, self._now = group, now

    def release(self, trial: GroupTrial) -> list[Outcome]:
        """Let the decided members go, and refuse the others as ordinary pods."""
        binds: list[Bind | Hold] = []
        for member in self._held.of(self._group):
            pod, bind = self._core.pod_cache.assumed[member.bind.pod.key], member.bind
            binds.append(Bind(pod, bind.node, bind.marks, bind.patience, bind.plugins))
            self._held.drop(pod.key)
        binds += trial.binds
        self._group.obstacle, marks = trial.obstacle, rejection.marks(self._group, len(binds))
        if binds:
            self._book.satisfy(self._group.entries[0])
        outcomes: list[Outcome] = []
        for decided in binds:
            own = {**decided.marks, **marks}
            if isinstance(decided, Hold):
                outcomes.append(Hold(decided.pod, decided.node, own))
            else:
                # One plugin's consent is enough: others would wait for a group that is complete.
                patience = 0.0 if len(binds) > 1 else decided.patience
                outcomes.append(Bind(decided.pod, decided.node, own, patience, decided.plugins))
            self._core.keep(decided.pod, self._now)
        outcomes += [self._beyond(failed) for failed in trial.failed]
        return outcomes

    def _beyond(self, failed: FailedMember) -> Refusal:
        """Refuse a member beyond the minimum; it may preempt where the gang has enough with it."""
        core, pod = self._core, failed.pod
        if failed.never:
            core.nominated.put(pod, "")
            core.queue.gate(pod, failed.message, self._now)
            return Refusal(pod, failed.message)
        entry = self._book.of(pod)
        gang = entry.gang if entry is not None else None
        alone = gang is None or gang.match_policy is not MatchPolicy.ONLY_WAITING
        if alone and failed.failure is not None:
            cycle = core.cycles[pod.pod_class.scheduler]
            return core.refuse(cycle, pod, failed.failure, self._now)
        core.nominated.put(pod, "")
        core.queue.failed(pod, self._now, failed.by)
        return Refusal(pod, failed.message)

    def refused(
        self,
        members: Sequence[Pod],
        trial: GroupTrial,
        message: str,
        texts: Mapping[str, str] = _NONE,
        *,
        error: bool = False,
        places: Mapping[str, str] = _NONE,
    ) -> list[Outcome]:
        """Refuse every member but those whose room is held; all have the backoff of the most tried.

        ``texts``: messages of single members. ``places``: the nodes that they are nominated for.
        """
        self._group.obstacle = trial.obstacle or Obstacle(members[0].key, message, error)
        queue, nominated = self._core.queue, self._core.nominated
        held = self._held or frozenset[str]()
        outcomes: list[Outcome] = []
        failed = {each.pod.key: each for each in trial.failed}
        entries = [entry for pod in members if (entry := queue.get(pod.key)) is not None]
        attempts = max((entry.attempts for entry in entries), default=1)
        erred = error or any(each.error for each in trial.failed)
        reason = "SchedulerError" if erred else "Unschedulable"
        for pod in members:
            text, its = texts.get(pod.key, message), failed.get(pod.key)
            if its is not None and its.never:
                self._core.nominated.put(pod, "")
                queue.gate(pod, its.message, self._now)
                outcomes.append(Refusal(pod, its.message))
                continue
            if pod.key in held:
                outcomes.append(Refusal(pod, text))
                continue
            native = pod.gang is not None and pod.gang.native
            queue.failed(pod, self._now, its.by if its is not None and its.by else _GATES[native])
            node = places.get(pod.key, "")
            nominated.put(pod, node)
            outcomes.append(Refusal(pod, text, reason, node=node))
        for entry in entries:
            entry.attempts = attempts
        return outcomes
