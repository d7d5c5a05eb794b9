"""The tree of the cluster's network over nodes: which places hold a gang, and how it is spread.

Covers: the tree of one generation of nodes, sums from the nodes up, candidates and their order,
the distribution within one. Does not cover: what fits on a node (``network_slots``), whose members
(``gathering``).

Rules:
1. A place is a node of the tree: it is known by the names on the way from the root. A cluster node
   without a label of each layer is outside.
2. The slots of a place are the sum of its children's. A layer with a multiple rounds them down,
   from the nodes up, so that members there and slots together are a multiple.
3. Candidates: of the layer that gathers, or the root, the places with enough slots; then of their
   children, level by level, as deep as there are any.
4. Order of candidates: more members there, compared level by level up to the root; fewer slots,
   compared so; higher score; name; the way from the root.
5. Within a candidate: children with more members first, then more slots, higher score, name. Each
   takes as many as are left and fit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field

import numpy as np

from koordlet.kubeapi.network_topology import NAME, NODE_LAYER, ROOT_LAYER, NetworkTopology
from koordlet.model.record import dataclass
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.vectors import Ints, Rows
from koordlet.scheduler.objects.nodes import Node

#: Of the places on a level, one number each.
Levels = tuple[Ints, ...]
#: A row, and how many members it takes.
Share = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class TreeLevel:
    """The places of one layer, by number: in the order of the ways from the root."""

    layer: str
    names: tuple[str, ...]
    #: The numbers of their parents, one level up.
    parents: Rows
    #: By number: the place in the order of names.
    ranks: Ints


@dataclass(frozen=True, slots=True, eq=False)
class NetworkTree:
    """The levels, the root first and the nodes last."""

    levels: tuple[TreeLevel, ...]
    #: By number on the last level: the row of the node.
    rows: Rows
    #: The number by row.
    numbers: Mapping[int, int]

    def level(self, layer: str) -> int:
        """The level of a layer; -1 where the tree has none of that name."""
        return next((at for at, each in enumerate(self.levels) if each.layer == layer), -1)

    def spell(self, level: int, number: int) -> str:
        """A place for a message: ``<layer>/<name>``."""
        return f"{self.levels[level].layer}/{self.levels[level].names[number]}"

    def shared(self, rows: Collection[int]) -> str:
        """The lowest place that these rows share; empty: there is none."""
        here = {self.numbers.get(row, -1) for row in rows}
        level = len(self.levels) - 1
        while len(here) > 1 and -1 not in here:
            here = {int(self.levels[level].parents[place]) for place in here}
            level -= 1
        return "" if not here or -1 in here else self.spell(level, here.pop())

    def sums(self, values: Ints) -> Levels:
        """Values of nodes summed up to the root."""
        sums = [values]
        for level in range(len(self.levels) - 1, 0, -1):
            sums.append(self._up(level, sums[-1]))
        return tuple(reversed(sums))

    def _up(self, level: int, values: Ints) -> Ints:
        size = len(self.levels[level - 1].names)
        # Sums of whole numbers below 2^53 are exact in double precision.
        return np.bincount(self.levels[level].parents, values, size).astype(np.int64)

    def rounded(self, slots: Ints, members: Levels, multiples: Mapping[int, int]) -> Levels:
        """Slots of nodes summed up to the root and rounded down on the way (rule 2)."""
        levels: list[Ints] = []
        for level in range(len(self.levels) - 1, -1, -1):
            slots = self._up(level + 1, levels[-1]) if levels else slots
            if (multiple := multiples.get(level, 1)) > 1:
                there = members[level]
                slots = np.maximum(0, (slots + there) // multiple * multiple - there)
            levels.append(slots)
        return tuple(reversed(levels))


class ClusterNetwork:
    """The network as its object has it, and the tree of the nodes as they are."""

    def __init__(self) -> None:
        self._topology: NetworkTopology | None = None
        self._built: tuple[Columns, int, NetworkTree] | None = None

    def put(self, topology: NetworkTopology | None) -> None:
        """Take in the object; ``None``: it has gone."""
        self._topology, self._built = topology, None

    @property
    def problem(self) -> str:
        """Why there is no tree; empty: there is."""
        if self._topology is None:
            return f'there is no ClusterNetworkTopology "{NAME}"'
        problem = self._topology.problem
        return f'ClusterNetworkTopology "{NAME}" is unreadable: {problem}' if problem else ""

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers from the root to the nodes; none where there is no tree."""
        if self._topology is None or self._topology.problem:
            return ()
        return (ROOT_LAYER, *(layer.name for layer in self._topology.layers), NODE_LAYER)

    def tree(self, columns: Columns) -> NetworkTree | None:
        """The tree; ``None``: there is none."""
        if self._topology is None or not self.layers:
            return None
        built = self._built
        if built is None or built[0] is not columns or built[1] != columns.generation:
            tree = build(self._topology, columns)
            built = self._built = columns, columns.generation, tree
        return built[2]


def build(topology: NetworkTopology, columns: Columns) -> NetworkTree:
    """The tree of the nodes as they are now."""
    ways = sorted(
        (way, row)
        for row, node in enumerate(columns.nodes)
        if node is not None and (way := _way(topology, node))
    )
    root = TreeLevel(ROOT_LAYER, ("",), np.zeros(1, np.intp), np.zeros(1, np.int64))
    levels, above = [root], [0] * len(ways)
    layers = (*(layer.name for layer in topology.layers), NODE_LAYER)
    for depth, layer in enumerate(layers):
        numbers: dict[tuple[str, ...], int] = {}
        parents: list[int] = []
        here = []
        for (way, _), parent in zip(ways, above, strict=True):
            known = numbers.setdefault(way[: depth + 1], len(numbers))
            if known == len(parents):
                parents.append(parent)
            here.append(known)
        names = tuple(way[-1] for way in numbers)
        ranks = np.empty(len(names), np.int64)
        ranks[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
        levels.append(TreeLevel(layer, names, np.array(parents, np.intp), ranks))
        above = here
    rows = [row for _, row in ways]
    numbers_by_row = {row: number for number, row in enumerate(rows)}
    return NetworkTree(tuple(levels), np.array(rows, np.intp), numbers_by_row)


def _way(topology: NetworkTopology, node: Node) -> tuple[str, ...]:
    """The names from the root's child down to the node; empty where it is outside (rule 1)."""
    names = [
        next((value for key in layer.label_keys if (value := node.labels.get(key))), "")
        for layer in topology.layers
    ]
    return (*names, node.name) if all(names) else ()


@dataclass(frozen=True, slots=True, eq=False)
class TreeOffers:
    """What the places of a tree have for one gang."""

    tree: NetworkTree
    #: Slots (rule 2), members that are there and attract others, scores.
    slots: Levels
    members: Levels
    scores: Levels
    #: The gang's own members, which multiples count.
    own: Levels
    multiples: Mapping[int, int] = field(default_factory=dict)

    def candidates(self, start: Rows, level: int, number: int) -> list[tuple[int, int]]:
        """Level and number of the places for so many members, in order (rules 3 and 4).

        ``start``: the places of ``level`` that may hold them.
        """
        tree, last = self.tree, len(self.tree.levels) - 1
        here = start[self.slots[level][start] >= number]
        while here.size and level < last:
            enough = self.slots[level + 1] >= number
            below = np.flatnonzero(np.isin(tree.levels[level + 1].parents, here) & enough)
            if not below.size:
                break
            here, level = below, level + 1
        return [(level, each) for each in self._ordered(level, here)]

    def _ordered(self, level: int, places: Rows) -> list[int]:
        there: list[Ints] = []
        slots: list[Ints] = []
        above = places
        for up in range(level, -1, -1):
            there.append(-self.members[up][above])
            slots.append(self.slots[up][above])
            above = self.tree.levels[up].parents[above]
        ranks = self.tree.levels[level].ranks[places]
        keys = (*there, *slots, -self.scores[level][places], ranks, places)
        return [int(each) for each in places[np.lexsort(keys[::-1])]]

    def distribution(self, place: tuple[int, int], number: int) -> list[Share]:
        """Rows of a place in the order in which members fill them, with how many (rule 5)."""
        shares: list[Share] = []
        self._take(*place, number, shares)
        return shares

    def _take(self, level: int, place: int, rest: int, shares: list[Share]) -> int:
        most = self._whole(level, place, min(rest, int(self.slots[level][place])))
        if level == len(self.tree.levels) - 1:
            if most:
                shares.append((int(self.tree.rows[place]), most))
            return most
        begin = len(shares)
        while most:
            taken = 0
            for child in self._children(level, place):
                if taken == most:
                    break
                taken += self._take(level + 1, child, most - taken, shares)
            whole = self._whole(level, place, taken)
            if whole == taken:
                return taken
            # What the children can take is no multiple: fewer of it are.
            del shares[begin:]
            most = whole
        return 0

    def _whole(self, level: int, place: int, count: int) -> int:
        multiple = self.multiples.get(level, 1)
        there = int(self.own[level][place]) if multiple > 1 else 0
        return max(0, (there + count) // multiple * multiple - there)

    def _children(self, level: int, place: int) -> Iterator[int]:
        below = self.tree.levels[level + 1]
        # Numbers are in the order of the ways: children of one parent follow each other.
        begin, end = np.searchsorted(below.parents, (place, place + 1))
        mine = begin + np.flatnonzero(self.slots[level + 1][begin:end])
        order = np.lexsort(
            (
                below.ranks[mine],
                -self.scores[level + 1][mine],
                -self.slots[level + 1][mine],
                -self.members[level + 1][mine],
            )
        )
        return (int(each) for each in mine[order])
