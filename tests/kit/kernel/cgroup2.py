"""cgroup v2: controllers passed down, domains and threads, freeze, kill, events.

Covers: the ``cgroup.*`` files, who may have processes, ``cpu.stat`` and pressure files.
Does not cover: real threads (each process has one), delegation, namespaces.

Kernel facts: ``kernel/cgroup/cgroup.c`` (``cgroup_subtree_control_write``,
``cgroup_migrate_vet_dst``, ``cgroup_vet_subtree_control_enable``), 6.1;
Documentation/admin-guide/cgroup-v2.rst.
"""

from __future__ import annotations

import dataclasses
import errno
from collections.abc import Iterable

from tests.kit.kernel import parsing
from tests.kit.kernel.group import Controller, Group, Hierarchy, Knob, On, lines
from tests.kit.kernel.tree import refused

_UNLIMITED = 1 << 31
#: Files and rows that newer kernels have; of those that were recorded, the first that has them.
_LATER, _LATEST = (6, 12), (7, 3)
#: Controllers that count groups and are no hierarchy of ours: where they stand among the others.
_PERF_AFTER = "memory"


@dataclasses.dataclass
class Core:
    """What a group itself remembers."""

    subtree: set[str] = dataclasses.field(default_factory=set)
    threaded: bool = False
    frozen: bool = False
    depth: int = _UNLIMITED
    descendants: int = _UNLIMITED
    pressure: bool = True


class Hierarchy2(Hierarchy):
    """The unified hierarchy."""

    version = 2
    label = "0:"

    def __init__(self, controllers: Iterable[Controller], kernel: tuple[int, int] = (6, 1)) -> None:
        self._kernel = kernel
        self.state: dict[Group, Core] = {}
        super().__init__(controllers)

    # Which controllers where ----------------------------------------------------------------------

    def offered(self, group: Group) -> list[str]:
        """``cgroup.controllers``: what the parent passes down, in the kernel's order."""
        if group.parent is None:
            return list(self.controllers)
        passed = self.state[group.parent].subtree
        threaded = self.state[group].threaded
        return [
            name
            for name, controller in self.controllers.items()
            if name in passed and (controller.threaded or not threaded)
        ]

    def active(self, group: Group) -> list[Controller]:
        return [self.controllers[name] for name in self.offered(group)]

    def pass_down(self, group: Group, text: str) -> None:
        """``cgroup.subtree_control``: all of a write or nothing."""
        wanted: dict[str, bool] = {}
        for word in parsing.strip(text).split(" "):
            if not word:
                continue
            if word[1:] not in self.controllers or word[0] not in "+-":
                raise refused(errno.EINVAL)
            wanted[word[1:]] = word[0] == "+"
        state = self.state[group]
        enable: set[str] = set()
        for name in self.controllers:
            if wanted.get(name) is True and name not in state.subtree:
                if name not in self.offered(group):
                    raise refused(errno.ENOENT)
                enable.add(name)
            if wanted.get(name) is False and name in state.subtree:
                below = group.subgroups.values()
                if any(name in self.state[child].subtree for child in below):
                    raise refused(errno.EBUSY)
        self._vet_enable(group, enable)
        disable = {name for name, on in wanted.items() if not on and name in state.subtree}
        state.subtree = (state.subtree | enable) - disable
        for child in group.subgroups.values():
            self.refresh(child)
            self._reattach(child, enable | disable)

    def _reattach(self, child: Group, changed: set[str]) -> None:
        """Controllers came or went: all processes below are attached to them anew."""
        for controller in (self.controllers[name] for name in changed):
            for descendant in child.walk():
                for process in descendant.members:
                    controller.moved(controller.holder(descendant), process)

    def _vet_enable(self, group: Group, enable: set[str]) -> None:
        if not enable:
            return
        if not self.valid_domain(self.domain(group)):
            raise refused(errno.EOPNOTSUPP)
        if group.parent is None:
            return
        threaded = self.state[group].threaded
        if any(not self.controllers[name].threaded for name in enable):
            if self.thread_root(group) or threaded:
                raise refused(errno.EOPNOTSUPP)
        elif self.may_be_thread_root(group) or threaded:
            return
        if group.members:
            raise refused(errno.EBUSY)

    # Domains and threads --------------------------------------------------------------------------

    def domain(self, group: Group) -> Group:
        """The group that holds the resources: itself, or the root of its threaded subtree."""
        while self.state[group].threaded and group.parent is not None:
            group = group.parent
        return group

    def _domain_subtree(self, group: Group) -> bool:
        """Whether it passes a controller down that knows no threads."""
        return any(not self.controllers[name].threaded for name in self.state[group].subtree)

    def may_be_thread_root(self, group: Group) -> bool:
        """``cgroup_can_be_thread_root``."""
        if group.parent is None:
            return True
        domains = (child for child in group.subgroups.values() if not self.state[child].threaded)
        return (
            not self.state[group].threaded
            and not any(domain.populated for domain in domains)
            and not self._domain_subtree(group)
        )

    def thread_root(self, group: Group) -> bool:
        """``cgroup_is_thread_root``: threaded children, or processes and threaded controllers."""
        if self.state[group].threaded:
            return False
        if any(self.state[child].threaded for child in group.subgroups.values()):
            return True
        shared = any(self.controllers[name].threaded for name in self.state[group].subtree)
        return bool(group.members) and shared

    def valid_domain(self, group: Group) -> bool:
        """``cgroup_is_valid_domain``."""
        if self.state[group].threaded:
            return False
        return not any(
            self.state[ancestor].threaded
            or (ancestor.parent is not None and self.thread_root(ancestor))
            for ancestor in group.ancestors()
        )

    def vet_move(self, group: Group) -> None:
        """Processes only in leaves, unless all that is passed down knows threads."""
        if not self.valid_domain(self.domain(group)):
            raise refused(errno.EOPNOTSUPP)
        if self.may_be_thread_root(group) or self.state[group].threaded:
            return
        if self.state[group].subtree:
            raise refused(errno.EBUSY)

    def _type(self, group: Group) -> str:
        if self.state[group].threaded:
            return "threaded\n"
        if not self.valid_domain(group):
            return "domain invalid\n"
        return "domain threaded\n" if self.thread_root(group) else "domain\n"

    def _write_type(self, group: Group, text: str) -> None:
        """One way only: back to a domain is EINVAL."""
        if parsing.strip(text) != "threaded":
            raise refused(errno.EINVAL)
        if self.state[group].threaded:
            return
        assert group.parent is not None
        above = self.domain(group.parent)
        if (
            group.populated
            or self._domain_subtree(group)
            or not self.valid_domain(above)
            or not self.may_be_thread_root(above)
        ):
            raise refused(errno.EOPNOTSUPP)
        self.state[group].threaded = True
        self.refresh(group)

    # Life and death -------------------------------------------------------------------------------

    def born(self, group: Group) -> None:
        self.state[group] = Core()
        super().born(group)

    def died(self, group: Group) -> None:
        super().died(group)
        del self.state[group]

    def may_nest(self, parent: Group) -> None:
        """``cgroup.max.depth`` and ``cgroup.max.descendants``: EAGAIN."""
        for level, group in enumerate([parent, *parent.ancestors()], start=1):
            state = self.state[group]
            if level > state.depth or sum(1 for _ in group.walk()) > state.descendants:
                raise refused(errno.EAGAIN)

    def _kill(self, group: Group, text: str) -> None:
        if parsing.integer(text) != 1:
            raise refused(errno.ERANGE)
        if self.state[group].threaded:
            raise refused(errno.EOPNOTSUPP)
        for descendant in group.walk():
            for process in list(descendant.members):
                self.processes.end(process)

    def _freeze(self, group: Group, text: str) -> None:
        value = parsing.integer(text)
        if value not in (0, 1):
            raise refused(errno.ERANGE)
        self.state[group].frozen = bool(value)

    def _events(self, group: Group) -> str:
        frozen = any(self.state[ancestor].frozen for ancestor in [group, *group.ancestors()])
        return f"populated {int(group.populated)}\nfrozen {int(frozen)}\n"

    # Files ----------------------------------------------------------------------------------------

    def core(self) -> Iterable[Knob]:
        state, offered = self.state, self.offered
        return (
            Knob("cgroup.controllers", lambda g: " ".join(offered(g)) + "\n"),
            Knob("cgroup.subtree_control", self._subtree, self.pass_down),
            Knob("cgroup.procs", self._pids, self._join),
            Knob("cgroup.threads", self._threads, self._join),
            Knob("cgroup.type", self._type, self._write_type, On.CHILDREN),
            Knob("cgroup.events", self._events, on=On.CHILDREN),
            Knob(
                "cgroup.freeze",
                lambda g: f"{int(state[g].frozen)}\n",
                self._freeze,
                On.CHILDREN,
            ),
            Knob("cgroup.kill", None, self._kill, On.CHILDREN),
            Knob("cgroup.stat", self._stat),
            self._bound("cgroup.max.depth", "depth"),
            self._bound("cgroup.max.descendants", "descendants"),
            Knob(
                "cgroup.pressure",
                lambda g: f"{int(state[g].pressure)}\n",
                self._pressure,
                On.CHILDREN,
            ),
            Knob("cpu.stat", self._cpu_stat),
            *self._local(),
            *(Knob(f"{name}.pressure", _psi) for name in ("cpu", "io", "memory")),
        )

    def _local(self) -> Iterable[Knob]:
        """What newer kernels say of a group without those inside of it."""
        if self._kernel >= _LATER:
            yield Knob("cpu.stat.local", lambda g: "throttled_usec 0\n")
        if self._kernel >= _LATEST:
            yield Knob("cgroup.stat.local", lambda g: "frozen_usec 0\n", on=On.CHILDREN)

    def _subtree(self, group: Group) -> str:
        return (
            " ".join(name for name in self.controllers if name in self.state[group].subtree) + "\n"
        )

    def _pids(self, group: Group) -> str:
        if self.state[group].threaded:
            raise refused(errno.EOPNOTSUPP)
        return self._threads(group)

    @staticmethod
    def _threads(group: Group) -> str:
        return lines(process.pid for process in group.members)

    def _join(self, group: Group, text: str) -> None:
        self.attach(group, self.processes.named(text))

    def _stat(self, group: Group) -> str:
        names: list[str] = []
        for name in self.controllers if self._kernel >= _LATER else ():
            names += [name, "perf_event"] if name == _PERF_AFTER else [name]
        living = "".join(f"nr_subsys_{name} 0\n" for name in names)
        dying = "".join(f"nr_dying_subsys_{name} 0\n" for name in names)
        below = sum(1 for _ in group.walk()) - 1
        return f"nr_descendants {below}\n{living}nr_dying_descendants 0\n{dying}"

    def _bound(self, name: str, field: str) -> Knob:
        def read(group: Group) -> str:
            value: int = getattr(self.state[group], field)
            return "max\n" if value >= _UNLIMITED else f"{value}\n"

        def write(group: Group, text: str) -> None:
            text = parsing.strip(text)
            value = _UNLIMITED if text == "max" else parsing.integer(text)
            if value < 0:
                raise refused(errno.ERANGE)
            setattr(self.state[group], field, value)

        return Knob(name, read, write)

    def _pressure(self, group: Group, text: str) -> None:
        value = parsing.integer(text)
        if value not in (0, 1):
            raise refused(errno.EINVAL)
        self.state[group].pressure = bool(value)

    def _cpu_stat(self, group: Group) -> str:
        cpu = self.controllers.get("cpu")
        extra = (
            "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\nnr_bursts 0\nburst_usec 0\n"
            if cpu is not None and cpu.has(group) and group.parent is not None
            else ""
        )
        nice = "nice_usec 0\n" if self._kernel >= _LATER else ""
        return f"usage_usec 0\nuser_usec 0\nsystem_usec 0\n{nice}{extra}"


def _psi(group: Group) -> str:
    del group
    line = "avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
    return f"some {line}full {line}"
