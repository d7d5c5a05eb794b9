"""Plugins that look at the pod alone: SchedulingGates, DynamicResources.

Covers: the message of a pod with gates; what DynamicResources says where preemption is tried.
Does not cover: where pods with gates wait (``scheduler.framework.queue``), resource claims: a pod
that has one is refused by name (``scheduler.objects.unserved``).
"""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.scheduler import framework
from koordlet.scheduler.objects.pods import Pod


class SchedulingGates(framework.Plugin):
    """Every gate must be removed first."""

    name = "SchedulingGates"

    def pre_enqueue(self, pod: Pod) -> str:
        return f"waiting for scheduling gates: [{' '.join(pod.gates)}]" if pod.gates else ""


class DynamicResources(framework.Plugin):
    """No pod that is tried has claims: it is said before preemption, as by kube-scheduler."""

    name = "DynamicResources"

    def post_filter(
        self, pod: Pod, refused: Mapping[str, framework.Verdict]
    ) -> framework.Rescue | None:
        return None if pod.reserve_pod_of else framework.Rescue("no new claims to deallocate")
