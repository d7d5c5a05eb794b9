"""Cpuset files: wanted CPUs per cgroup, turned into file actions, parents first.

Covers: cutting sets to the groups above, v1 groups inside that must fit, handing the controller
down on v2, nodes of memory, comparing what the kubelet owns.
Does not cover: who shall run where (``shared_pools``), the order of writes (``apply.ordering``).

Rules:
1. Only groups that are wanted are written, on v1 with what is below them. Files of the kubelet are
   compared and reported, never rewritten.
2. A group above may leave fewer CPUs: the set is cut to what it will have by the same plan
   (``cpuset_room``); of one that a workload holds alone, that is told. When nothing remains,
   nothing is written: v2 would silently hand out the parent's whole set, v1 refuses.
3. On v2 the kernel remembers a child's own wish while its parent is narrower; on v1 the wish is
   overwritten, so it is remembered here. A v1 group is born with its parent's set: one that still
   has it wants whatever the parent has.
4. Where only ``leaves`` are wanted, the group itself keeps what it has, or is widened: a kubelet
   with the static policy writes its default set into new containers, and v1 refuses that below a
   narrower group. One without a container yet is no leaf.
5. A container of a kubelet has no wish of its own where nobody but us writes its set: what an agent
   before us has left in it is decided anew. One that runs on less than was granted at two
   decisions in a row, whoever writes it, is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from koordlet.model import cgroup, container_names, cpuset, knob
from koordlet.model.record import dataclass
from koordlet.policy.cpu import cpuset_room
from koordlet.policy.framework import proposals

#: Who wants what is nobody's in particular.
NODE = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One cgroup and the CPUs that it shall have."""

    group: str | None
    #: The pod key, or ``NODE``.
    who: str
    #: ``None``: not our business, but it has to fit into what is around it.
    cpus: cpuset.CPUSet | None
    reason: str
    #: Nodes of its memory; ``None`` leaves them.
    mems: cpuset.CPUSet | None = None
    #: A limit that protects others.
    protective: bool = False
    #: Nobody else has these CPUs: each that it cannot run on is lost to the machine.
    alone: bool = False
    #: Its files are the kubelet's: compare only.
    compare: bool = False
    #: Write the groups without children in it (rule 4).
    leaves: bool = False
    #: … and this one, to these CPUs.
    around: cpuset.CPUSet | None = None
    #: Sets that its containers have are nobody's wish (rule 5).
    anew: bool = False
    #: The groups of its containers by their names, where somebody shall hear of less than granted.
    boxes: Mapping[str, str] = field(default_factory=dict)
    #: Said where its group does not exist.
    match: str = ""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a v1 group wanted before it was narrowed."""

    #: Of the group: another one may have its path by now.
    inode: int
    cpus: cpuset.CPUSet

    @classmethod
    def parse(cls, text: str) -> Wish:
        """From its text; ``ValueError`` where it is none."""
        inode, _, cpus = text.partition(":")
        return cls(int(inode), cpuset.CPUSet.parse(cpus))

    def __str__(self) -> str:
        return f"{self.inode}:{self.cpus}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Result of ``write``."""

    #: By v1 group.
    wishes: Mapping[str, Wish] = field(default_factory=dict)
    #: Groups to the set that they will have.
    sets: Mapping[str, cpuset.CPUSet] = field(default_factory=dict)
    #: Containers that run on less than they were granted, by group.
    narrow: tuple[str, ...] = ()


def write(
    proposal: proposals.Proposal,
    wanted: Iterable[Wanted],
    *,
    wishes: Mapping[str, Wish],
    hand_down: bool,
    narrow: tuple[str, ...] = (),
) -> Files:
    """File actions of all wanted groups; ``hand_down`` allows enabling the controller (v2).

    ``narrow`` is what the last decision said of that.
    """
    listed = sorted(wanted, key=lambda want: (cgroup.depth(want.group or ""), want.who))
    writer = _Writer(proposal, listed, wishes, hand_down=hand_down)
    for want in listed:
        writer.place(want)
    for want in listed:
        writer.look_inside(want, narrow)
    return Files(wishes=writer.wishes, sets=writer.sets, narrow=tuple(writer.narrow))


class _Writer:
    """One run of ``write``."""

    def __init__(
        self,
        proposal: proposals.Proposal,
        wanted: Iterable[Wanted],
        wishes: Mapping[str, Wish],
        *,
        hand_down: bool,
    ) -> None:
        self.proposal = proposal
        self.now = now = proposal.now
        self.before = wishes
        self.hand_down = hand_down
        self.wishes: dict[str, Wish] = {}
        self.narrow: list[str] = []
        self.sets: dict[str, cpuset.CPUSet] = {}
        self._enabled: set[str] = set()
        self._children = now.children()
        self._declared = {want.group for want in wanted if want.group is not None}
        self._unified = now.layout.unified("cpuset")

    def place(self, want: Wanted) -> None:
        """Decide the files of one group."""
        if want.who != NODE:
            self.proposal.why[want.who] = want.reason
        group = self.now.groups.get(want.group) if want.group is not None else None
        if group is None:
            self.proposal.why[want.who] = (
                f"{want.reason}, once its cgroup exists ({want.match or 'no match'})"
            )
            return
        if want.cpus is None:
            self._hold(want, group)
            return
        if group.path in self.sets:
            self._say(
                want, "CPUSetNotApplied", f"cgroup {group.path} already belongs to another workload"
            )
            return
        by_systemd = self.now.through_systemd and bool(cgroup.unit_of(group.path))
        if self._unified and self.hand_down and not by_systemd:
            self._hand_down(group)
        if knob.CPUSET_CPUS.name not in group.values and not by_systemd:
            self._lacks_cpuset(want, group)
            return
        room = self._room(group)
        allowed = want.cpus & room
        if not allowed:
            self._say(
                want,
                "CPUSetNotApplied",
                f"wants CPUs {want.cpus}, its parent cgroup has only {room}",
            )
            self._hold(want, group)
            return
        if want.alone and allowed != want.cpus:
            have = f"runs on CPUs {allowed} of {want.cpus}, which it holds alone"
            fix = "widen that cgroup, or name CPUs that it has"
            self._say(want, "CPUSetTooNarrow", f"{have}: its parent cgroup has only {room}; {fix}")
        self._give(want, group, allowed)

    def _give(self, want: Wanted, group: cgroup.Group, allowed: cpuset.CPUSet) -> None:
        if want.compare:
            self._compare(want, group, allowed)
            return
        if want.leaves:
            if want.around is not None:
                self._around(want, group, want.around)
            for inner in self._undeclared(group.path):
                if not self._children.get(inner.path) and allowed & self._room(inner):
                    self._write(want, inner, allowed & self._room(inner), want.reason)
            return
        self.sets[group.path] = allowed
        self._write(want, group, allowed, want.reason)
        if not self._unified:
            before = group.cpus()
            if before is not None:
                # For when nobody lists it any more, and it lives on inside of another group.
                self._wish(group, before)
            self._inside(want, group, allowed)
        elif want.anew:
            self._anew(want, group, allowed)

    def _around(self, want: Wanted, group: cgroup.Group, cpus: cpuset.CPUSet) -> None:
        """Rule 4: the group around the leaves."""
        before, room = group.cpus(), self._room(group)
        self.sets[group.path] = cpus & room or room
        self._write(want, group, self.sets[group.path], "wide enough for the kubelet's default set")
        if before is not None:
            self._wish(group, before)

    def _anew(self, want: Wanted, top: cgroup.Group, allowed: cpuset.CPUSet) -> None:
        """Rule 5 on v2: who has no set of its own lives on the pod's."""
        for inner in self._undeclared(top.path):
            if _is_container(inner.path, top.path) and inner.cpus() is not None:
                self.sets[inner.path] = allowed
                self._write(want, inner, allowed, want.reason)

    def look_inside(self, want: Wanted, before: tuple[str, ...]) -> None:
        """Rule 5: containers that run on less than was granted."""
        for name, path in want.boxes.items() if want.cpus is not None else ():
            box = self.now.groups.get(path)
            runs = box.effective() if box is not None else None
            if box is None or runs is None:
                continue
            granted = (want.cpus or runs) & self._room(box)
            if want.protective:
                # What narrows best-effort work further narrows the group around it, too.
                around = self.now.groups.get(want.group or "")
                granted &= (around.effective() if around is not None else None) or granted
            if granted <= runs:
                continue
            self.narrow.append(path)
            if path in before:
                message = f"container {name} runs on CPUs {runs} of {granted} granted"
                fix = "a parent cgroup or another writer limits it: see koordlet explain and audit"
                self._say(want, "CPUSetTooNarrow", f"{message}; {fix}")

    def _say(self, want: Wanted, kind: str, message: str) -> None:
        self.proposal.say(kind, message, want.who)

    def _compare(self, want: Wanted, group: cgroup.Group, allowed: cpuset.CPUSet) -> None:
        effective = group.effective()
        if effective is not None and not effective <= allowed:
            message = f"{group.name} runs on CPUs {effective}, expected within {allowed}"
            self._say(
                want,
                "CPUSetViolated",
                f"{message}; the kubelet owns its cpuset, koordlet leaves it",
            )

    def _room(self, group: cgroup.Group) -> cpuset.CPUSet:
        """Members that the parent groups will leave."""
        return cpuset_room.of(self.now, group.path, self.sets)

    def _write(self, want: Wanted, group: cgroup.Group, cpus: cpuset.CPUSet, reason: str) -> None:
        self._file(want, group, knob.CPUSET_CPUS, str(cpus), reason)
        there = self._nodes(group)
        if not self._unified and group.values.get(knob.CPUSET_MEMS.name) == "":
            # A v1 group without mems refuses every task with ENOSPC.
            mems = str(there or "0")
            self._file(want, group, knob.CPUSET_MEMS, mems, f"{reason}; a v1 cpuset needs mems")
            return
        asked = want.mems & self.now.topology.memory_nodes if want.mems is not None else None
        # On v1 only a group without children can be narrowed alone: those inside must stay inside.
        leaf = self._unified or not self._children.get(group.path)
        if not asked or not leaf or knob.CPUSET_MEMS.name not in group.values:
            return
        if not asked & there:
            why = f"wants memory of NUMA nodes {asked}, its parent cgroup has only {there}"
            self._say(want, "CPUSetNotApplied", why)
            return
        why = f"{reason}; memory on the same NUMA nodes"
        self._file(want, group, knob.CPUSET_MEMS, str(asked & there), why)

    def _nodes(self, group: cgroup.Group) -> cpuset.CPUSet:
        """Nodes with memory; on v1 those that the group above has, where it has any."""
        nodes = self.now.topology.memory_nodes
        for above in () if self._unified else cgroup.ancestors(group.path):
            seen = self.now.groups.get(above)
            mems = cpuset.lenient(seen.values.get(knob.CPUSET_MEMS.name, "") if seen else "")
            if mems:
                return nodes & mems
        return nodes

    def _file(
        self, want: Wanted, group: cgroup.Group, row: knob.Knob, value: str, reason: str
    ) -> None:
        protective = want.protective and row is knob.CPUSET_CPUS
        self.proposal.write_knob(row, group.path, value, reason, protective=protective)

    # v1: inside ----------------------------------------------------------------------------------

    def _inside(self, want: Wanted, top: cgroup.Group, allowed: cpuset.CPUSet) -> None:
        """v1: every group below must stay a subset: its wish, cut to what is allowed."""
        for group in self._undeclared(top.path):
            self._fit(want, group, top.path, allowed)

    def _undeclared(self, path: str) -> Iterator[cgroup.Group]:
        """What is inside a group, parents first; what is inside a workload is that one's affair."""
        todo = list(self._children.get(path, ()))[::-1]
        while todo:
            child = todo.pop()
            if child.path not in self._declared:
                yield child
                todo.extend(list(self._children.get(child.path, ()))[::-1])

    def _fit(self, want: Wanted, group: cgroup.Group, top: str, allowed: cpuset.CPUSet) -> None:
        cpus = group.cpus()
        if cpus is None:
            return
        wish = self._wish(group, cpus, anew=want.anew and _is_container(group.path, top))
        room = self._room(group) & allowed
        target = wish & room or room
        self.sets[group.path] = target
        self._write(want, group, target, f"kept within the cpuset of {top}")

    def _hold(self, want: Wanted, group: cgroup.Group) -> None:
        """v1: a workload without a set of its own still has to fit into another one around it."""
        above = cgroup.ancestors(group.path)
        top = next((path for path in above if path in self.sets), None)
        if top is None or self._unified or want.compare or group.path in self.sets:
            return
        self._fit(want, group, top, self.sets[top])
        if group.path in self.sets:
            self._inside(want, group, self.sets[group.path])

    def _wish(
        self, group: cgroup.Group, cpus: cpuset.CPUSet, *, anew: bool = False
    ) -> cpuset.CPUSet:
        kept = self.before.get(group.path)
        if group.path in self.now.born:
            # What it has is our own doing.
            wish = self.now.born[group.path]
        elif kept is not None and kept.inode == group.inode and not anew:
            wish = kept.cpus
        elif anew or self._is_copy(group, cpus):
            wish = self.now.topology.present or self.now.topology.online
        else:
            wish = cpus
        self.wishes[group.path] = Wish(group.inode, wish)
        return wish

    def _is_copy(self, group: cgroup.Group, cpus: cpuset.CPUSet) -> bool:
        """A new v1 group is given a copy of the set above it: it has no wish, and follows that."""
        above = self.now.groups.get(group.parent)
        return above is not None and above.path in self.sets and above.cpus() == cpus

    # v2: the controller --------------------------------------------------------------------------

    def _lacks_cpuset(self, want: Wanted, group: cgroup.Group) -> None:
        if not self._unified:
            self._say(want, "CPUSetNotApplied", f"cgroup {group.path} has no cpuset files")
        elif not self.hand_down:
            self._say(
                want,
                "CPUSetNotApplied",
                f"the cpuset controller is not enabled for cgroup {group.path}: set AllowedCPUs= in"
                " its unit, or policies.shared_pools.enableControllers: true",
            )

    def _hand_down(self, group: cgroup.Group) -> None:
        """v2: the controller reaches a group only when every group above hands it down.

        Named every time, also when it is so already: what is not named any more is put back.
        """
        for above in reversed(tuple(cgroup.ancestors(group.path))):
            if above not in self._enabled:
                self._enabled.add(above)
                reason = f"enable the cpuset controller for the cgroups in {above or 'the root'}"
                self.proposal.write_knob(knob.SUBTREE, above, "+cpuset", reason)


def _is_container(path: str, top: str) -> bool:
    """Whether a group inside of a pod's is a container, or the one that crun nests in its scope."""
    if cgroup.depth(path) == cgroup.depth(top) + 1:
        return True
    above, _, name = path.rpartition("/")
    return name == container_names.NESTED and _is_container(above, top)
