"""What a node's agent says of its use: the NodeMetric as load-aware placement needs it.

Covers: the scheduler's view of it. Does not cover: decoding (``kubeapi.nodemetric``), judging it
(``scheduler.plugins.load_aware``), writing such objects (the agent).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from koordlet.kubeapi import nodemetric
from koordlet.model.record import dataclass
from koordlet.scheduler.objects import requests, wire
from koordlet.scheduler.objects.wire import BadObjectError, Body


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUsage:
    """CPU in thousandths, memory in bytes."""

    #: Seconds since 1970 of the report; ``None``: none was ever made.
    updated: float | None = None
    interval: float = nodemetric.INTERVAL
    #: Whether the node's use is known: the peer's agent reports none for minutes after its start.
    reported: bool = False
    #: ``node`` has in it whatever runs there, also pods that are not named.
    whole: bool = False
    node: Mapping[str, int] = field(default_factory=dict)
    system: Mapping[str, int] = field(default_factory=dict)
    #: Seconds to statistic (``avg``, ``p95`` …) to use.
    windows: Mapping[int, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    #: By ``namespace/name``.
    pods: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    #: Those of them that the report calls production.
    prod: frozenset[str] = frozenset()


def decode(body: Body) -> tuple[str, NodeUsage]:
    """The name of a node, and its use; ``BadObjectError`` where nobody knows when it was."""
    name = wire.text(wire.mapping(body, "metadata"), "name")
    if not name:
        raise BadObjectError("metadata.name is missing")
    metric = nodemetric.decode(body)
    if metric.updated is None and wire.mapping(body, "status").get("updateTime") is not None:
        raise BadObjectError("status.updateTime is not a time")
    return name, NodeUsage(
        updated=metric.updated,
        interval=metric.interval,
        reported=bool(metric.node),
        node=_within(metric.node),
        system=_within(metric.system),
        windows={
            seconds: {name: _within(amounts) for name, amounts in usage.items()}
            for seconds, usage in metric.windows.items()
        },
        pods={name: _within(amounts) for name, amounts in metric.pods.items()},
        prod=metric.prod,
    )


def _within(amounts: Mapping[str, int]) -> Mapping[str, int]:
    return requests.within(amounts, requests.MOST_ALLOCATABLE)
