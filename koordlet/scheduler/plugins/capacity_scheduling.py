"""CapacityScheduling: the other meaning of ElasticQuota, where a namespace is the quota.

Covers: the plugin's name. Does not cover: what its quotas admit (``scheduler.quotas.capacity``),
who has to go for a pod (``scheduler.loop.capacity_scheduler``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.plugins.elastic_quota import ElasticQuotaPlugin


class CapacityScheduling(ElasticQuotaPlugin):
    """Quotas of scheduler-plugins' meaning; the extension points are the same."""

    name = "CapacityScheduling"

    def __init__(self, args: Mapping[str, Any]) -> None:
        stray = sorted(args.keys() - {"apiVersion", "kind"})
        if stray:
            raise BadObjectError(f"{self.name} has no arguments; remove {', '.join(stray)}")
        super().__init__({})
