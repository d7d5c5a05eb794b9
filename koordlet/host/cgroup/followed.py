"""Selects the cgroups to follow: those of workloads, their parents and children, bounded.

Covers: the walk, the bounds, what is counted. Does not cover: reading a group (``tree``).

Whoever may make groups inside his own makes as many as he likes, and each one that is followed
costs memory for its files, counters and history.

Rules:
1. A workload with more than ``MOST`` groups inside, or that would bring all workloads together
   beyond ``MOST_OF_ALL``, is a crowd: it is followed by its top alone, a pod with its containers.
   Their counters count what is inside as well, and on v2 their limits limit it.
2. On v1 nobody narrows a set while one inside has more. There the groups of a crowd are known, and
   not counted, up to ``MOST_SETS``: else making groups would be a way out of the pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from koordlet.model import cgroup, grouppath, pod

#: Groups inside of one workload, and of all of them.
MOST, MOST_OF_ALL = 1000, 4000
#: Groups inside of all workloads whose sets are known on v1.
MOST_SETS = 8000


class FollowedReader(Protocol):
    """Interface that a walk reads from."""

    def children(self, path: str) -> tuple[str, ...]:
        """The groups directly inside."""

    def width(self, path: str) -> int | None:
        """Lower bound of the number of children, without reading names; ``None`` for no cgroup."""


class Follower:
    """The groups of one machine's workloads."""

    def __init__(self, most: int | None = None, most_of_all: int = MOST_OF_ALL) -> None:
        self._most = MOST if most is None else most
        self._most_of_all = most_of_all
        self._left = self._sets_left = 0
        #: Crowds, and whether the groups inside are known all the same (rule 2).
        self.crowded: Mapping[str, bool] = {}
        #: The groups of the last call of ``counted``, and what was made of them.
        self._counted: tuple[object, object, Mapping[str, cgroup.Group]] = (None, None, {})

    def groups(
        self,
        reader: FollowedReader,
        pods: Sequence[pod.Pod],
        also: Iterable[str],
        *,
        full: bool,
        sets: bool,
    ) -> list[str]:
        """The root, the pods' groups, all above them (they limit), all below (they must fit).

        A crowd is looked at again when a look is ``full``, or with the ``sets`` inside (rule 2).
        """
        self._left, self._sets_left = self._most_of_all, MOST_SETS if sets else 0
        known = () if full or sets else tuple(self.crowded)
        crowded: dict[str, bool] = {}
        paths = ["", *_with_those_above(also)]
        for path in _tops(reader, pods, paths):
            followed = None if path in known else self._inside(reader, path)
            if followed is None:
                followed = self._inside_crowd(reader, path)
                crowded[path] = followed is not None
            paths += followed or _shell(reader, path, self._most)
        if crowded != self.crowded:
            self.crowded = crowded
        return paths

    def counted(self, groups: Mapping[str, cgroup.Group]) -> Mapping[str, cgroup.Group]:
        """Counted cgroups; the same object while nothing changes."""
        if not any(self.crowded.values()):
            return groups
        if self._counted[0] is not groups or self._counted[1] is not self.crowded:
            kept = {path: group for path, group in groups.items() if not self._is_uncounted(path)}
            self._counted = (groups, self.crowded, kept)
        return self._counted[2]

    def _is_uncounted(self, path: str) -> bool:
        return not _is_container(path) and any(
            above in self.crowded for above in cgroup.ancestors(path)
        )

    def _inside(self, reader: FollowedReader, top: str) -> list[str] | None:
        paths = inside(reader, top, min(self._most, self._left))
        if paths is not None:
            self._left -= sum(1 for path in paths if path != top and not _is_container(path))
        return paths

    def _inside_crowd(self, reader: FollowedReader, top: str) -> list[str] | None:
        paths = inside(reader, top, self._sets_left) if self._sets_left else None
        if paths is not None:
            self._sets_left -= len(paths)
        return paths


def _tops(reader: FollowedReader, pods: Sequence[pod.Pod], paths: list[str]) -> Iterator[str]:
    """The groups of workloads; what is above them goes to ``paths``."""
    tops: set[str] = set()
    for workload in pods:
        if workload.group is None or not tops.isdisjoint(cgroup.ancestors(workload.group)):
            continue
        tree = grouppath.parse(workload.group).tree if workload.kube_qos is not None else None
        # All of a kubelet's, also what nobody lists: v1 narrows no group while one inside it
        # has more.
        top = workload.group if tree is None else tree.root
        if top in tops:
            continue
        tops.add(top)
        paths += cgroup.ancestors(top)
        for path in (top,) if tree is None else _pods_of(reader, top):
            if tree is None or grouppath.parse(path).uid is not None:
                yield path
            else:
                paths.append(path)


def inside(reader: FollowedReader, top: str, most: int) -> list[str] | None:
    """A group and everything below it, parents first; ``None`` where that is more than ``most``."""
    paths: list[str] = []
    # A workload may nest groups deeper than Python nests calls.
    todo = [top]
    while todo:
        here = todo.pop()
        width = reader.width(here)
        if width is None:
            continue  # gone since it was listed
        paths.append(here)
        # The width first: a crowd is not even listed.
        if len(paths) + width > most + 1:
            return None
        todo += reversed(reader.children(here))
    return paths


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


def _pods_of(reader: FollowedReader, root: str) -> Iterator[str]:
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


def _shell(reader: FollowedReader, top: str, most: int) -> list[str]:
    """A workload without what it makes inside itself."""
    if grouppath.parse(top).uid is None or (reader.width(top) or 0) > most:
        return [top]
    return [top, *(path for path in reader.children(top) if _is_container(path))]
