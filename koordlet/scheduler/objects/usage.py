"""What a node's agent says of its use: the NodeMetric as load-aware placement needs it.

Covers: whose it is, and that it says when. Does not cover: decoding (``kubeapi.nodemetric``),
judging it (``scheduler.plugins.load_aware``), writing such objects (the agent).
"""

from __future__ import annotations

from koordlet.kubeapi import nodemetric
from koordlet.model.nodemetric import NodeMetric as NodeUsage
from koordlet.scheduler.objects import wire
from koordlet.scheduler.objects.wire import BadObjectError, Body

__all__ = ["NodeUsage", "decode"]


def decode(body: Body) -> tuple[str, NodeUsage]:
    """The name of a node, and its use; ``BadObjectError`` where nobody knows when it was."""
    name = wire.name(wire.mapping(body, "metadata"))
    metric = nodemetric.decode(body)
    if metric.updated is None and wire.mapping(body, "status").get("updateTime") is not None:
        raise BadObjectError("status.updateTime is not a time")
    return name, metric
