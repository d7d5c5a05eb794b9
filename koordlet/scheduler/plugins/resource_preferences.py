"""Koordinator's two scores about resources, each by name: how full a node is, and what it is for.

Covers: NodeResourcesFitPlus, ScarceResourceAvoidance, their arguments. Does not cover: what fits
(``resources``).

Both are served where a profile enables them. All divisions are of integers, cut toward zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from koordlet.scheduler import framework
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.events import ActionType
from koordlet.scheduler.cluster.vectors import Ints, Rows
from koordlet.scheduler.objects import requests, wire
from koordlet.scheduler.objects.pods import PodClass
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.plugins.resources import Chosen

_MOST, _LEAST = "MostAllocated", "LeastAllocated"


class NodeResourcesFitPlus(framework.Plugin):
    """For each resource by itself: the fuller or the emptier the better, with its own weight."""

    name = "NodeResourcesFitPlus"
    listens = ActionType(0)  # it refuses nobody

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(args)
        self._resources: dict[str, tuple[str, int]] = {}
        for name, body in wire.mapping(args, "resources").items():
            if not isinstance(body, Mapping):
                raise BadObjectError(f"resources.{name}: an object of type and weight is needed")
            kind, weight = wire.text(body, "type"), wire.integer(body, "weight", 1)
            if kind not in {_MOST, _LEAST}:
                raise BadObjectError(
                    f"resources.{name}.type: {kind!r} is none of {_MOST}, {_LEAST}"
                )
            if not 1 <= weight <= framework.MAX_SCORE:
                raise BadObjectError(f"resources.{name}.weight: {weight} is not from 1 to 100")
            self._resources[str(name)] = kind, weight

    def score(self, pod_class: PodClass, columns: Columns) -> framework.Score | None:
        asked = pod_class.requests.real
        several = [(name, *of) for name, of in self._resources.items() if asked.get(name, 0)]
        if not several:
            # The same for every node: 100 points, as the peer has it.
            return framework.StaticScore(np.full(columns.size, framework.MAX_SCORE, np.int64))
        weighted = tuple((name, weight) for name, _, weight in several)
        chosen = Chosen(columns, pod_class.requests.incoming, weighted, nonzero=True)
        return _EachByItself(chosen, [kind == _MOST for _, kind, _ in several])


class _EachByItself(framework.Score):
    """The weighted mean over the resources."""

    kind = framework.Kind.LOAD

    def __init__(self, chosen: Chosen, fuller: list[bool]) -> None:
        self._chosen = chosen
        self._fuller = np.array(fuller, np.bool_).reshape(-1, 1)

    def raw(self, rows: Rows) -> Ints:
        room = self._chosen.room(rows)
        whole = np.maximum(room, 1)
        # More than there is: a full node for the one kind, an overfull for the other.
        wanted = np.minimum(self._chosen.held(rows) + self._chosen.asked, whole)
        counted = np.where(self._fuller, wanted, whole - wanted)
        points = np.where(room > 0, counted * framework.MAX_SCORE // whole, 0)
        mean: Ints = (points * self._chosen.weights).sum(axis=0) // self._chosen.weights.sum()
        return mean


class ScarceResourceAvoidance(framework.Plugin):
    """Nodes with scarce resources are for the pods that ask for them."""

    name = "ScarceResourceAvoidance"
    listens = ActionType(0)  # it refuses nobody

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(args)
        self._scarce = frozenset(wire.strings(args, "resources"))

    def score(self, pod_class: PodClass, columns: Columns) -> framework.Score | None:
        asked = {name for name, much in pod_class.requests.real.items() if much}
        unasked = np.zeros(columns.size, np.int64)
        scarce = np.zeros(columns.size, np.int64)
        for name, line in columns.resources.items():
            if name in asked or name == requests.PODS:
                continue
            there = (columns.allocatable[line, : columns.size] > 0).astype(np.int64)
            unasked += there
            scarce += there if name in self._scarce else 0
        kept = (unasked - scarce) * framework.MAX_SCORE // np.maximum(unasked, 1)
        return framework.StaticScore(np.where(scarce > 0, kept, framework.MAX_SCORE))
