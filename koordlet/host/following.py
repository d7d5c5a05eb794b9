"""Which groups are followed: those of workloads, all above them, and what is inside, bounded.

Covers: the walk, the bounds. Does not cover: reading a group (``host.cgroups``).

Whoever may make groups inside his own makes as many as he likes, and each one that is followed
costs memory for its files, counters and history. So a workload with more than ``MOST`` of them, or
that would bring all workloads together beyond ``MOST_OF_ALL``, is followed by its top alone, a pod
with its containers: their counters count what is inside as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from koordlet.model import cgroup, grouppath, pod

#: Groups inside of one workload, and of all of them.
MOST, MOST_OF_ALL = 1000, 4000


class Reader(Protocol):
    """What a walk asks."""

    def children(self, path: str) -> tuple[str, ...]:
        """The groups directly inside."""

    def width(self, path: str) -> int:
        """How many these are at least, without a look at their names."""


class Follower:
    """The groups of one machine's workloads."""

    def __init__(self, most: int = MOST, most_of_all: int = MOST_OF_ALL) -> None:
        self._most, self._most_of_all = most, most_of_all
        self._left = most_of_all
        #: Groups of workloads that are followed by their top alone, sorted.
        self.crowded: tuple[str, ...] = ()

    def groups(
        self, reader: Reader, pods: Sequence[pod.Pod], also: Iterable[str], *, full: bool
    ) -> list[str]:
        """The root, the pods' groups, all above them (they limit), all below (they must fit).

        A crowd is looked at again when a look is ``full``.
        """
        self._left = self._most_of_all
        known = frozenset() if full else frozenset(self.crowded)
        crowded: list[str] = []
        found = list(self._walk(reader, pods, also, known, crowded))
        self.crowded = tuple(sorted(crowded))
        return found

    def _walk(
        self,
        reader: Reader,
        pods: Sequence[pod.Pod],
        also: Iterable[str],
        known: frozenset[str],
        crowded: list[str],
    ) -> Iterator[str]:
        yield ""
        yield from _with_those_above(also)
        tops: set[str] = set()
        for one in pods:
            if one.group is None or not tops.isdisjoint(cgroup.ancestors(one.group)):
                continue
            tree = grouppath.parse(one.group).tree if one.kube_qos is not None else None
            # All of a kubelet's, also what nobody lists: v1 narrows no group while one inside it
            # has more.
            top = one.group if tree is None else tree.root
            if top in tops:
                continue
            tops.add(top)
            yield from cgroup.ancestors(top)
            for path in (top,) if tree is None else _pods_of(reader, top):
                if tree is not None and grouppath.parse(path).uid is None:
                    yield path
                    continue
                followed = None if path in known else self._inside(reader, path)
                if followed is None:
                    crowded.append(path)
                    followed = _shell(reader, path, self._most)
                yield from followed

    def _inside(self, reader: Reader, top: str) -> list[str] | None:
        found = inside(reader, top, min(self._most, self._left))
        if found is not None:
            self._left -= sum(1 for path in found if path != top and not _is_container(path))
        return found


def inside(reader: Reader, top: str, most: int) -> list[str] | None:
    """A group and everything below it, parents first; ``None`` where that is more than ``most``."""
    found: list[str] = []
    # A workload may nest groups deeper than Python nests calls.
    todo = [top]
    while todo:
        here = todo.pop()
        found.append(here)
        room = most + 1 - len(found) - len(todo)
        # The width first: a crowd is not even listed.
        if reader.width(here) > room or len(below := reader.children(here)) > room:
            return None
        todo.extend(reversed(below))
    return found


def _with_those_above(also: Iterable[str]) -> Iterator[str]:
    named = {""}
    for path in dict.fromkeys(also):
        above = path.rpartition("/")[0]
        # Above what was named everything was.
        while above not in named:
            yield above
            named.add(above)
            above = above.rpartition("/")[0]
        yield path


def _pods_of(reader: Reader, root: str) -> Iterator[str]:
    """The groups of a kubelet's tree down to its pods, parents first."""
    todo = [root]
    while todo:
        here = todo.pop()
        yield here
        if grouppath.parse(here).uid is None:
            todo.extend(reversed(reader.children(here)))


def _is_container(path: str) -> bool:
    place = grouppath.parse(path)
    return place.uid is not None and place.container is not None and not place.rest


def _shell(reader: Reader, top: str, most: int) -> list[str]:
    """A workload without what it makes inside itself."""
    if grouppath.parse(top).uid is None or reader.width(top) > most:
        return [top]
    return [top, *(path for path in reader.children(top) if _is_container(path))]
