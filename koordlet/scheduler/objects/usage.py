"""What a node's agent says of its use: the NodeMetric as load-aware placement needs it.

Covers: decoding. Does not cover: judging it (``scheduler.plugins.load_aware``), writing such
objects (the agent).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from koordlet.model import moment
from koordlet.model.record import dataclass
from koordlet.scheduler.objects import requests, wire
from koordlet.scheduler.objects.requests import Amounts
from koordlet.scheduler.objects.wire import BadObjectError, Body

#: The peers' default of ``spec.metricCollectPolicy.reportIntervalSeconds``.
_INTERVAL = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUsage:
    """CPU in thousandths, memory in bytes."""

    #: Seconds since 1970 of the report; ``None``: none was ever made.
    updated: float | None = None
    interval: float = _INTERVAL
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
    """The name of a node, and its use; ``BadObjectError`` names what cannot be used."""
    name = wire.text(wire.mapping(body, "metadata"), "name")
    if not name:
        raise BadObjectError("metadata.name is missing")
    policy = wire.mapping(wire.mapping(body, "spec"), "metricCollectPolicy")
    status = wire.mapping(body, "status")
    node = wire.mapping(status, "nodeMetric")
    several = wire.bodies(status, "podsMetric")
    windows = wire.bodies(node, "aggregatedNodeUsages")
    use = _amounts(node, "nodeUsage")
    return name, NodeUsage(
        updated=_updated(status),
        interval=float(wire.integer(policy, "reportIntervalSeconds", _INTERVAL)),
        reported=bool(use),
        node=use,
        system=_amounts(node, "systemUsage"),
        windows={_seconds(window): _statistics(window) for window in windows},
        pods={_key(entry): _amounts(entry, "podUsage") for entry in several},
        prod=frozenset(_key(entry) for entry in several if entry.get("priority") == "koord-prod"),
    )


def _updated(status: Body) -> float | None:
    spelled = status.get("updateTime")
    if spelled is None:
        return None
    try:
        return moment.parse(spelled)
    except ValueError as error:
        raise BadObjectError(f"status.updateTime: {error}") from error


def _seconds(body: Body) -> int:
    try:
        return int(moment.duration(body.get("duration") or "0"))
    except ValueError as error:
        raise BadObjectError(f"aggregatedNodeUsages.duration: {error}") from error


def _statistics(body: Body) -> dict[str, Amounts]:
    usage = wire.mapping(body, "usage")
    return {str(name): _amounts(usage, name) for name in usage}


def _amounts(body: Body, key: str) -> Amounts:
    return requests.amounts(wire.mapping(body, key), "resources", requests.MOST_ALLOCATABLE)


def _key(body: Body) -> str:
    return f"{wire.text(body, 'namespace') or 'default'}/{wire.text(body, 'name')}"
