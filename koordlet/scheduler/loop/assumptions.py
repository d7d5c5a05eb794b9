"""Assumed pods: a chosen node, with everything that plugins reserve there.

Covers: making an assumption and taking it back. Does not cover: choosing the node, the queue
(``core``), when the store shows the pod there (``pod_cache``).
"""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.scheduler.framework import RefusedError
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.framework.profile import Profile
from koordlet.scheduler.loop.outcomes import Bind, Refusal
from koordlet.scheduler.loop.pod_cache import PodCache
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.wire import BadObjectError


class Assumptions:
    """Makes assumptions and takes them back."""

    def __init__(self, pod_cache: PodCache, profiles: Mapping[str, Profile]) -> None:
        self._pod_cache, self._profiles = pod_cache, profiles

    def make(self, cycle: Cycle, pod: Pod, row: int) -> Bind | Refusal:
        """Assume a pod on a chosen node; nothing is assumed where a plugin refuses."""
        node, patience = self._pod_cache.columns.chosen(row).name, 0.0
        try:
            for plugin in cycle.preparing:
                plugin.prepare(pod, node)
            self._pod_cache.assume(pod, row)
        except (BadObjectError, RefusedError) as error:
            self.undo(pod)
            pod.node = ""
            return Refusal(pod, str(error), "SchedulerError")
        marks: dict[str, str] = {}
        for plugin in cycle.reserving:
            try:
                plugin.reserve(pod, node)
                marks |= plugin.marks(pod, node)
                patience = max(patience, plugin.permit(pod, node))
            except RefusedError as refusal:
                self.take_back(pod)
                return Refusal(pod, refusal.reason, by=frozenset((plugin.name,)))
        return Bind(pod, node, marks, patience, cycle.binding)

    def take_back(self, pod: Pod) -> None:
        """Undo ``make``.

        The pod leaves first: its reservation counts it out by what the pod still draws on.
        """
        self._pod_cache.leave(pod)
        self.undo(pod)
        pod.node = ""

    def undo(self, pod: Pod) -> None:
        """Undo what plugins have reserved for a pod."""
        its = self._profiles.get(pod.pod_class.scheduler)
        for plugin in reversed(its.plugins if its is not None else ()):
            plugin.unreserve(pod, pod.node)
