"""Cache of cgroups between two looks, with a sample of their cpusets for comparison.

Covers: the record of one group, the comparison, texts that several have.
Does not cover: reading a group (``tree``).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import NamedTuple

from koordlet.host.fs import root
from koordlet.model import cgroup, knob
from koordlet.model.record import dataclass

#: Bytes of one read of a set. Every second CPU of thousands is a longer list.
HOT = 4096
#: A watched set is read at one of this many polls, whatever the kernel told.
_SLICES = 5

#: The text itself, or an equal one of lately: most groups say the same. What ``sys.intern`` takes,
#: Python 3.12 never frees.
shared = functools.lru_cache(maxsize=1024)(str)


@dataclass(slots=True, eq=False)
class Known:
    """Cached state of one cgroup."""

    directory: root.HostPath
    #: What stat said; ``None`` asks again.
    stat: root.Stat | None = None
    inode: int = 0
    links: int = -1
    children: tuple[str, ...] | None = None
    #: Handle of the set.
    hot: int | None = None
    #: The group as it was read last, and whether it must be read again.
    group: cgroup.Group | None = None
    stale: bool = True
    #: The number of its watch, ``None`` while the kernel tells nothing about it.
    watch: int | None = None
    #: The full look that touched it last.
    round: int = 0


class _Slice(NamedTuple):
    """Watched sets that have a descriptor, as they were read."""

    groups: list[Known]
    handles: list[int]
    right: list[bytes]


class GroupSamples:
    """Cpusets read in turns: a slice is a list of descriptors and a list of texts."""

    def __init__(self, host: root.HostRoot) -> None:
        self._host = host
        self._turn = 0
        self._slices: dict[int, _Slice] = {}

    def forget(self) -> None:
        """A group came or went, or was read otherwise than before: slices are made anew."""
        self._slices.clear()

    def next(self, known: Iterable[Known]) -> bool:
        """Compare the next slice; whether one of it is not as it was read, and so is stale."""
        self._turn = (self._turn + 1) % _SLICES
        if self._turn not in self._slices:
            self._slices[self._turn] = _slice(list(known)[self._turn :: _SLICES])
        groups, handles, right = self._slices[self._turn]
        texts = self._host.preads(handles, HOT)
        if texts == right:
            return False
        for known_group, text, kept in zip(groups, texts, right, strict=True):
            known_group.stale |= text is None or text.rstrip(b"\n") != kept.rstrip(b"\n")
        return any(group.stale for group in groups)


def _slice(some: Iterable[Known]) -> _Slice:
    part = _Slice([], [], [])
    for known in some:
        text = None if known.group is None else known.group.values.get(knob.CPUSET_CPUS.name)
        short = text is not None and len(text) + 1 < HOT
        if known.hot is not None and known.watch is not None and text is not None and short:
            part.groups.append(known)
            part.handles.append(known.hot)
            part.right.append(f"{text}\n".encode())
    return part
