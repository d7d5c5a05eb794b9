"""The cpuset controller of cgroup v2: wishes, and what becomes of them.

Covers: ``cpuset.cpus`` and ``.mems`` with their effective sets, hotplug, the files of partitions.
Does not cover: how partitions are decided (``partition``).

Kernel facts: ``kernel/cgroup/cpuset.c`` (``update_cpumask``, ``hotplug_update_tasks``), 6.1;
Documentation/admin-guide/cgroup-v2.rst, "Cpuset".
"""

from __future__ import annotations

import dataclasses
import errno
from collections.abc import Iterable

from koordlet.model.cpuset import CPUSet
from tests.kit.kernel import affinity, parsing
from tests.kit.kernel.cpuset1 import MAX_NODES, MAX_WRITE
from tests.kit.kernel.group import Group, Knob, On, Process
from tests.kit.kernel.partition import Cpuset, Partitions, Role
from tests.kit.kernel.tree import refused

#: The first that takes an empty set of a group with processes.
_TAKES_NOTHING = (7, 0)


class Cpuset2(Partitions):
    """``cpuset.*`` of v2."""

    def knobs(self) -> Iterable[Knob]:
        of, some = self.of, On.CHILDREN
        return (
            Knob(
                "cpuset.cpus",
                lambda g: f"{of[g].cpus}\n",
                self.write_cpus,
                some,
                MAX_WRITE,
            ),
            Knob(
                "cpuset.mems",
                lambda g: f"{of[g].mems}\n",
                self.write_mems,
                some,
                MAX_WRITE,
            ),
            Knob("cpuset.cpus.effective", lambda g: f"{of[g].effective}\n"),
            Knob("cpuset.mems.effective", lambda g: f"{of[g].effective_mems}\n"),
            Knob(
                "cpuset.cpus.partition",
                lambda g: of[g].shown() + "\n",
                self._partition,
                some,
            ),
        )

    def fresh(self, group: Group) -> Cpuset:
        if group.parent is None:
            machine = self.machine
            return Cpuset(
                machine.possible,
                machine.node_set,
                machine.online,
                machine.memory_nodes,
                role=Role.ROOT,
                exclusive=True,
            )
        above = self.of[group.parent]
        return Cpuset(effective=above.effective, effective_mems=above.effective_mems, borrows=True)

    def stop(self, group: Group) -> None:
        """A partition root gives its CPUs back (a real kernel does so a moment later)."""
        if self.of[group].partition:
            self.disable(group)
            self._borrowers(group)
        super().stop(group)

    # Writes ---------------------------------------------------------------------------------------

    def write_cpus(self, group: Group, text: str) -> None:
        """ERANGE for impossible CPUs, ENOSPC for none while populated; everything else is taken."""
        wish = parsing.bits(parsing.strip(text), self.machine.cpu_ids)
        if not wish <= self.machine.possible:
            raise refused(errno.EINVAL)
        state = self.of[group]
        if wish == state.cpus:
            return
        self._vet_nothing(group, state.cpus, wish)
        collides = self.collides(group, dataclasses.replace(state, cpus=wish))
        if collides:
            assert group.parent is not None
            for sibling in self.children(group.parent):
                if not self.of[sibling].cpus.isdisjoint(wish):
                    self.invalidate(sibling)
        if state.role is not Role.MEMBER:
            if collides:
                self.invalidate(group)
            else:
                self.reconsider(group, wish)
        state.cpus = wish
        self._keep_given(group)
        self.spread(group)
        # Partitions that were made invalid above gave CPUs back, and nobody tells the borrowers.
        if state.role is not Role.MEMBER:
            self._borrowers(group)

    def _vet_nothing(self, group: Group, before: CPUSet, wish: CPUSet) -> None:
        """Where processes live, older kernels refuse to give up all."""
        if before and not wish and group.populated and self.machine.kernel < _TAKES_NOTHING:
            raise refused(errno.ENOSPC)

    def _keep_given(self, group: Group) -> None:
        state = self.of[group]
        reach = self.attainable(group, state.cpus)
        starved = reach <= state.given and self.occupied(group)
        state.given = state.given & state.cpus if state.partition and not starved else CPUSet()

    def _borrowers(self, group: Group) -> None:
        """``update_sibling_cpumasks``: siblings that live on the parent's CPUs see a change."""
        assert group.parent is not None
        for sibling in list(self.children(group.parent)):
            if sibling is not group and self.of[sibling].borrows:
                self.spread(sibling)
        for process in self.inside(group.parent):
            cpus = self.of[group.parent].effective
            affinity.confine(process, cpus, self.machine.kernel)

    def write_mems(self, group: Group, text: str) -> None:
        """As ``write_cpus``; a possible node without memory is taken."""
        wish = parsing.bits(parsing.strip(text), MAX_NODES)
        if not wish <= self.machine.node_set:
            raise refused(errno.EINVAL)
        state = self.of[group]
        if wish == state.mems:
            return
        self._vet_nothing(group, state.mems, wish)
        state.mems = wish
        for descendant in self.below(group):
            assert descendant.parent is not None
            above = self.of[descendant.parent].effective_mems
            self.of[descendant].effective_mems = self.of[descendant].mems & above or above

    def _partition(self, group: Group, text: str) -> None:
        """The write is always taken; the outcome is in what can be read (``update_prstate``)."""
        words = {role.value: role for role in Role}
        role = words.get(parsing.strip(text))
        if role is None:
            raise refused(errno.EINVAL)
        state = self.of[group]
        if role is state.role:
            return
        if role is not Role.MEMBER and state.role is not Role.MEMBER:
            state.role = role
            return
        if role is Role.MEMBER:
            self.disable(group)
            state.role, state.valid, state.reason = role, True, ""
        else:
            state.reason = self.enable(group)
            state.role, state.valid = role, not state.reason
        if any(self.children(group)):
            # Without children its own effective set is left as it was.
            self.spread(group, force=role is Role.MEMBER)
        self._borrowers(group)

    # Processes ------------------------------------------------------------------------------------

    def moved(self, group: Group, process: Process) -> None:
        affinity.confine(process, self.of[group].effective, self.machine.kernel)

    # Hotplug --------------------------------------------------------------------------------------

    def hotplug(self) -> None:
        """A CPU came or went: wishes stay, effective sets follow."""
        for top in [group for group in self.of if group.parent is None]:
            self.of[top].effective = self.machine.online - self.of[top].given
            self.spread(top)
