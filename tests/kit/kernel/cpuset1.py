"""The cpuset controller of cgroup v1: the one with order rules.

Covers: child within parent, exclusive flags, empty sets, offline CPUs that never come back by
themselves. Does not cover: memory migration and pressure (files are there, nothing moves).

Kernel facts: ``kernel/cgroup/cpuset.c`` (``validate_change``, ``validate_change_legacy``,
``cpuset_css_online``, ``hotplug_update_tasks_legacy``), ``cpuset-v1.c`` from 6.12;
Documentation/admin-guide/cgroup-v1/cpusets.rst.
"""

from __future__ import annotations

import dataclasses
import errno
from collections.abc import Iterable

from koordlet.model.cpuset import CPUSet
from tests.kit.kernel import affinity, parsing
from tests.kit.kernel.group import Group, Knob, On, Process, Stateful
from tests.kit.kernel.hardware import Hardware
from tests.kit.kernel.tree import refused

#: ``nr_cpu_ids`` bounds CPU lists; node lists are bounded by the kernel's build (Debian: 1024).
MAX_NODES = 1024
#: ``max_write_len`` of the mask files: 100 + 6 * NR_CPUS (8192 in Debian's build).
MAX_WRITE = 100 + 6 * 8192
_CHECKED = ("cpu_exclusive", "mem_exclusive", "mem_hardwall", "sched_load_balance")
_PLAIN = ("memory_migrate", "memory_spread_page", "memory_spread_slab")


NOTHING = CPUSet()


@dataclasses.dataclass
class Cpuset:
    """The settings of one group."""

    cpus: CPUSet = NOTHING
    mems: CPUSet = NOTHING
    flags: frozenset[str] = frozenset({"sched_load_balance"})
    relax: int = -1

    @property
    def empty(self) -> bool:
        """Whether no process may be here."""
        return not self.cpus or not self.mems

    def within(self, other: Cpuset) -> bool:
        """``is_cpuset_subset``: masks, and exclusive only inside exclusive."""
        exclusive = {"cpu_exclusive", "mem_exclusive"}
        return (
            self.cpus <= other.cpus
            and self.mems <= other.mems
            and self.flags & exclusive <= other.flags
        )

    def collides(self, other: Cpuset) -> bool:
        """Whether an exclusive flag of either forbids what both hold."""
        flags = self.flags | other.flags
        return ("cpu_exclusive" in flags and not self.cpus.isdisjoint(other.cpus)) or (
            "mem_exclusive" in flags and not self.mems.isdisjoint(other.mems)
        )


class Cpuset1(Stateful[Cpuset]):
    """``cpuset.*`` of v1."""

    name = "cpuset"

    def __init__(self, machine: Hardware) -> None:
        super().__init__()
        self._machine = machine
        #: Groups whose ``cgroup.clone_children`` is set (kept by the hierarchy).
        self.cloning: set[Group] = set()

    def knobs(self) -> Iterable[Knob]:
        of = self.of
        return (
            Knob(
                "cpuset.cpus",
                lambda g: f"{of[g].cpus}\n",
                self.write_cpus,
                max_write=MAX_WRITE,
            ),
            Knob(
                "cpuset.mems",
                lambda g: f"{of[g].mems}\n",
                self.write_mems,
                max_write=MAX_WRITE,
            ),
            # In v1 they always equal what was written: there is no wish beyond the parent.
            Knob("cpuset.effective_cpus", lambda g: f"{of[g].cpus}\n"),
            Knob("cpuset.effective_mems", lambda g: f"{of[g].mems}\n"),
            *(self._flag(name, checked=True) for name in _CHECKED),
            *(self._flag(name, checked=False) for name in _PLAIN),
            Knob("cpuset.memory_pressure", lambda g: "0\n"),
            self._flag("memory_pressure_enabled", checked=False, on=On.ROOT),
            Knob(
                "cpuset.sched_relax_domain_level",
                lambda g: f"{of[g].relax}\n",
                self._relax,
            ),
        )

    def fresh(self, group: Group) -> Cpuset:
        if group.parent is None:
            flags = frozenset({"cpu_exclusive", "mem_exclusive", "sched_load_balance"})
            return Cpuset(self._machine.online, self._machine.memory_nodes, flags)
        above = self.of[group.parent]
        spread = {"memory_spread_page", "memory_spread_slab"} & above.flags
        new = Cpuset(flags=frozenset({"sched_load_balance", *spread}))
        siblings = [self.of[sibling] for sibling in self.children(group.parent)]
        alone = not any({"cpu_exclusive", "mem_exclusive"} & state.flags for state in siblings)
        if group.parent in self.cloning and alone:
            new.cpus, new.mems = above.cpus, above.mems
        return new

    def _flag(self, name: str, *, checked: bool, on: On = On.ALL) -> Knob:
        def write(group: Group, text: str) -> None:
            value, state = parsing.unsigned(text), self.of[group]
            flags = state.flags | {name} if value else state.flags - {name}
            wanted = dataclasses.replace(state, flags=flags)
            if checked:
                self._vet(group, wanted)
            self.of[group] = wanted

        return Knob(f"cpuset.{name}", lambda g: f"{int(name in self.of[g].flags)}\n", write, on)

    def _relax(self, group: Group, text: str) -> None:
        value = parsing.signed(text)
        if not -1 <= value <= 5:
            raise refused(errno.EINVAL)
        self.of[group].relax = value

    def write_cpus(self, group: Group, text: str) -> None:
        """EACCES on the root, ERANGE for impossible, EINVAL for offline CPUs."""
        wish = self._wish(group, text, self._machine.cpu_ids, self._machine.online)
        if wish == self.of[group].cpus:
            return
        wanted = dataclasses.replace(self.of[group], cpus=wish)
        self._vet(group, wanted)
        self.of[group] = wanted
        for process in group.members:
            affinity.confine(process, wish, self._machine.kernel)

    def write_mems(self, group: Group, text: str) -> None:
        """As ``write_cpus``; a node without memory is EINVAL too."""
        wish = self._wish(group, text, MAX_NODES, self._machine.memory_nodes)
        if wish == self.of[group].mems:
            return
        wanted = dataclasses.replace(self.of[group], mems=wish)
        self._vet(group, wanted)
        self.of[group] = wanted

    def _wish(self, group: Group, text: str, limit: int, there: CPUSet) -> CPUSet:
        if group.parent is None:
            raise refused(errno.EACCES)
        wish = parsing.bits(parsing.strip(text), limit)
        if not wish <= there:
            raise refused(errno.EINVAL)
        return wish

    def _vet(self, group: Group, wanted: Cpuset) -> None:
        """``validate_change``: EBUSY by a child, EACCES by the parent, EINVAL by siblings."""
        if not all(self.of[child].within(wanted) for child in self.children(group)):
            raise refused(errno.EBUSY)
        if group.parent is None:
            return
        if not wanted.within(self.of[group.parent]):
            raise refused(errno.EACCES)
        now = self.of[group]
        lost = (now.cpus and not wanted.cpus) or (now.mems and not wanted.mems)
        if lost and group.populated:
            raise refused(errno.ENOSPC)
        siblings = (sibling for sibling in self.children(group.parent) if sibling is not group)
        if any(wanted.collides(self.of[sibling]) for sibling in siblings):
            raise refused(errno.EINVAL)

    def vet(self, group: Group, process: Process) -> None:
        """No process where there is no CPU or no memory: ENOSPC (``cpuset_can_attach``)."""
        del process
        if self.of[group].empty:
            raise refused(errno.ENOSPC)

    def moved(self, group: Group, process: Process) -> None:
        affinity.confine(process, self.of[group].cpus, self._machine.kernel)

    def stop(self, group: Group) -> None:
        super().stop(group)
        self.cloning.discard(group)

    def hotplug(self) -> None:
        """A CPU came or went: the root follows; all others only ever lose.

        A group left without CPUs gives its processes to the nearest ancestor that has some
        (``remove_tasks_in_empty_cpuset``).
        """
        for group in list(self.of):
            if group.parent is None:
                self.of[group].cpus = self._machine.online
                self._settle(group)
        for group in [
            descendant for root in self.of if root.parent is None for descendant in self.below(root)
        ]:
            if group.parent is None:
                continue
            state = self.of[group]
            left = state.cpus & self.of[group.parent].cpus
            if left != state.cpus:
                state.cpus = left
                self._settle(group)

    def _settle(self, group: Group) -> None:
        state = self.of[group]
        if not state.empty:
            for process in group.members:
                affinity.confine(process, state.cpus, self._machine.kernel)
            return
        refuge = next(
            (ancestor for ancestor in group.ancestors() if not self.of[ancestor].empty), None
        )
        for process in list(group.members) if refuge else []:
            assert refuge is not None
            group.hierarchy.attach(refuge, process)
