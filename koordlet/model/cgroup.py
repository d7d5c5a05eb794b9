"""cgroup layout, and the observed contents of one cgroup.

Covers: hierarchies and their mounts, the path of a file of a group, observed groups.
Does not cover: reading them (``host.cgroup.tree``).

A group is named by its path below the hierarchy's root, without a leading slash: the same name in
every v1 hierarchy and on v2. The root group is the empty name.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import TypeVar

from koordlet.model import absence, cpuset, knob
from koordlet.model.record import dataclass

OwnerT = TypeVar("OwnerT")


class Version(enum.Enum):
    """cgroup version of the mounts."""

    V1 = "v1"
    V2 = "v2"
    #: v1 hierarchies with controllers, and a v2 tree beside them.
    HYBRID = "hybrid"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """One mounted cgroup tree."""

    mount: str
    unified: bool
    controllers: frozenset[str] = frozenset()
    #: Our directories live in this group of the tree (``--cgroup-root``), usually the root.
    base: str = ""
    writable: bool = True
    #: Why it is not writable.
    why: str = ""
    #: Names of the files that this kernel does not have, of those that not every kernel has.
    lacks: frozenset[str] = frozenset()
    #: Whether a group with processes may give up all its CPUs, which then are its parent's.
    empty_sets: bool = False

    def directory(self, group: str) -> str:
        """The directory of a group."""
        top = f"{self.mount}/{self.base}" if self.base else self.mount
        return f"{top}/{group}" if group else top


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """All mounted hierarchies of the machine."""

    hierarchies: tuple[Hierarchy, ...] = ()

    @property
    def version(self) -> Version:
        """The version: v1, v2, hybrid or none."""
        unified = any(hierarchy.unified for hierarchy in self.hierarchies)
        if any(not hierarchy.unified and hierarchy.controllers for hierarchy in self.hierarchies):
            return Version.HYBRID if unified else Version.V1
        return Version.V2 if unified else Version.NONE

    def holder(self, controller: str) -> Hierarchy | None:
        """The hierarchy of a controller, which is in one hierarchy at a time."""
        if controller == "":
            return self.tree
        for hierarchy in self.hierarchies:
            if controller in hierarchy.controllers:
                return hierarchy
            # v2 counts CPU time of every group, whichever controllers are enabled.
            if hierarchy.unified and controller == "cpuacct" and "cpu" in hierarchy.controllers:
                return hierarchy
        return None

    def unified(self, controller: str) -> bool:
        """Whether a controller is in the v2 tree."""
        holder = self.holder(controller)
        return holder is not None and holder.unified

    @property
    def tree(self) -> Hierarchy | None:
        """The v2 hierarchy, also where it has no controllers."""
        return next((hierarchy for hierarchy in self.hierarchies if hierarchy.unified), None)

    def file(self, row: knob.Knob, group: str) -> str | None:
        """The path of a group's file; ``None`` where this machine has no such file."""
        place = self.place(row)
        return None if place is None else f"{place[0].directory(group)}/{place[1]}"

    def place(self, row: knob.Knob) -> tuple[Hierarchy, str] | None:
        """The hierarchy that has a row's file, and its name there."""
        where = self.holder(row.controller)
        if where is None:
            return None
        name = row.file(unified=where.unified)
        return None if name is None or name in where.lacks else (where, name)

    def why_not(self, row: knob.Knob) -> absence.Unsupported | None:
        """The reason that a row of the table cannot be used here, for the operator."""
        where = self.holder(row.controller)
        name = None if where is None else row.file(unified=where.unified)
        if where is None:
            why = f"no mounted hierarchy has {row.controller}"
        elif name is None:
            why = f"not a file of cgroup {'v2' if where.unified else 'v1'}"
        elif name in where.lacks:
            why = f"this kernel has no {name} (since {row.since})"
        elif not where.writable:
            why = f"{where.mount}: {where.why or 'not writable'}"
        else:
            return None
        return absence.Unsupported(row.name, why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One observed cgroup. Missing files are not in ``values``."""

    path: str
    #: Identity: a path can be used again by another group.
    inode: int
    #: Row name of ``model.knob`` to the text read, without the final newline.
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The last component of the path."""
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> str:
        """The path of the parent."""
        return self.path.rpartition("/")[0]

    def cpus(self) -> cpuset.CPUSet | None:
        """Configured CPUs; ``None`` when unset, absent or damaged."""
        return _set(self.values.get(knob.CPUSET_CPUS.name))

    def effective(self) -> cpuset.CPUSet | None:
        """Effective CPUs of its tasks; ``None`` when absent or damaged."""
        return _set(self.values.get(knob.CPUSET_EFFECTIVE.name))


@functools.lru_cache(maxsize=1024)
def _set(text: str | None) -> cpuset.CPUSet | None:
    if not text:
        return None
    try:
        return cpuset.CPUSet.parse(text)
    except ValueError:
        return None


def ancestors(path: str) -> Iterator[str]:
    """Every group above a path, nearest first, the root (empty name) last."""
    while path:
        path = path.rpartition("/")[0]
        yield path


def between(path: str, top: str) -> tuple[str, ...]:
    """The groups strictly inside ``top`` that a group is in, nearest first."""
    return tuple(above for above in ancestors(path) if is_below(above, top))


def with_scopes(groups: Iterable[str | None], top: str | None) -> Iterator[str]:
    """Container cgroups, each after those that its runtime nests around it in the pod, ``top``.

    crun nests a group in its scope: it is the scope's weight that counts among neighbours, and its
    protection that the kernel asks first.
    """
    for group in groups:
        if group is not None:
            yield from reversed(between(group, top) if top else ())
            yield group


def owner(path: str, owners: Mapping[str, OwnerT]) -> OwnerT | None:
    """What a map has for a group, or for the nearest one above it."""
    return next(
        (owners[group] for group in (path, *ancestors(path)) if group and group in owners), None
    )


def is_below(path: str, other: str) -> bool:
    """True when ``path`` is strictly inside ``other``."""
    return path != other and (other == "" or path.startswith(other + "/"))


_NOT_STEPS = frozenset({"", ".", ".."})


def stays_below(path: str) -> bool:
    """True for a path that stays below its root: no ``..``, no empty steps, no end in between.

    Whoever owns a group may name those inside of it as he likes, and is not spared for the name.
    """
    # Mostly there is nothing that could be such a step, and a plan asks a thousand times.
    if "/." not in path and "//" not in path and path[:1] not in "./" and path[-1:] not in "./":
        return "\0" not in path
    return "\0" not in path and _NOT_STEPS.isdisjoint(path.split("/"))


def is_plain(path: str) -> bool:
    """As ``stays_below``, for a path from a file: printable characters only."""
    return path.isprintable() and stays_below(path)


def unit_of(path: str) -> str:
    """The systemd unit that a group is by its name; empty where it is inside one, or none at all.

    A unit lies below slices only; what a unit with ``Delegate=`` makes inside may have any name.
    """
    steps = path.split("/")
    above = all(step.endswith(".slice") for step in steps[:-1])
    named = steps[-1].endswith((".slice", ".service", ".scope"))
    return steps[-1] if above and named else ""


def depth(path: str) -> int:
    """Depth of a path below the root."""
    return path.count("/") + 1 if path else 0
