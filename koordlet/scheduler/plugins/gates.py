"""SchedulingGates: a pod with gates is not tried.

Covers: the message. Does not cover: where such pods wait (``scheduler.framework.queue``).
"""

from __future__ import annotations

from koordlet.scheduler.framework import Plugin
from koordlet.scheduler.objects.pods import Pod


class SchedulingGates(Plugin):
    """Every gate must be removed first."""

    name = "SchedulingGates"

    def pre_enqueue(self, pod: Pod) -> str:
        return f"waiting for scheduling gates: [{' '.join(pod.gates)}]" if pod.gates else ""
