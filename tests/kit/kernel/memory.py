"""The memory controller of both versions: limits in whole pages.

Covers: rounding, suffixes, unlimited values, the v1 rules between limit and memsw, processes killed
when ``memory.max`` goes below what they hold. Does not cover: reclaim (nothing in the stand-in is
reclaimable), NUMA statistics, zswap.

Kernel facts: ``mm/memcontrol.c`` (``mem_cgroup_resize_max``, ``memory_max_write``),
``mm/memcontrol-v1.c`` from 6.11, ``mm/page_counter.c``; 6.1.
"""

from __future__ import annotations

import abc
import dataclasses
import errno
from collections.abc import Callable, Iterable

from tests.kit.kernel import parsing
from tests.kit.kernel.group import Group, Knob, On, Stateful
from tests.kit.kernel.parsing import NO_LIMIT, PAGE
from tests.kit.kernel.tree import refused

#: ``memory.stat`` of v2, the entries that are bytes (the counters of reclaim are left out).
_STAT = (
    *(
        "anon",
        "file",
        "kernel",
        "kernel_stack",
        "pagetables",
        "percpu",
        "sock",
        "vmalloc",
    ),
    *("shmem", "file_mapped", "file_dirty", "file_writeback", "swapcached"),
    *("inactive_anon", "active_anon", "inactive_file", "active_file", "unevictable"),
    *("slab_reclaimable", "slab_unreclaimable", "slab", "pgfault", "pgmajfault"),
)
#: What the kernel needs for a group is charged to its parent: so much on a 6.1 with 8 CPUs.
_CHILD_BYTES = 7 * PAGE
_EVENTS = ("low", "high", "max", "oom", "oom_kill", "oom_group_kill")
#: The recorded kernel that has one event more, and cuts no number of bytes to 64 bits.
_LATEST = (7, 3)


@dataclasses.dataclass
class Memory:
    """The settings of one group: pages by file name, other numbers, events."""

    pages: dict[str, int]
    numbers: dict[str, int]
    events: dict[str, int] = dataclasses.field(default_factory=lambda: dict.fromkeys(_EVENTS, 0))


class _Memory(Stateful[Memory], abc.ABC):
    """What both versions share."""

    name = "memory"

    def usage(self, group: Group) -> int:
        """Bytes held by the processes below, and by the kernel for the groups below."""
        groups = list(group.walk())
        held = sum(process.memory for descendant in groups for process in descendant.members)
        return held + _CHILD_BYTES * (len(groups) - 1)

    def number(
        self,
        name: str,
        vet: Callable[[Group, int], None],
        read: Callable[[int], str] = str,
    ) -> Knob:
        """A file that holds a number after a check."""

        def write(group: Group, text: str) -> None:
            value = parsing.unsigned(text)
            vet(group, value)
            self.of[group].numbers[name] = value

        return Knob(name, lambda group: f"{read(self.of[group].numbers[name])}\n", write)


class Memory2(_Memory):
    """``memory.*`` of v2: no rules of order at all."""

    _LIMITS = (
        *("memory.min", "memory.low", "memory.high", "memory.max"),
        *("memory.swap.high", "memory.swap.max", "memory.zswap.max"),
    )
    _COUNTERS = ("memory.peak", "memory.swap.current", "memory.zswap.current")

    def __init__(self, kernel: tuple[int, int] = (6, 1)) -> None:
        super().__init__()
        self._latest = kernel >= _LATEST

    def fresh(self, group: Group) -> Memory:
        del group
        pages = dict.fromkeys(self._LIMITS, NO_LIMIT)
        events = (*_EVENTS, "sock_throttled") if self._latest else _EVENTS
        return Memory(
            pages | {"memory.min": 0, "memory.low": 0},
            {"memory.oom.group": 0},
            dict.fromkeys(events, 0),
        )

    def knobs(self) -> Iterable[Knob]:
        return (
            *(self._limit(name) for name in self._LIMITS),
            Knob("memory.current", lambda g: f"{self.usage(g)}\n", on=On.CHILDREN),
            *(Knob(name, lambda g: "0\n", on=On.CHILDREN) for name in self._COUNTERS),
            Knob("memory.events", self._events, on=On.CHILDREN),
            Knob("memory.events.local", self._events, on=On.CHILDREN),
            Knob(
                "memory.swap.events",
                lambda g: "high 0\nmax 0\nfail 0\n",
                on=On.CHILDREN,
            ),
            Knob("memory.stat", self._stat),
            Knob("memory.numa_stat", lambda g: ""),
            Knob("memory.oom.group", self._oom_group, self._write_oom_group, On.CHILDREN),
            Knob("memory.reclaim", None, self._reclaim),
        )

    def _limit(self, name: str) -> Knob:
        def read(group: Group) -> str:
            pages = self.of[group].pages[name]
            return "max\n" if pages == NO_LIMIT else f"{pages * PAGE}\n"

        def write(group: Group, text: str) -> None:
            self.of[group].pages[name] = parsing.pages(text, "max", wraps=not self._latest)
            if name == "memory.max":
                self._squeeze(group)

        return Knob(name, read, write, On.CHILDREN)

    def _squeeze(self, group: Group) -> None:
        """The write succeeds and the largest processes die until the rest fits."""
        limit = self.of[group].pages["memory.max"] * PAGE
        inside = [
            process
            for descendant in group.walk()
            for process in descendant.members
            if process.memory
        ]
        for process in sorted(inside, key=lambda process: -process.memory):
            if self.usage(group) <= limit:
                return
            self.of[group].events["oom_kill"] += 1
            group.hierarchy.processes.end(process)

    def _events(self, group: Group) -> str:
        return "".join(f"{name} {count}\n" for name, count in self.of[group].events.items())

    def _stat(self, group: Group) -> str:
        values = dict.fromkeys(_STAT, 0) | {"anon": self.usage(group)}
        return "".join(f"{name} {value}\n" for name, value in values.items())

    def _oom_group(self, group: Group) -> str:
        return f"{self.of[group].numbers['memory.oom.group']}\n"

    def _write_oom_group(self, group: Group, text: str) -> None:
        value = parsing.integer(text)
        if value not in (0, 1):
            raise refused(errno.EINVAL)
        self.of[group].numbers["memory.oom.group"] = value

    @staticmethod
    def _reclaim(group: Group, text: str) -> None:
        """EAGAIN when less was reclaimed than asked for: here, always."""
        del group
        if parsing.pages(text, ""):
            raise refused(errno.EAGAIN)


class Memory1(_Memory):
    """``memory.*_in_bytes`` of v1."""

    _LIMIT, _MEMSW = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
    _SOFT = "memory.soft_limit_in_bytes"
    _KMEM = ("memory.kmem.limit_in_bytes", "memory.kmem.tcp.limit_in_bytes")
    _COUNTERS = (
        *("memory.failcnt", "memory.memsw.failcnt", "memory.kmem.failcnt"),
        *("memory.kmem.tcp.failcnt", "memory.max_usage_in_bytes"),
        *("memory.memsw.max_usage_in_bytes", "memory.kmem.max_usage_in_bytes"),
        *("memory.kmem.tcp.max_usage_in_bytes", "memory.kmem.usage_in_bytes"),
        *("memory.kmem.tcp.usage_in_bytes", "memory.move_charge_at_immigrate"),
    )

    def fresh(self, group: Group) -> Memory:
        above = None if group.parent is None else self.of[group.parent].numbers
        numbers = {
            "memory.swappiness": above["memory.swappiness"] if above else 60,
            "memory.oom_control": above["memory.oom_control"] if above else 0,
            "memory.use_hierarchy": 1,
        }
        return Memory(dict.fromkeys((self._LIMIT, self._MEMSW, self._SOFT), NO_LIMIT), numbers)

    def knobs(self) -> Iterable[Knob]:
        return (
            self._pages(self._LIMIT, self._vet_limit),
            self._pages(self._MEMSW, self._vet_memsw),
            self._pages(self._SOFT, lambda group, pages: None),
            *(self._kmem(name) for name in self._KMEM),
            Knob("memory.usage_in_bytes", lambda g: f"{self.usage(g)}\n"),
            Knob("memory.memsw.usage_in_bytes", lambda g: f"{self.usage(g)}\n"),
            *(Knob(name, lambda g: "0\n", _nothing) for name in self._COUNTERS),
            Knob("memory.kmem.slabinfo", lambda g: ""),
            Knob("memory.numa_stat", lambda g: ""),
            Knob("memory.stat", lambda g: f"cache 0\nrss {self.usage(g)}\n"),
            self.number("memory.swappiness", _at_most(200)),
            self.number("memory.use_hierarchy", _exactly_one),
            self.number("memory.oom_control", _not_on_root_at_most_one, _oom_control),
            Knob("memory.force_empty", None, _not_on_root, On.CHILDREN),
            Knob("memory.pressure_level", None, None),
            Knob("cgroup.event_control", None, _refuse),
        )

    def _pages(self, name: str, vet: Callable[[Group, int], None]) -> Knob:
        def write(group: Group, text: str) -> None:
            pages = parsing.pages(text, "-1")
            if group.parent is None:
                raise refused(errno.EINVAL)
            vet(group, pages)
            self.of[group].pages[name] = pages

        return Knob(name, lambda group: f"{self.of[group].pages[name] * PAGE}\n", write)

    def _vet_limit(self, group: Group, pages: int) -> None:
        if pages > self.of[group].pages[self._MEMSW]:
            raise refused(errno.EINVAL)
        self._vet_usage(group, pages)

    def _vet_memsw(self, group: Group, pages: int) -> None:
        if pages < self.of[group].pages[self._LIMIT]:
            raise refused(errno.EINVAL)
        self._vet_usage(group, pages)

    def _vet_usage(self, group: Group, pages: int) -> None:
        """Below what cannot be reclaimed: EBUSY, and nobody is killed (unlike v2)."""
        if self.usage(group) > pages * PAGE:
            raise refused(errno.EBUSY)

    @staticmethod
    def _kmem(name: str) -> Knob:
        """Deprecated (5.16): taken and ignored, always unlimited."""

        def write(group: Group, text: str) -> None:
            del group
            parsing.pages(text, "-1")

        return Knob(name, lambda group: f"{NO_LIMIT * PAGE}\n", write)


def _nothing(group: Group, text: str) -> None:
    del group, text


def _refuse(group: Group, text: str) -> None:
    del group, text
    raise refused(errno.EINVAL)


def _not_on_root(group: Group, text: str) -> None:
    del text
    if group.parent is None:
        raise refused(errno.EINVAL)


def _at_most(most: int) -> Callable[[Group, int], None]:
    def vet(group: Group, value: int) -> None:
        del group
        if value > most:
            raise refused(errno.EINVAL)

    return vet


def _exactly_one(group: Group, value: int) -> None:
    del group
    if value != 1:
        raise refused(errno.EINVAL)


def _not_on_root_at_most_one(group: Group, value: int) -> None:
    if group.parent is None or value > 1:
        raise refused(errno.EINVAL)


def _oom_control(value: int) -> str:
    return f"oom_kill_disable {value}\nunder_oom 0\noom_kill 0"
