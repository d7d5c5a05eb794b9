"""Where a gang goes in the tree of the network, by the rules alone: sets of nodes and recursion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.objects import Body, name

ROOT, NODE = "ClusterTopologyLayer", "NodeTopologyLayer"
#: A place: the names on the way from the root.
Place = tuple[str, ...]


@dataclass
class Demand:
    """What is known when a gang looks for its place; numbers are by node."""

    #: The members that wait, and the fewest of them that are worth a place.
    number: int
    need: int
    slots: dict[str, int]
    scores: dict[str, int]
    #: Bound members of the gang, and everybody who attracts its members.
    own: dict[str, int]
    near: dict[str, int]
    strategy: list[dict[str, Any]] = field(default_factory=list)


class StrayError(Exception):
    """Members are bound where their layer does not allow it."""


class Network:
    """The layers of the network, the highest first, by the label that names a node's place."""

    def __init__(self, layers: Mapping[str, str], nodes: list[Body]) -> None:
        self.layers = [ROOT, *layers, NODE]
        self.ways: dict[str, Place] = {}
        for body in nodes:
            labels = body["metadata"].get("labels", {})
            names = [labels.get(label, "") for label in layers.values()]
            if all(names):
                self.ways[name(body)] = (*names, name(body))

    def knows(self, gather: list[dict[str, Any]]) -> bool:
        """Whether every layer that must gather exists."""
        return all(each["layer"] in self.layers for each in gather if self._must(each))

    @staticmethod
    def _must(layer: dict[str, Any]) -> bool:
        return bool(layer["strategy"] == "MustGather")

    def depth(self, gather: list[dict[str, Any]]) -> int:
        """The deepest layer that must gather; 0: none."""
        known = [each["layer"] for each in gather if self._must(each)]
        return max([0, *(self.layers.index(layer) for layer in known if layer in self.layers)])

    def placed(self, demand: Demand) -> list[str]:
        """The nodes that members take, in order; fewer than all where not all fit."""
        search = _Search(self, demand)
        starts = search.starts()
        for number in (demand.number, search.most(starts)):
            if number < demand.need:
                break
            for candidate in search.candidates(starts, number):
                nodes = search.spread(candidate, number)
                if len(nodes) == number:
                    return nodes
        return []


class _Search:
    def __init__(self, network: Network, demand: Demand) -> None:
        self._network, self._demand = network, demand
        self._multiples: dict[int, int] = {
            network.layers.index(each["layer"]): each.get("podCountMultiple", 1)
            for each in demand.strategy
            if each["layer"] in network.layers
        }

    def _below(self, place: Place) -> list[str]:
        size = len(place)
        return [node for node, way in self._network.ways.items() if way[:size] == place]

    def _sum(self, values: dict[str, int], place: Place) -> int:
        return sum(values.get(node, 0) for node in self._below(place))

    def _children(self, place: Place) -> list[Place]:
        size = len(place) + 1
        if size == len(self._network.layers):
            return []
        return sorted(
            {way[:size] for way in self._network.ways.values() if way[: size - 1] == place}
        )

    def _whole(self, place: Place, count: int) -> int:
        multiple = self._multiples.get(len(place), 1)
        there = self._sum(self._demand.own, place) if multiple > 1 else 0
        return max(0, (there + count) // multiple * multiple - there)

    def _slots(self, place: Place) -> int:
        leaf = len(place) == len(self._network.layers) - 1
        own = self._demand.slots.get(place[-1], 0) if leaf else 0
        return self._whole(
            place, own + sum(map(self._slots, [] if leaf else self._children(place)))
        )

    def starts(self) -> list[Place]:
        """The places of the layer that must gather; where members are bound, theirs."""
        depth = self._network.depth(self._demand.strategy)
        places = sorted({way[:depth] for way in self._network.ways.values()})
        bound = {node for node, count in self._demand.own.items() if count}
        if depth and bound:
            if bound - self._network.ways.keys():
                raise StrayError
            places = sorted({self._network.ways[node][:depth] for node in bound})
            if len(places) > 1:
                raise StrayError
        return places

    def most(self, starts: list[Place]) -> int:
        """How many members the largest place takes."""
        return max((len(self.spread(place, self._demand.number)) for place in starts), default=0)

    def candidates(self, starts: list[Place], number: int) -> list[Place]:
        """As deep as any has enough slots, in the order of the rules."""
        here = [place for place in starts if self._slots(place) >= number]
        while True:
            below = [child for place in here for child in self._children(place)]
            enough = [place for place in below if self._slots(place) >= number]
            if not enough:
                break
            here = enough

        def order(place: Place) -> tuple[Any, ...]:
            ways = [place[:size] for size in range(len(place), -1, -1)]
            near = [-self._sum(self._demand.near, way) for way in ways]
            slots = [self._slots(way) for way in ways]
            return near, slots, -self._sum(self._demand.scores, place), place[-1:], place

        return sorted(here, key=order)

    def spread(self, place: Place, rest: int) -> list[str]:
        """Greedily: children with more members, more slots, higher score, first name."""
        most = self._whole(place, min(rest, self._slots(place)))
        if len(place) == len(self._network.layers) - 1:
            return [place[-1]] * most

        def order(child: Place) -> tuple[Any, ...]:
            near = self._sum(self._demand.near, child)
            return -near, -self._slots(child), -self._sum(self._demand.scores, child), child

        while True:
            nodes: list[str] = []
            for child in sorted(self._children(place), key=order):
                nodes += self.spread(child, most - len(nodes))
            if self._whole(place, len(nodes)) == len(nodes):
                return nodes
            most = self._whole(place, len(nodes))
