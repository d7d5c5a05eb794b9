"""What cgroup v1 and v2 share: groups as directories, control files, controllers, processes.

Covers: mkdir and rmdir of groups, files that come and go with their controller, moving processes.
Does not cover: the core files of each version (``cgroup1``, ``cgroup2``), the controllers.

Kernel facts: ``kernel/cgroup/cgroup.c``, Documentation/admin-guide/cgroup-v1/cgroups.rst and
Documentation/admin-guide/cgroup-v2.rst.
"""

from __future__ import annotations

import abc
import dataclasses
import enum
import errno
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from koordlet.model.cpuset import CPUSet
from tests.kit.kernel import parsing, tree
from tests.kit.kernel.tree import refused


@dataclasses.dataclass(eq=False)
class Process:
    """One process with one thread."""

    pid: int
    #: CPUs that the kernel lets it run on now.
    allowed: CPUSet
    #: What it asked for itself with sched_setaffinity(2); kept by the kernel from 6.2 on.
    wish: CPUSet | None = None
    #: Bytes that it holds and that nothing can reclaim.
    memory: int = 0
    name: str = "sleep"
    alive: bool = True
    #: Where it is, one group per hierarchy.
    groups: dict[Hierarchy, Group] = dataclasses.field(default_factory=dict)


class On(enum.Enum):
    """Which groups have a file."""

    ALL = "all"
    ROOT = "root"
    CHILDREN = "children"


@dataclasses.dataclass(frozen=True)
class Knob:
    """One control file of a controller, for all groups."""

    name: str
    read: Callable[[Group], str] | None = None
    write: Callable[[Group, str], None] | None = None
    on: On = On.ALL
    max_write: int = tree.MAX_WRITE

    def wanted(self, group: Group) -> bool:
        """Whether a group has this file."""
        return self.on is On.ALL or (self.on is On.ROOT) == (group.parent is None)

    def file(self, group: Group) -> tree.File:
        """The file of one group."""
        read, write = self.read, self.write
        mode = (0o444 if read else 0) | (0o200 if write else 0)
        return tree.File(
            (lambda: read(group)) if read else None,
            (lambda text: write(group, text)) if write else None,
            mode=mode,
            max_write=self.max_write,
        )


S = TypeVar("S")


class Controller(abc.ABC):
    """One resource controller."""

    name: str
    #: cgroup v2: whether it may work inside a threaded subtree.
    threaded = False

    @abc.abstractmethod
    def knobs(self) -> Iterable[Knob]:
        """Its control files."""

    @abc.abstractmethod
    def has(self, group: Group) -> bool:
        """Whether it works in a group."""

    @abc.abstractmethod
    def start(self, group: Group) -> None:
        """The group gets this controller (``css_online``)."""

    @abc.abstractmethod
    def stop(self, group: Group) -> None:
        """The group loses it; its settings are forgotten."""

    def holder(self, group: Group) -> Group:
        """The group whose settings count for this one: itself or the nearest that has some."""
        while not self.has(group):
            if group.parent is None:
                msg = f"{self.name} is not on this hierarchy"
                raise LookupError(msg)
            group = group.parent
        return group

    def children(self, group: Group) -> Iterator[Group]:
        """The children that have this controller."""
        return (child for child in group.subgroups.values() if self.has(child))

    def below(self, group: Group) -> Iterator[Group]:
        """The group and its descendants that have this controller, parents first."""
        return (descendant for descendant in group.walk() if self.has(descendant))

    def vet(self, group: Group, process: Process) -> None:  # noqa: B027 - few care
        """Refuses a process by raising (``can_attach``)."""

    def moved(self, group: Group, process: Process) -> None:  # noqa: B027 - few care
        """A process has arrived (``attach``)."""


class Stateful(Controller, Generic[S]):
    """A controller with settings per group."""

    def __init__(self) -> None:
        self.of: dict[Group, S] = {}

    @abc.abstractmethod
    def fresh(self, group: Group) -> S:
        """The settings of a new group."""

    def has(self, group: Group) -> bool:
        return group in self.of

    def start(self, group: Group) -> None:
        self.of[group] = self.fresh(group)

    def stop(self, group: Group) -> None:
        del self.of[group]


class Hierarchy(abc.ABC):
    """One tree of groups with its controllers."""

    version: int
    #: The field of /proc/<pid>/cgroup before the path, such as ``3:cpu,cpuacct``.
    label: str

    def __init__(self, controllers: Iterable[Controller]) -> None:
        self.controllers = {controller.name: controller for controller in controllers}
        self.root = Group(self, None, "")
        #: Set by the machine: all processes.
        self.processes: Processes
        self.born(self.root)

    @abc.abstractmethod
    def core(self) -> Iterable[Knob]:
        """The files that belong to no controller."""

    @abc.abstractmethod
    def active(self, group: Group) -> list[Controller]:
        """The controllers that have files in a group."""

    def vet_move(self, group: Group) -> None:  # noqa: B027 - few care
        """Refuses any process for a group by raising."""

    def may_nest(self, parent: Group) -> None:  # noqa: B027 - few care
        """Refuses a new group by raising."""

    def born(self, group: Group) -> None:
        """A new group: its settings and files."""
        for knob in self.core():
            if knob.wanted(group):
                group.put(knob.name, knob.file(group))
        self.refresh(group)

    def refresh(self, group: Group) -> None:
        """Starts and stops controllers of a group so that it has just the active ones."""
        active = self.active(group)
        for controller in self.controllers.values():
            if controller in active and not controller.has(group):
                controller.start(group)
                for knob in controller.knobs():
                    if knob.wanted(group):
                        group.put(knob.name, knob.file(group))
            elif controller not in active and controller.has(group):
                controller.stop(group)
                for knob in controller.knobs():
                    if knob.wanted(group):
                        group.drop(knob.name)

    def died(self, group: Group) -> None:
        """A group was removed."""
        for controller in self.controllers.values():
            if controller.has(group):
                controller.stop(group)

    def attach(self, group: Group, process: Process) -> None:
        """Moves a process into a group, or refuses."""
        self.vet_move(group)
        source = process.groups[self]
        if source is group:
            return
        changed = [
            controller
            for controller in self.controllers.values()
            if controller.holder(group) is not controller.holder(source)
        ]
        for controller in changed:
            controller.vet(controller.holder(group), process)
        source.members.remove(process)
        group.members.append(process)
        process.groups[self] = group
        for controller in changed:
            controller.moved(controller.holder(group), process)


class Group(tree.Directory):
    """A group: a directory whose files are knobs and whose directories are groups."""

    def __init__(self, hierarchy: Hierarchy, parent: Group | None, name: str) -> None:
        super().__init__()
        self.hierarchy = hierarchy
        self.parent = parent
        self.name = name
        self.subgroups: dict[str, Group] = {}
        #: Its processes in the order of their arrival.
        self.members: list[Process] = []

    @property
    def entries(self) -> Mapping[str, tree.Node]:
        return {**self._entries, **self.subgroups}

    @property
    def path(self) -> str:
        """As in /proc/<pid>/cgroup."""
        if self.parent is None:
            return "/"
        return f"{self.parent.path.rstrip('/')}/{self.name}"

    @property
    def populated(self) -> bool:
        """Whether it or any descendant has a process."""
        return any(group.members for group in self.walk())

    def walk(self) -> Iterator[Group]:
        """Itself and its descendants, parents first."""
        yield self
        for child in list(self.subgroups.values()):
            yield from child.walk()

    def ancestors(self) -> Iterator[Group]:
        """Its parent, that one's parent, and so on."""
        here = self.parent
        while here is not None:
            yield here
            here = here.parent

    def mkdir(self, name: str) -> None:
        if name in self.entries:
            raise refused(errno.EEXIST)
        if "\n" in name:
            # /proc/<pid>/cgroup could not be parsed any more.
            raise refused(errno.EINVAL)
        self.hierarchy.may_nest(self)
        child = Group(self.hierarchy, self, name)
        self.subgroups[name] = child
        self.hierarchy.born(child)

    def rmdir(self, name: str) -> None:
        child = self.subgroups.get(name)
        if child is None:
            raise refused(errno.ENOTDIR if name in self._entries else errno.ENOENT)
        if child.subgroups or child.members:
            raise refused(errno.EBUSY)
        del self.subgroups[name]
        child.gone = True
        for entry in child.entries.values():
            entry.gone = True
        self.hierarchy.died(child)


class Processes:
    """All processes of a machine; number 1 is the agent itself."""

    def __init__(self, hierarchies: Iterable[Hierarchy], online: Callable[[], CPUSet]) -> None:
        self._hierarchies = list(hierarchies)
        self._online = online
        self._next = 1
        self.table: dict[int, Process] = {}
        self.agent = self.spawn("koordlet")

    def spawn(self, name: str = "sleep", memory: int = 0) -> Process:
        """A new process in the root groups; numbers are never used twice."""
        process = Process(self._next, self._online(), name=name, memory=memory)
        self._next += 1
        self.table[process.pid] = process
        for hierarchy in self._hierarchies:
            process.groups[hierarchy] = hierarchy.root
            hierarchy.root.members.append(process)
        return process

    def end(self, process: Process) -> None:
        """The process exits and leaves its groups."""
        process.alive = False
        self.table.pop(process.pid, None)
        for group in process.groups.values():
            group.members.remove(process)

    def named(self, text: str) -> Process:
        """The process that a write to ``cgroup.procs`` means (``cgroup_procs_write_start``).

        0 is the writer; one number per write; whatever is no number is EINVAL.
        """
        try:
            pid = parsing.integer(text)
        except OSError:
            pid = -1
        if pid < 0:
            raise refused(errno.EINVAL)
        if pid == 0:
            return self.agent
        process = self.table.get(pid)
        if process is None:
            raise refused(errno.ESRCH)
        return process


def lines(items: Iterable[object]) -> str:
    """One item per line, as the kernel prints lists of numbers."""
    return "".join(f"{item}\n" for item in items)
