"""Room that is held for decided members which wait for the rest of their group.

Covers: who holds room since when and until when, how much of the cluster that may be, giving it
back. Does not cover: deciding, and which groups wait (``attempt``).

Rules:
1. A member that waits is assumed on its node: what it takes is nobody else's. It holds its room
   until the waiting time of its gang has passed since it was decided.
2. All waiting members together hold at most a share of each resource of the cluster.
3. Room is held in memory alone: after a restart the members are decided anew.
4. A member that the store has bound, deleted or replaced holds nothing here any more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from koordlet.model.record import dataclass
from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.gangs import admission
from koordlet.scheduler.gangs.book import GangBook, GangGroup
from koordlet.scheduler.gangs.gang_core import GangCore
from koordlet.scheduler.loop.outcomes import Bind, Refusal
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.objects.pods import Pod

#: What members wait for that fit and were taken back: their siblings.
GATE = "Coscheduling"
#: Seconds in which a group that lost its room is not tried: others find it first.
_PAUSE = 10.0


@dataclass(frozen=True, slots=True)
class HeldMember:
    """A decided member that waits."""

    bind: Bind
    gang: str
    #: Its node as it was decided on.
    node: Node | None
    #: Its place in the order of decisions, and how long it waits.
    serial: int
    seconds: float
    until: float


class HeldRoom:
    """All waiting members, by gang."""

    def __init__(self, core: GangCore, book: GangBook) -> None:
        self.core, self.book = core, book
        self._members: dict[str, HeldMember] = {}
        self._by_gang: dict[str, dict[str, HeldMember]] = {}
        #: Members that must give their room back before anything else is decided, and why.
        self.leaving: dict[str, str] = {}
        self._serial = 0
        self._earliest = math.inf

    def __bool__(self) -> bool:
        return bool(self._members)

    def __contains__(self, key: str) -> bool:
        return key in self._members

    def put(self, bind: Bind, gang: str, seconds: float, now: float) -> None:
        """Hold the room of a member that is assumed."""
        columns = self.core.pod_cache.columns
        node, self._serial = columns.nodes[columns.rows[bind.node]], self._serial + 1
        member = HeldMember(bind, gang, node, self._serial, seconds, now + seconds)
        self._members[bind.pod.key] = self._by_gang.setdefault(gang, {})[bind.pod.key] = member
        self._earliest = min(self._earliest, member.until)

    def get(self, key: str) -> HeldMember | None:
        """A waiting member."""
        return self._members.get(key)

    def drop(self, key: str) -> None:
        """Hold a member's room no more; whoever calls decides what becomes of it."""
        self.leaving.pop(key, None)
        member = self._members.pop(key, None)
        if member is not None:
            several = self._by_gang[member.gang]
            del several[key]
            if not several:
                del self._by_gang[member.gang]

    def of(self, group: GangGroup) -> list[HeldMember]:
        """The waiting members of a group, in the order of their decisions (rule 4)."""
        if not self._members:
            return []
        several = (self._by_gang.get(entry.key, {}).values() for entry in group.entries)
        members = [member for own in several for member in own]
        for member in members:
            if not self.core.awaits(member.bind.pod):
                self.drop(member.bind.pod.key)
        living = (member for member in members if member.bind.pod.key in self._members)
        return sorted(living, key=lambda member: member.serial)

    def groups(self) -> Iterator[GangGroup]:
        """The groups with waiting members, each once."""
        seen = set()
        for key in list(self._by_gang):
            group = self.book.group_of(key)
            if group is not None and id(group) not in seen:
                seen.add(id(group))
                yield group

    def since(self, group: GangGroup) -> float:
        """The place of a group in the order of decisions; without waiting members the last."""
        return min((member.serial for member in self.of(group)), default=math.inf)

    def pods(self, group: GangGroup) -> list[Pod]:
        """The waiting members of a group as they are assumed."""
        assumed = self.core.pod_cache.assumed
        return [assumed[member.bind.pod.key] for member in self.of(group)]

    def due(self, now: float) -> list[HeldMember]:
        """The members whose time has passed; their groups are not tried at once."""
        if now < self._earliest:
            return []
        due = [member for member in self._members.values() if member.until <= now]
        for group in filter(None, (self.book.group_of(member.gang) for member in due)):
            group.denied_until = max(group.denied_until, now + _PAUSE)
        later = (member.until for member in self._members.values() if member.until > now)
        self._earliest = min(later, default=math.inf)
        return due

    def within(self, pods: Iterable[Pod], share: float) -> set[str]:
        """Which of these members, in their order, may hold their room (rule 2)."""
        columns = self.core.pod_cache.columns
        limit = columns.allocatable[:, : columns.size].sum(axis=1) * share
        used, held = np.zeros(limit.size), set()
        waiting = [member.bind.pod for member in self._members.values()]
        for pod in (*waiting, *pods):
            vector, _ = columns.vectors(pod.pod_class)
            after = used[: vector.size] + vector
            if pod.key in self._members or not (after > limit[: vector.size])[vector > 0].any():
                used[: vector.size] = after
                held.add(pod.key)
        return held

    def give_back(self, member: HeldMember, now: float) -> Pod | None:
        """Take a member from its node; it as it is now, ``None`` where it was not there."""
        self.drop(member.bind.pod.key)
        return take_from_node(self.core, member.bind.pod, now)

    def lose(self, group: GangGroup, message: str, now: float) -> list[Refusal]:
        """Let a group lose all its room, and others find it first."""
        group.denied_until = max(group.denied_until, now + _PAUSE)
        refusals = (self.give_up(member, message, now) for member in self.of(group))
        return [refusal for refusal in refusals if refusal is not None]

    def give_up(self, member: HeldMember, message: str, now: float) -> Refusal | None:
        """Take a member from its node and let it wait as others do, before the queue or in it."""
        pod = self.give_back(member, now)
        if pod is None:
            return None
        if pod.terminating or pod.gates or admission.refusal(self.book, pod):
            self.core.enqueue(pod, now)
        else:
            self.core.queue.failed(pod, now, frozenset((GATE,)))
        return Refusal(pod, message)

    def misfits(self, group: GangGroup, now: float) -> list[Pod]:
        """Members whose node has changed so that they fit there no more; they have left it."""
        gone = []
        for member in self.of(group):
            pod = self.core.pod_cache.assumed[member.bind.pod.key]
            if not stays(self.core, pod, member.node):
                gone.append(self.give_back(member, now))
        return [pod for pod in gone if pod is not None]


def take_from_node(core: GangCore, pod: Pod, now: float) -> Pod | None:
    """Undo the assumption of a pod that others may have met; ``None``: it was not there."""
    if not core.awaits(pod):
        return None
    known = core.pod_cache.assumed[pod.key]
    core.assumptions.take_back(known)
    core.wake(ClusterEvent(ActionType.POD_GONE, pod=known), now)
    return known


def stays(core: GangCore, pod: Pod, node: Node | None) -> bool:
    """Whether an assumed pod fits on its node, which was ``node`` when it was decided."""
    columns = core.pod_cache.columns
    row = columns.rows.get(pod.node)
    if row is None or pod.key not in columns.pods[row]:
        return False
    if columns.nodes[row] is node:
        return True
    columns.remove(pod)
    try:
        return core.cycles[pod.pod_class.scheduler].verdict(pod, row) is None
    finally:
        columns.place(pod, row)
