"""The members of one group that a cycle decides, and their counts by gang.

Covers: who leaves the queue for the cycle and in which order, how many are decided and bound.
Does not cover: deciding (``attempt``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from koordlet.scheduler.framework.queue import QueuePlace
from koordlet.scheduler.gangs.book import GangGroup
from koordlet.scheduler.gangs.gang_core import GangCore
from koordlet.scheduler.gangs.trial import FailedMember, GangTally, GroupTrial
from koordlet.scheduler.objects.pods import Pod


class GroupMembers:
    """The children of one group, as queue and pod cache have them."""

    def __init__(self, core: GangCore, group: GangGroup) -> None:
        self._core, self._group = core, group

    def waiting(self) -> list[Pod]:
        """The children without a node, whichever scheduler they name."""
        assumed = self._core.pod_cache.assumed
        return [
            pod
            for entry in self._group.entries
            for key, pod in entry.children.items()
            if key not in entry.bound
            and key not in assumed
            and not (pod.reserve_pod_of and self._reserved(pod))
        ]

    def past_gates(self) -> list[Pod]:
        """Those of them that are past the gates, in the order of the cycle."""
        entries = (self._core.queue.get(pod.key) for pod in self.waiting())
        past = [entry.pod for entry in entries if entry and entry.place is not QueuePlace.GATED]
        return self.ordered(past, 0.0)

    def take(self, first: Iterable[Pod], now: float) -> list[Pod]:
        """The members that are decided now; ``first`` have left the queue already."""
        queue, members = self._core.queue, {pod.key: pod for pod in first}
        for child in self.waiting():
            taken = queue.take(child.key) if child.key not in members else None
            if taken is not None:
                members[taken.key] = taken
        return self.ordered(members.values(), now)

    def ordered(self, pods: Iterable[Pod], now: float) -> list[Pod]:
        """Members in the order of the cycle."""

        def order(pod: Pod) -> tuple[int, float, float, str]:
            entry = self._core.queue.get(pod.key)
            index = pod.gang.index if pod.gang is not None else None
            return (
                -pod.priority,
                float("inf") if index is None else index,
                entry.first if entry is not None else now,
                pod.key,
            )

        return sorted(pods, key=order)

    def tallies(self, members: Iterable[Pod]) -> dict[str, GangTally]:
        """Counts by gang before these members are decided."""
        assumed, tallies = self._core.pod_cache.assumed, {}
        for entry in self._group.entries:
            waiting = [
                key
                for key, pod in entry.children.items()
                if (key in assumed or (pod.reserve_pod_of and self._reserved(pod)))
                and key not in entry.bound
            ]
            tallies[entry.key] = GangTally(entry, len(waiting), len(entry.bound))
        for pod in members:
            tallies[gang_key(pod)].left += 1
        return tallies

    def needs(self, members: Iterable[Pod]) -> dict[str, int]:
        """By gang: how many of the members must be decided."""
        tallies = self.tallies(members).values()
        return {tally.entry.key: tally.needed(self._group) for tally in tallies}

    def enough(self) -> bool:
        """Whether every gang has enough that are decided or bound."""
        return all(tally.enough(self._group) for tally in self.tallies(()).values())

    def too_few(self, members: Sequence[Pod]) -> GroupTrial | None:
        """A trial that failed as too few take part; names a member that waits before the queue."""
        tallies = self.tallies(members).values()
        if all(tally.enough(self._group, more=tally.left) for tally in tallies):
            return None
        taking_part = {pod.key for pod in members}
        absent = (pod for pod in self.waiting() if pod.key not in taking_part)
        queued = ((pod, self._core.queue.get(pod.key)) for pod in absent)
        # One without a reason has left the queue, for a cycle that pauses.
        failed = [
            FailedMember(pod, each.why, never=True) for pod, each in queued if each and each.why
        ]
        return GroupTrial(failed=failed)

    def _reserved(self, pod: Pod) -> bool:
        """Whether a reservation as a member has its room."""
        return row_of(self._core, pod) is not None


def row_of(core: GangCore, pod: Pod) -> int | None:
    """The row of a child's node; -1: the cluster has no such node; ``None``: it has none."""
    if pod.reserve_pod_of:
        info = core.reservations.of(pod)
        return info.row if info is not None and info.row >= 0 else None
    placed = core.pod_cache.get(pod.key)
    return None if placed is None else core.pod_cache.columns.rows.get(placed.node, -1)


def gang_key(pod: Pod) -> str:
    """The gang of a member."""
    return pod.gang.key if pod.gang is not None else ""
