"""Usage of a node from Koordinator's NodeMetric.

Covers: the value. Does not cover: decoding (``kubeapi.nodemetric``), writing one (``report``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from koordlet.model import resources
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMetric:
    """Usage, in the units of ``model.resources``."""

    #: Unix time of the report; ``None`` where it does not say.
    updated: float | None = None
    #: Seconds between reports.
    interval: float = 60
    #: Whether the node's use is known: the peer's agent reports none for minutes after its start.
    reported: bool = False
    #: ``node`` has in it whatever runs there, also pods that are not named.
    whole: bool = False
    #: It is what an agent reported to this process a moment ago, and no object.
    fed: bool = False
    node: resources.Amounts = field(default_factory=dict)
    system: resources.Amounts = field(default_factory=dict)
    #: By ``namespace/name``.
    pods: Mapping[str, resources.Amounts] = field(default_factory=dict)
    #: Those of them that the report calls production.
    prod: frozenset[str] = frozenset()
    #: By name of the host application.
    applications: Mapping[str, resources.Amounts] = field(default_factory=dict)
    #: Duration in seconds to percentile (``avg``, ``p95`` …) to usage.
    windows: Mapping[int, Mapping[str, resources.Amounts]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
