"""The load of nodes by what their agents report, and the classes that follow from it.

Covers: use of a node and of its production pods, bounds in amounts, classes. Does not cover: which
pods leave (``low_node_load``).

Rules:
1. The use of a node is what its agent reported to this process within ``LIVE_SECONDS``; of a
   NodeMetric it is that of the system, of host applications and of the pods that are still there.
   A node whose report is too old or missing is not looked at.
2. A node is of one class:
   - at most low in everything and not cordoned: ``prodHigh`` where production is above its high,
     ``bothLow`` where it is below its low, else ``low``;
   - else above high in anything: ``high``;
   - else ``prodHigh``, ``prodLow`` or none of them, by production.
   One that suffers from what the configuration names is ``high``, whatever it uses.
3. A pod that no NodeMetric measures yet counts with the scheduler's estimate where the node's use
   is live: its report says how much, and not of whom.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from koordlet.kubeapi import node_annotations
from koordlet.model import resctrl
from koordlet.model.record import dataclass
from koordlet.scheduler.descheduling.state import ClusterState, is_cordoned
from koordlet.scheduler.descheduling.strategies.load_settings import NodePool
from koordlet.scheduler.objects import requests
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.usage import NodeUsage
from koordlet.scheduler.plugins.load_aware import LoadAwareScheduling

PROD = "koord-prod"
#: A report is live for so long.
LIVE_SECONDS = 3.0
_ESTIMATOR = LoadAwareScheduling({})
Amounts = dict[str, float]


class LoadClass(enum.Enum):
    """What a node is in its pool."""

    LOW = "low"
    BOTH_LOW = "bothLow"
    PROD_LOW = "prodLow"
    HIGH = "high"
    PROD_HIGH = "prodHigh"
    NONE = "none"


@dataclass(slots=True, kw_only=True)
class NodeLoad:
    """One node: its use and its production pods' use, and the bounds of both."""

    row: int
    name: str
    cordoned: bool
    capacity: Amounts
    used: Amounts
    prod: Amounts
    pods: dict[str, Amounts]
    low: Amounts = field(default_factory=dict)
    high: Amounts = field(default_factory=dict)
    prod_low: Amounts = field(default_factory=dict)
    prod_high: Amounts = field(default_factory=dict)
    #: The high bounds as they were given or follow from the mean, by resource: amounts are rounded.
    percents: dict[bool, Amounts] = field(default_factory=dict)
    #: What it suffers from, of what is a reason; empty once a pod has gone for it in this round.
    suffers: frozenset[str] = frozenset()

    def leave(self, key: str, *, prod: bool) -> Amounts:
        """A pod goes; what it takes along, nothing where nobody measures it."""
        self.suffers = frozenset()  # whether that helps, the next report says
        taken = self.pods.get(key)
        if taken is None:
            return {}
        amounts = {name: taken.get(name, 0.0) for name in self.used}
        if requests.PODS in amounts:
            amounts[requests.PODS] = 1.0
        for side in (self.used, self.prod) if prod else (self.used,):
            for name, amount in amounts.items():
                side[name] -= amount
        return amounts

    def percent(self, used: Amounts, name: str) -> float:
        """An amount of a resource as a percentage of what the node has."""
        capacity = self.capacity.get(name, 0)
        return 100.0 * used[name] / capacity if capacity else 0.0

    def side(self, *, prod: bool) -> tuple[Amounts, Amounts]:
        """Use and high bound of one of the two rounds."""
        return (self.prod, self.prod_high) if prod else (self.used, self.high)

    def over(self, *, prod: bool) -> list[str]:
        """The resources of which more than the high bound is used."""
        used, high = self.side(prod=prod)
        return [name for name, bound in high.items() if used[name] > bound]

    def load_class(self) -> LoadClass:
        """The class of the node (rule 2)."""
        if self.suffers:
            return LoadClass.HIGH

        def under(used: Amounts, bounds: Amounts) -> bool:
            return not self.cordoned and all(used[name] <= bound for name, bound in bounds.items())

        prod_low = under(self.prod, self.prod_low)
        if under(self.used, self.low):
            if self.over(prod=True):
                return LoadClass.PROD_HIGH
            return LoadClass.BOTH_LOW if prod_low else LoadClass.LOW
        if self.over(prod=False):
            return LoadClass.HIGH
        if self.over(prod=True):
            return LoadClass.PROD_HIGH
        return LoadClass.PROD_LOW if prod_low else LoadClass.NONE


def read(
    state: ClusterState, pool: NodePool, row: int, oldest_seconds: int | None
) -> NodeLoad | None:
    """What a node uses; ``None`` where nobody knows (rule 1)."""
    node = state.node(row)
    usage = state.usages.get(node.name)
    if usage is None or usage.updated is None:
        return None
    if oldest_seconds and state.now.wall - usage.updated >= oldest_seconds:
        return None
    raw = node_annotations.raw_allocatable(node.annotations, [])
    columns = state.columns
    live = usage.fed and state.now.wall - usage.updated <= LIVE_SECONDS
    pods, prod = _live(columns.pods[row], usage, estimates=live)
    beside = (usage.system, *usage.applications.values())
    several = (usage.node,) if live else (*beside, *pods.values())
    return NodeLoad(
        row=row,
        name=node.name,
        cordoned=is_cordoned(node),
        capacity={
            name: float(raw.get(name, columns.allocatable[columns.resource(name), row]))
            for name in pool.names
        },
        used=_summed(pool.names, several, len(columns.pods[row])),
        prod=_summed(pool.names, [pods[key] for key in prod if key in pods], len(prod)),
        pods=pods,
        suffers=_suffers(state.pressures.get(node.name, frozenset()), pool.reasons),
    )


def _suffers(pressures: Iterable[str], reasons: frozenset[str]) -> frozenset[str]:
    """The reasons that hold; a signal of one resctrl domain is its name, a dot and the domain."""
    domain = f"{resctrl.NOISY_NEIGHBOUR}."
    names = {
        resctrl.NOISY_NEIGHBOUR if pressure.startswith(domain) else pressure
        for pressure in pressures
    }
    return reasons & names


def _live(
    pods: Mapping[str, Pod], usage: NodeUsage, *, estimates: bool
) -> tuple[dict[str, Amounts], list[str]]:
    """The use of the pods that are still there, and which pods are production."""
    measured: dict[str, Amounts] = {}
    prod = []
    for key, pod in pods.items():
        if key in usage.pods:
            measured[key] = {name: float(amount) for name, amount in usage.pods[key].items()}
        elif estimates:
            guess = _ESTIMATOR.estimate(pod.pod_class)
            measured[key] = {name: float(amount) for name, amount in guess.items()}
        if pod.pod_class.band == PROD:
            prod.append(key)
    return measured, prod


def _summed(names: Sequence[str], several: Sequence[Mapping[str, float]], count: int) -> Amounts:
    """The sum of these amounts, never below 0, and how many pods they are of."""
    summed = {
        name: max(0.0, float(sum(amounts.get(name, 0) for amounts in several))) for name in names
    }
    return {**summed, **({requests.PODS: float(count)} if requests.PODS in names else {})}


def bound(pool: NodePool, loads: Sequence[NodeLoad]) -> None:
    """The bounds of all nodes in amounts; in deviation mode around the mean of the pool."""
    sides = (
        ("low", "high", pool.low, pool.high),
        ("prod_low", "prod_high", pool.prod_low, pool.prod_high),
    )
    for low_name, high_name, low, high in sides:
        prod = low_name == "prod_low"
        for name in pool.names:
            below, above = low.get(name, 100.0), high.get(name, 100.0)
            if pool.deviates and low.get(name):
                used = (load.percent(load.side(prod=prod)[0], name) for load in loads)
                mean = sum(used) / len(loads)
                below, above = max(0.0, mean - low[name]), min(100.0, mean + high[name])
            elif pool.deviates:
                below = above = 100.0
            for load in loads:
                capacity = load.capacity[name]
                load.percents.setdefault(prod, {})[name] = above
                getattr(load, low_name)[name] = float(int(below * capacity / 100))
                getattr(load, high_name)[name] = float(int(above * capacity / 100))


def room(loads: Sequence[NodeLoad], *, prod: bool) -> Amounts:
    """What several nodes together have below their high bounds."""
    room: Amounts = {}
    for load in loads:
        used, high = load.side(prod=prod)
        for name, bound in high.items():
            room[name] = room.get(name, 0.0) + bound - used[name]
    return room
