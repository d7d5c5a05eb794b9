"""``cpuQOS``: a pod's own group identity and idle scheduling."""

from __future__ import annotations

from koordlet.kubeapi import shapes
from koordlet.model import strategies

KEY = "koordinator.sh/cpuQOS"

FIELDS: shapes.Fields = {
    "enable": ("enable", shapes.boolean),
    "group_identity": ("groupIdentity", shapes.integer(-1, 2)),
    "sched_idle": ("schedIdle", shapes.integer(0, 1)),
    "core_expeller": ("coreExpeller", shapes.boolean),
}

read = shapes.record(strategies.CpuQos, FIELDS)


def decode(text: str, problems: list[str]) -> strategies.CpuQos:
    """The fields that the pod overlays."""
    return read(shapes.parse(text), problems)
