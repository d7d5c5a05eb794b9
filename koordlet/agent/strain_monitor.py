"""Measures how long latency-sensitive work waits, and whether that is a reason to act now.

Covers: which groups are watched, the readings of the fast lane, asking the policy.
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


class StrainMonitor:
    """Watches the latency-sensitive work of one host."""

    def __init__(
        self,
        host: root.HostRoot,
        clock: Callable[[], machine.Now],
        children: Callable[[str], Iterable[str]],
        *,
        moves: bool,
    ) -> None:
        self._clock = clock
        self._reader = strain.StrainReader(host, children)
        #: Whether work goes on there; in a recording nothing waits.
        self._moves = moves
        self._followed: tuple[object, ...] = ()

    def follow(self, now: snapshot.Snapshot) -> None:
        """Watch these workloads."""
        known = (now.layout, now.pods)
        if [*map(id, known)] == [*map(id, self._followed)]:
            return
        self._followed = known
        if not self._moves:
            return
        plus, minus = _used_by(now.pods, groups.places(now))
        self._reader.follow(now.layout, plus=plus, minus=minus, watched=_waiting(now.pods))

    def taken(self, at: float) -> felt.Strain | None:
        """Return the newest reading, for a pass."""
        strained = self._reader.look(at)
        self._reader.passed()
        return strained

    def urgent(self, limited: cpu_suppress.State) -> bool:
        """Whether a limit would be cut now. Without a limit, nothing is read."""
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
    """List groups whose use is latency-sensitive, and those to subtract; a tree counts as one."""
    plus: dict[str, None] = {}
    minus: dict[str, None] = {}
    for each in pods:
        if each.group is None:
            continue
        tree = grouppath.parse(each.group).tree if each.kube_qos is not None else None
        if tree is not None:
            plus[tree.root] = None
            minus[tree.tier(qos.KubeQos.BEST_EFFORT)] = None
        elif not groups.is_best_effort(each):
            plus[each.group] = None
    there = {place.group for place in places}
    inside = (path for path in minus if path in there)
    outer = [path for path in plus if plus.keys().isdisjoint(cgroup.ancestors(path))]
    return outer, list(inside)


def _waiting(pods: Sequence[pod.Pod]) -> Sequence[str]:
    """List the groups whose threads are latency-sensitive."""
    return [
        each.group
        for each in pods
        if each.group is not None and each.active and not groups.is_best_effort(each)
    ]
