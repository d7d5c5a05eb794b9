"""cgroup v1: the files that every hierarchy has, and which controllers are mounted together.

Covers: ``tasks``, ``cgroup.procs``, ``cgroup.clone_children``, ``notify_on_release``; the pids and
freezer controllers in outline. Does not cover: cpu, cpuset, memory (their own modules), release
agents.

Kernel facts: ``kernel/cgroup/cgroup-v1.c``; Documentation/admin-guide/cgroup-v1/cgroups.rst.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable

from tests.kit.kernel import parsing
from tests.kit.kernel.cpuset1 import Cpuset1
from tests.kit.kernel.group import (
    Controller,
    Group,
    Hierarchy,
    Knob,
    On,
    Stateful,
    lines,
)
from tests.kit.kernel.tree import refused


class Hierarchy1(Hierarchy):
    """One mounted v1 hierarchy; all its controllers are active in all its groups."""

    version = 1

    def __init__(self, number: int, name: str, controllers: Iterable[Controller]) -> None:
        self.name = name
        self.number = number
        self.label = f"{number}:{name}"
        self._cloning: set[Group] = set()
        self._notifying: set[Group] = set()
        known = list(controllers)
        for controller in known:
            if isinstance(controller, Cpuset1):
                controller.cloning = self._cloning
        super().__init__(known)

    def active(self, group: Group) -> list[Controller]:
        del group
        return list(self.controllers.values())

    def core(self) -> Iterable[Knob]:
        return (
            Knob("cgroup.procs", self._pids, self._join),
            Knob("tasks", self._pids, self._join),
            Knob("cgroup.clone_children", _shown(self._cloning), _switch(self._cloning)),
            Knob("notify_on_release", _shown(self._notifying), _switch(self._notifying)),
            Knob("release_agent", lambda group: "\n", _ignored, On.ROOT),
            Knob("cgroup.sane_behavior", lambda group: "0\n", on=On.ROOT),
        )

    def born(self, group: Group) -> None:
        if group.parent in self._notifying:
            self._notifying.add(group)
        if group.parent in self._cloning:
            self._cloning.add(group)
        super().born(group)

    @staticmethod
    def _pids(group: Group) -> str:
        """Ascending in v1, unlike v2 (``pidlist_array_load`` sorts)."""
        return lines(sorted(process.pid for process in group.members))

    def _join(self, group: Group, text: str) -> None:
        self.attach(group, self.processes.named(text))


class Pids(Stateful[int]):
    """The pids controller, the same in both versions: ``pids.max`` (-1: no limit) is only kept."""

    name = "pids"
    threaded = True
    _MOST = 4 * 1024 * 1024

    def fresh(self, group: Group) -> int:
        del group
        return -1

    def knobs(self) -> Iterable[Knob]:
        return (
            Knob("pids.max", self._max, self._write_max, On.CHILDREN),
            Knob("pids.current", self._current, on=On.CHILDREN),
            # In 6.1 since a stable update of it.
            Knob("pids.peak", self._current, on=On.CHILDREN),
            Knob("pids.events", lambda group: "max 0\n", on=On.CHILDREN),
        )

    def _max(self, group: Group) -> str:
        return "max\n" if self.of[group] < 0 else f"{self.of[group]}\n"

    def _write_max(self, group: Group, text: str) -> None:
        text = parsing.strip(text)
        value = -1 if text == "max" else parsing.signed(text)
        if text != "max" and not 0 <= value <= self._MOST:
            raise refused(errno.EINVAL)
        self.of[group] = value

    @staticmethod
    def _current(group: Group) -> str:
        return f"{sum(len(descendant.members) for descendant in group.walk())}\n"


class Bare(Stateful[None]):
    """A controller of which only the name matters here, such as ``devices``."""

    def __init__(self, name: str, *, threaded: bool = False) -> None:
        super().__init__()
        self.name = name
        self.threaded = threaded

    def fresh(self, group: Group) -> None:
        del group

    def knobs(self) -> Iterable[Knob]:
        return ()


def _shown(members: set[Group]) -> Callable[[Group], str]:
    return lambda group: f"{int(group in members)}\n"


def _switch(members: set[Group]) -> Callable[[Group, str], None]:
    def write(group: Group, text: str) -> None:
        if parsing.unsigned(text):
            members.add(group)
        else:
            members.discard(group)

    return write


def _ignored(group: Group, text: str) -> None:
    del group, text
