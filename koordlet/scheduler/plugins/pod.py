"""SchedulingGates: the plugin that looks at the pod alone.

Covers: the message of a pod with gates. Does not cover: where pods with gates wait
(``scheduler.framework.queue``).
"""

from __future__ import annotations

from koordlet.scheduler import framework
from koordlet.scheduler.objects.pods import Pod


class SchedulingGates(framework.Plugin):
    """Every gate must be removed first."""

    name = "SchedulingGates"

    def pre_enqueue(self, pod: Pod) -> str:
        return f"waiting for scheduling gates: [{' '.join(pod.gates)}]" if pod.gates else ""
