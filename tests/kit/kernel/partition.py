"""cpuset partitions of cgroup v2, step by step as kernel 6.1 does them.

Covers: who becomes a partition root or an invalid one and why, which CPUs leave the parent, how a
change runs down the tree. Does not cover: exclusive CPUs and remote partitions (6.7).

The order of steps is observable (a sibling's retreat alone does not make a partition valid again,
a later own write does), so this follows ``update_parent_subparts_cpumask`` and
``update_cpumasks_hier`` of ``kernel/cgroup/cpuset.c`` (6.1) instead of stating a rule.
"""

from __future__ import annotations

import dataclasses
import enum

from koordlet.model.cpuset import CPUSet
from tests.kit.kernel import affinity
from tests.kit.kernel.group import Group, Process, Stateful
from tests.kit.kernel.hardware import Hardware

#: ``perr_strings``.
NOT_EXCLUSIVE = "Cpu list in cpuset.cpus not exclusive"
NO_PARENT = "Parent is not a partition root"
#: From 6.7 on it may be one far from its parent, if it names CPUs that it has alone.
NOT_ALONE = "Invalid cpu list in cpuset.cpus.exclusive"
_REMOTE = (6, 7)
BAD_PARENT = "Parent is an invalid partition root"
NO_CPUS = "Parent unable to distribute cpu downstream"
FOREIGN_CPUS = "Invalid cpu list in cpuset.cpus"
EMPTY = "cpuset.cpus is empty"
_NOTHING = CPUSet()


class Role(enum.Enum):
    """What was asked for."""

    MEMBER = "member"
    ROOT = "root"
    ISOLATED = "isolated"


@dataclasses.dataclass
class Cpuset:
    """The settings and the outcome of one group."""

    #: The wish; empty is "as the parent".
    cpus: CPUSet = _NOTHING
    mems: CPUSet = _NOTHING
    effective: CPUSet = _NOTHING
    effective_mems: CPUSet = _NOTHING
    role: Role = Role.MEMBER
    #: Meaningful for partition roots only.
    valid: bool = True
    reason: str = ""
    exclusive: bool = False
    #: CPUs given to valid partitions below.
    given: CPUSet = _NOTHING
    #: True when it uses its parent's CPUs because nothing of its own wish is there.
    borrows: bool = False

    @property
    def partition(self) -> bool:
        """Whether it is a valid partition root."""
        return self.role is not Role.MEMBER and self.valid

    @property
    def broken(self) -> bool:
        """Whether it is an invalid partition root."""
        return self.role is not Role.MEMBER and not self.valid

    def shown(self) -> str:
        """As in ``cpuset.cpus.partition``."""
        if not self.broken:
            return self.role.value
        return f"{self.role.value} invalid" + (f" ({self.reason})" if self.reason else "")


class Partitions(Stateful[Cpuset]):
    """The part of the v2 cpuset controller that knows about partitions."""

    name = "cpuset"
    threaded = True

    def __init__(self, machine: Hardware) -> None:
        super().__init__()
        self.machine = machine

    # Checks ---------------------------------------------------------------------------------------

    def occupied(self, group: Group, without: Group | None = None) -> bool:
        """``partition_is_populated``: processes that need CPUs of the group itself."""
        if group.members:
            return True
        if without is None and not self.of[group].given:
            return group.populated
        return any(
            child is not without and not self.of[child].partition and child.populated
            for child in self.children(group)
        )

    def collides(self, group: Group, wanted: Cpuset) -> bool:
        """Whether the wish overlaps a sibling and one of both is exclusive."""
        assert group.parent is not None
        return any(
            (wanted.exclusive or self.of[sibling].exclusive)
            and not wanted.cpus.isdisjoint(self.of[sibling].cpus)
            for sibling in self.children(group.parent)
            if sibling is not group
        )

    def attainable(self, group: Group, cpus: CPUSet) -> CPUSet:
        """``compute_effective_cpumask``."""
        assert group.parent is not None
        parent = self.of[group.parent]
        if parent.given:
            return (parent.effective | parent.given) & cpus & self.machine.online
        return cpus & parent.effective

    # Becoming and ceasing to be a root ------------------------------------------------------------

    def enable(self, group: Group) -> str:
        """The group becomes a partition root; the reason when it cannot."""
        state = self.of[group]
        if not state.cpus:
            return EMPTY
        state.exclusive = True
        if self.collides(group, state):
            state.exclusive = False
            return NOT_EXCLUSIVE
        reason = self._parent_fault(group, state.cpus) or self._enable(group)
        state.exclusive = not reason
        return reason

    def _enable(self, group: Group) -> str:
        assert group.parent is not None
        state, parent = self.of[group], self.of[group.parent]
        if state.cpus.isdisjoint(parent.cpus):
            return FOREIGN_CPUS
        if parent.effective <= state.cpus and self.occupied(group.parent, group):
            return NO_CPUS
        self._hand_over(parent, state.cpus, CPUSet())
        return ""

    def disable(self, group: Group) -> None:
        """Back to an ordinary group."""
        assert group.parent is not None
        state, parent = self.of[group], self.of[group.parent]
        if state.partition:
            self._hand_over(parent, CPUSet(), state.cpus & parent.given)
        state.exclusive = False

    def invalidate(self, group: Group) -> None:
        """``partcmd_invalidate``: somebody broke the exclusivity."""
        assert group.parent is not None
        state, parent = self.of[group], self.of[group.parent]
        if state.partition:
            state.reason = NOT_EXCLUSIVE
            state.valid = state.exclusive = False
            self._hand_over(parent, CPUSet(), state.cpus & parent.given)

    def _parent_fault(self, group: Group, cpus: CPUSet) -> str:
        assert group.parent is not None
        parent = self.of[group.parent]
        if not parent.partition:
            return self._no_parent(parent)
        return "" if cpus else EMPTY

    def _no_parent(self, parent: Cpuset) -> str:
        if parent.broken:
            return BAD_PARENT
        return NOT_ALONE if self.machine.kernel >= _REMOTE else NO_PARENT

    def reconsider(self, group: Group, wish: CPUSet | None = None) -> None:
        """``partcmd_update``: with a new wish of its own, or after a change further up."""
        assert group.parent is not None
        state, parent = self.of[group], self.of[group.parent]
        if self._parent_fault(group, state.cpus if wish is None else wish):
            return
        adding = (state.cpus if wish is None else wish) & parent.cpus - parent.given
        leaving = CPUSet() if wish is None else (state.cpus - wish) & parent.given
        starved = bool(adding) and parent.effective <= adding
        if wish is not None:
            starved = starved and leaving.isdisjoint(self.machine.online)
        fault = starved and self.occupied(group.parent, group)
        if wish is None and state.partition and not parent.given:
            fault = True
        if fault:
            state.reason = NO_CPUS
            adding = CPUSet()
            if wish is not None or (state.partition and parent.given):
                leaving = state.cpus & parent.given
        if state.valid is fault and not self._turn(group, valid=not fault):
            return
        self._hand_over(parent, adding, leaving)

    def _turn(self, group: Group, *, valid: bool) -> bool:
        """Between valid and invalid; False when a sibling stands in the way."""
        state = self.of[group]
        if valid and not state.exclusive:
            state.exclusive = True
            if self.collides(group, state):
                state.exclusive = False
                return False
        state.exclusive = state.exclusive and valid
        state.valid = valid
        return True

    def _hand_over(self, parent: Cpuset, adding: CPUSet, leaving: CPUSet) -> None:
        parent.given = (parent.given | adding) - leaving
        parent.effective = (parent.effective - adding) | (leaving & self.machine.online)

    # A change runs down the tree ----------------------------------------------------------------

    def spread(self, top: Group, *, force: bool = False) -> None:
        """``update_cpumasks_hier``: new effective sets for the group and all below."""
        state = self.of[top]
        if top.parent is not None and self._spread_one(top, top, force=force):
            return
        for process in self.inside(top):
            affinity.confine(process, state.effective, self.machine.kernel)
        for child in list(self.children(top)):
            self._spread_below(child, top, force=force)
        # A child partition may have taken CPUs of it meanwhile.
        for process in self.inside(top):
            affinity.confine(process, state.effective, self.machine.kernel)

    def _spread_below(self, group: Group, top: Group, *, force: bool) -> None:
        if self._spread_one(group, top, force=force):
            return
        for child in list(self.children(group)):
            self._spread_below(child, top, force=force)
        for process in self.inside(group):
            affinity.confine(process, self.of[group].effective, self.machine.kernel)

    def _spread_one(self, group: Group, top: Group, *, force: bool) -> bool:
        """One group; True when nothing changes from here on downwards."""
        assert group.parent is not None
        state, parent = self.of[group], self.of[group.parent]
        new = self.attainable(group, state.cpus)
        distributed = state.partition and state.cpus == state.given
        state.borrows = not new and not distributed
        if state.borrows:
            # Guaranteed to have some, unless the parent gave all of its CPUs away.
            new = parent.effective
        if state.role is Role.MEMBER and not force and new == state.effective:
            return True
        if group is not top and state.role is not Role.MEMBER:
            if parent.partition:
                self.reconsider(group)
            else:
                state.valid = state.exclusive = False
                state.reason = self._no_parent(parent)
        self._settle(state, new)
        return False

    def _settle(self, state: Cpuset, new: CPUSet) -> None:
        state.effective = new
        if not state.given:
            return
        if not state.partition:
            state.effective = (new | state.given) & self.machine.online
            state.given = CPUSet()
            return
        state.effective = new - state.given
        if not state.effective:
            state.effective, state.given = new, CPUSet()

    def inside(self, group: Group) -> list[Process]:
        """The processes whose CPUs this group decides."""
        return [
            process
            for descendant in group.walk()
            if descendant is group or self.holder(descendant) is group
            for process in descendant.members
        ]
