"""The arguments of LowNodeLoad: pools of nodes, thresholds, when a node is abnormal.

Covers: reading and validating, what a pool has from the top level. Does not cover: deciding
(``low_node_load``).

Every mistake names pool, resource and values. A resource with one threshold and not the other is
one: the peer loses the one that was given.

Weights: of the top level, 1 for CPU, memory and what has a threshold there, unless given; a pool
has those or its own, where what is not named weighs nothing. They order, and bound nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from koordlet.kubeapi import selectors, shapes
from koordlet.model import resctrl
from koordlet.model.record import dataclass
from koordlet.scheduler.descheduling import selection
from koordlet.scheduler.descheduling.fields import Fields
from koordlet.scheduler.descheduling.strategies import candidates
from koordlet.scheduler.descheduling.strategies.anomaly import AnomalySettings
from koordlet.scheduler.objects import requests
from koordlet.scheduler.plugins import pressure

DEFAULT_POOL = "__default_node_pool__"
#: Low and high of nodes, low and high of production pods.
BOUNDS = ("lowThresholds", "highThresholds", "prodLowThresholds", "prodHighThresholds")
Thresholds = Mapping[str, float]
#: A report that is older says nothing of now.
EXPIRES_SECONDS = 180
#: What a node may suffer from, as agents report it: pressure, threads that wait for CPUs (PSI),
#: more cycles per instruction than usual (a neighbour takes cache or memory bandwidth), best-effort
#: work that takes most of a domain's bandwidth (resctrl).
PRESSURES = (
    *pressure.TAINTS,
    "LatencySensitiveWaits",
    "LatencySensitiveSlowed",
    resctrl.NOISY_NEIGHBOUR,
)
_REASONS = shapes.listing(shapes.choice(*PRESSURES))
_WEIGHTS = shapes.table(shapes.integer(0, 100))


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePool:
    """Nodes that are balanced among each other."""

    name: str
    selector: selectors.Compiled | None = None
    deviates: bool = False
    low: Thresholds = field(default_factory=dict)
    high: Thresholds = field(default_factory=dict)
    prod_low: Thresholds = field(default_factory=dict)
    prod_high: Thresholds = field(default_factory=dict)
    weights: Mapping[str, int] = field(default_factory=dict)
    anomaly: AnomalySettings = field(default_factory=AnomalySettings)
    #: What of a node's suffering is a reason to move pods; ours, the peer knows none.
    reasons: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        """The resources that are looked at."""
        return tuple(dict.fromkeys((*self.low, *self.prod_low, requests.MEMORY)))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSettings:
    """The arguments of the strategy."""

    pools: tuple[NodePool, ...] = ()
    paused: bool = False
    dry_run: bool = False
    node_fit: bool = True
    least_nodes: int = 0
    #: ``None``: reports do not expire.
    expiration_seconds: int | None = EXPIRES_SECONDS
    memory_seconds: float = 300.0
    namespaces: selection.Choice = selection.EVERYTHING
    selectors: tuple[selectors.Compiled, ...] = ()


def read(fields: Fields) -> LoadSettings:
    """The arguments as Koordinator spells them."""
    expiration = None if "nodeMetricExpirationSeconds" in fields.body else EXPIRES_SECONDS
    top = _pool(fields, DEFAULT_POOL, NodePool(name=DEFAULT_POOL))
    named = [
        _pool(child, child.text("name"), top, own=True) for child in fields.children("nodePools")
    ]
    settings = LoadSettings(
        pools=(*((top,) if any(top_given(fields)) else ()), *named),
        paused=fields.flag("paused"),
        dry_run=fields.flag("dryRun"),
        node_fit=fields.flag("nodeFit", default=True),
        least_nodes=fields.count("numberOfNodes"),
        expiration_seconds=fields.whole("nodeMetricExpirationSeconds", expiration, 1),
        memory_seconds=fields.seconds("detectorCacheTimeout", 300.0) or 300.0,
        namespaces=selection.choice(fields, "evictableNamespaces"),
        selectors=candidates.pod_selectors(fields),
    )
    fields.done()
    return settings


def top_given(fields: Fields) -> list[object]:
    """The thresholds of the top level."""
    return [fields.get(key) for key in BOUNDS]


def _pool(fields: Fields, name: str, usual: NodePool, *, own: bool = False) -> NodePool:
    """One pool; what it does not say is as at the top level."""
    usual_bounds = (usual.low, usual.high, usual.prod_low, usual.prod_high)
    bounds = [
        fields.percentages(key) or dict(known)
        for key, known in zip(BOUNDS, usual_bounds, strict=True)
    ]
    weights = fields.read("resourceWeights", _WEIGHTS, {})
    if not own:
        weighed = (requests.CPU, requests.MEMORY, *bounds[0], *bounds[1])
        weights = dict.fromkeys(weighed, 1) | {each: n for each, n in weights.items() if n}
    pool = NodePool(
        name=name,
        selector=fields.selector("nodeSelector"),
        deviates=fields.flag("useDeviationThresholds", default=usual.deviates),
        low=bounds[0],
        high=bounds[1],
        prod_low=bounds[2],
        prod_high=bounds[3],
        weights=weights or usual.weights,
        anomaly=_anomaly(fields.child("anomalyCondition"), usual.anomaly),
        reasons=frozenset(fields.read("pressures", _REASONS, usual.reasons)),
    )
    _check(fields, pool)
    if own:
        fields.done()
    return pool


def _check(fields: Fields, pool: NodePool) -> None:
    where = f"pool {pool.name}: "
    for low, high, bounds in (
        (pool.low, pool.high, BOUNDS[:2]),
        (pool.prod_low, pool.prod_high, BOUNDS[2:]),
    ):
        for name in sorted({*low, *high}):
            if name not in low or name not in high:
                given, missing = bounds if name in low else bounds[::-1]
                fields.fail(
                    missing,
                    f"{where}{name} has a value in {given} and none here",
                    "name the same resources in both",
                )
            if low[name] > high[name]:
                fields.fail(
                    f"{bounds[0]}.{name}",
                    f"{where}{low[name]:g} is above {bounds[1]}.{name}, which is {high[name]:g}",
                )
    for name, value in pool.prod_high.items():
        if value > pool.high.get(name, 100.0):
            fields.fail(
                f"{BOUNDS[3]}.{name}",
                f"{where}{value:g} is above {BOUNDS[1]}.{name}, which is {pool.high[name]:g}",
            )


def _anomaly(fields: Fields, usual: AnomalySettings) -> AnomalySettings:
    settings = AnomalySettings(
        abnormal=fields.count("consecutiveAbnormalities", usual.abnormal) or usual.abnormal,
        normal=fields.count("consecutiveNormalities", usual.normal) or usual.normal,
        timeout_seconds=fields.seconds("timeout", usual.timeout_seconds) or usual.timeout_seconds,
    )
    fields.done()
    return settings
