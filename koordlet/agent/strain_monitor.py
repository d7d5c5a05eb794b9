"""What latency-sensitive work feels, and whether that is a reason to act now.

Covers: which groups are listened to, the looks of the fast lane, asking the policy.
Does not cover: reading (``host.counters.strain``), the answer
(``policy.best_effort.cpu_suppress``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from koordlet.host import machine
from koordlet.host.counters import strain
from koordlet.host.fs import root
from koordlet.model import cgroup, grouppath, pod, qos, snapshot
from koordlet.model import strain as felt
from koordlet.policy.best_effort import cpu_suppress, groups


class Feeling:
    """Listens for one line."""

    def __init__(
        self,
        host: root.HostRoot,
        clock: Callable[[], machine.Now],
        children: Callable[[str], Iterable[str]],
    ) -> None:
        self._clock = clock
        self._reader = strain.StrainReader(host, children)
        #: Whether anything happens there: in a recording nobody waits.
        self.moves = host.live
        self._followed: tuple[object, ...] = ()

    def follow(self, now: snapshot.Snapshot) -> None:
        """Listen for these workloads."""
        known = (now.layout, now.pods)
        if [*map(id, known)] == [*map(id, self._followed)]:
            return
        self._followed = known
        if not self.moves:
            return
        places = groups.places(now)
        plus, minus = _used_by(now.pods, places)
        self._reader.follow(
            now.layout,
            plus=plus,
            minus=minus,
            best_effort=[one.group for one in places],
            watched=_waiting(now.pods),
        )

    def taken(self, at: float) -> felt.Strain | None:
        """The newest, for a pass."""
        found = self._reader.look(at)
        self._reader.passed()
        return found

    def urgent(self, limited: cpu_suppress.State) -> bool:
        """Whether a limit would be cut now. Nobody looks while there is none."""
        if limited.alarm_milli is None:
            return False
        felt = self._reader.look(self._clock().at)
        return felt is not None and cpu_suppress.urgent(felt, limited)

    def close(self) -> None:
        """Give all descriptors back."""
        self._reader.close()


def _used_by(
    pods: Sequence[pod.Pod], places: Sequence[groups.Place]
) -> tuple[Sequence[str], Sequence[str]]:
    """Groups whose use is latency-sensitive, and those to be taken off: a tree counts as one."""
    plus: dict[str, None] = {}
    minus: dict[str, None] = {}
    for one in pods:
        if one.group is None:
            continue
        tree = grouppath.parse(one.group).tree if one.kube_qos is not None else None
        if tree is not None:
            plus[tree.root] = None
            minus[tree.tier(qos.KubeQos.BEST_EFFORT)] = None
        elif not groups.is_best_effort(one):
            plus[one.group] = None
    there = {place.group for place in places}
    inside = (path for path in minus if path in there)
    outer = [path for path in plus if plus.keys().isdisjoint(cgroup.ancestors(path))]
    return outer, list(inside)


def _waiting(pods: Sequence[pod.Pod]) -> Sequence[str]:
    """Groups whose threads are latency-sensitive."""
    return [
        one.group
        for one in pods
        if one.group is not None and one.active and not groups.is_best_effort(one)
    ]
