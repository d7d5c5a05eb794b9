"""shared_pools: who may run on which CPUs, and the cpusets that make it so.

Covers: the LS and BE pools per NUMA node, the cpuset of every declared workload's cgroup.
Does not cover: which CPUs are reserved (``reserved_cpus``) or held alone (``exclusive_cpus``), how
much of its pool BE may use (``cpu_suppress``).

Rules:
1. LS pool = online - reserved - every exclusive set. BE pool = online - reserved - LSE sets: BE may
   use an LSR workload's idle CPUs, never an LSE one's.
2. Where the kubelet holds every CPU of the LS pool, what belongs there is left where it is.
3. Only cgroups that were declared to us are written, with what is below them. Files of the kubelet
   are compared and reported, never rewritten.
4. A cgroup above a workload may leave it fewer CPUs: the target is cut to that. When nothing
   remains, nothing is written: v2 would silently hand out the parent's whole set, v1 refuses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from koordlet.history import series
from koordlet.model import (
    action,
    adjustment,
    cgroup,
    cpuset,
    decision,
    knob,
    ledger,
    pod,
    qos,
    snapshot,
)

STEM = "shared_pools"

#: Version of ``State``: a checkpoint of another one is discarded.
SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the operator configured."""

    #: Switch the cpuset controller on along the way to a declared v2 group that lacks it.
    enable_controllers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What v1 groups inside a workload wanted before we first narrowed them.

    On v2 the kernel remembers a child's own wish while its parent is narrower; on v1 the wish is
    overwritten, so it is kept here: ``path`` → ``inode:cpu list``.
    """

    wishes: Mapping[str, str] = field(default_factory=dict)


def revive(body: Mapping[str, object]) -> State:
    """The state from a checkpoint; ``ValueError`` when it is none."""
    wishes = body.get("wishes")
    if not isinstance(wishes, dict):
        msg = "wishes is not an object"
        raise ValueError(msg)  # noqa: TRY004 -- every bad checkpoint is the same to the caller
    for path, wish in wishes.items():
        inode, _, cpus = str(wish).partition(":")
        int(inode)
        cpuset.CPUSet.parse(cpus)
        if not isinstance(path, str) or not isinstance(wish, str):
            msg = f"not a wish: {path!r}: {wish!r}"
            raise ValueError(msg)  # noqa: TRY004 -- as above
    return State(wishes=dict(wishes))


@dataclass(frozen=True, slots=True)
class Shares:
    """How the machine is divided."""

    system: cpuset.CPUSet
    ls: cpuset.CPUSet
    be: cpuset.CPUSet
    #: What single workloads hold, by UID.
    exclusive: Mapping[str, ledger.Claim]


def decide(
    now: snapshot.Snapshot, past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Divide the CPUs, and name the cpuset of every workload."""
    del past
    shares = divide(now)
    conditions = [
        _condition(one, "MalformedPod", problem) for one in now.pods for problem in one.problems
    ]
    if not shares.ls:
        conditions.append(_EMPTY)
    writer = _Writer(now, settings, state)
    for one in sorted(now.pods, key=lambda p: (cgroup.depth(p.group or ""), p.key, p.uid)):
        writer.place(one, *target(one, shares))
    machine = now.topology
    pools = tuple(
        ledger.Pool(kind=kind, cpus=cpus, socket=socket, node=node)
        for kind, whole in (("LS", shares.ls), ("BE", shares.be))
        for socket, node, cpus in machine.by_node(whole)
    )
    return decision.Decision(
        next_state=State(wishes=writer.wishes),
        actions=tuple(writer.actions),
        conditions=(*conditions, *writer.conditions),
        pools=pools,
        explanation={"LS pool": str(shares.ls), "BE pool": str(shares.be), **writer.why},
    )


def divide(now: snapshot.Snapshot) -> Shares:
    """The pools that the claims of this moment leave."""
    online = now.topology.online
    reserved = now.ledger.held(ledger.Owner.RESERVED)
    usable = online - now.ledger.held(ledger.Owner.RESERVED, ledger.Owner.SYSTEM) or online
    lse, lsr = now.ledger.held(ledger.Owner.LSE), now.ledger.held(ledger.Owner.LSR)
    held = {claim.uid: claim for claim in now.ledger.claims if claim.uid}
    return Shares(
        system=now.ledger.pool("SYSTEM") & online or reserved & online,
        ls=usable - lse - lsr,
        be=usable - lse,
        exclusive=held,
    )


def admit(
    now: snapshot.Snapshot, settings: Settings, one: pod.Pod, container: str
) -> adjustment.Adjustment:
    """The set of a container that is about to start.

    It is cut to what the groups above have: on v1 a runtime that asks for more is refused and the
    container does not start. Where they leave no more than the target, nothing is said: the
    container inherits it, also when it is narrowed further in the meantime.
    """
    del settings, container
    if one.kubelet_owned:
        return adjustment.Adjustment()
    cpus, why = target(one, divide(now))
    room = _above(now, one.group)
    if not cpus or not cpus & room or room <= cpus:
        return adjustment.Adjustment()
    return adjustment.Adjustment(cpus=cpus & room, reasons={STEM: why})


def _above(now: snapshot.Snapshot, path: str | None) -> cpuset.CPUSet:
    """The CPUs of a group, or of the nearest one above that was seen."""
    for group in (path, *cgroup.ancestors(path)) if path else ():
        seen = now.groups.get(group)
        cpus = None if seen is None else seen.cpus() or seen.effective()
        if cpus is not None:
            return cpus
    return now.topology.online


def target(one: pod.Pod, shares: Shares) -> tuple[cpuset.CPUSet | None, str]:
    """The CPUs of a workload and the reason; ``None`` where its cpuset is not our business."""
    claim = shares.exclusive.get(one.uid)
    if claim is not None:
        return claim.cpus, f"{one.qos.value} {one.key}: its exclusive CPUs"
    if one.qos is qos.Qos.BE:
        return shares.be or None, f"BE {one.key}: the BE pool"
    if one.qos is qos.Qos.SYSTEM:
        if not shares.system:
            return None, f"SYSTEM {one.key}: nothing is reserved, so it runs anywhere"
        return shares.system, f"SYSTEM {one.key}: the reserved CPUs"
    return shares.ls or None, f"{one.qos.value} {one.key}: the LS pool"


_EMPTY = decision.Condition(
    type="SharedPoolEmpty",
    status=True,
    reason="SharedPools",
    message="every CPU is held alone: workloads of the LS pool stay where they are",
)


def _condition(one: pod.Pod, name: str, message: str) -> decision.Condition:
    return decision.Condition(
        type=name, status=True, reason="SharedPools", message=message, subject=one.key
    )


class _Writer:
    """Turns targets into desired files, parents before children."""

    def __init__(self, now: snapshot.Snapshot, settings: Settings, state: State) -> None:
        self.now = now
        self.settings = settings
        self.before = state
        self.actions: list[action.Action] = []
        self.conditions: list[decision.Condition] = []
        self.wishes: dict[str, str] = {}
        self.why: dict[str, str] = {}
        self._targets: dict[str, cpuset.CPUSet] = {}
        self._enabled: set[str] = set()
        self._children = now.children()
        self._declared = {p.group for p in now.pods if p.group is not None}
        holder = now.layout.holder("cpuset")
        self._unified = holder is not None and holder.unified

    def place(self, one: pod.Pod, target: cpuset.CPUSet | None, reason: str) -> None:
        """Decide the files of one workload."""
        self.why[one.key] = reason
        group = self.now.groups.get(one.group) if one.group is not None else None
        if group is None:
            self.why[one.key] = f"{reason}, once its cgroup exists ({one.match or 'no match'})"
            return
        if target is None:
            self._hold(one, group)
            return
        if group.path in self._targets:
            self._complain(one, f"cgroup {group.path} already belongs to another workload")
            return
        if self._unified and self.settings.enable_controllers:
            self._hand_down(group)
        if knob.CPUSET_CPUS.name not in group.values:
            self._lacks_cpuset(one, group)
            return
        room = self._room(group)
        allowed = target & room
        if not allowed:
            self._complain(one, f"wants CPUs {target}, the cgroup above it has only {room}")
            self._hold(one, group)
            return
        if one.kubelet_owned:
            self._compare(one, group, allowed)
            return
        self._targets[group.path] = allowed
        self._write(one, group, allowed, reason)
        if not self._unified:
            self._inside(one, group, allowed)

    def _complain(self, one: pod.Pod, message: str) -> None:
        self.conditions.append(_condition(one, "CPUSetNotApplied", message))

    def _compare(self, one: pod.Pod, group: cgroup.Group, allowed: cpuset.CPUSet) -> None:
        effective = group.effective()
        if effective is not None and not effective <= allowed:
            message = (
                f"runs on {effective}, should be inside {allowed}; the kubelet owns its cpuset"
            )
            self.conditions.append(_condition(one, "CPUSetViolated", message))

    def _room(self, group: cgroup.Group) -> cpuset.CPUSet:
        """What the groups above leave: the nearest one that we decide, or what was observed."""
        for above in cgroup.ancestors(group.path):
            if above in self._targets:
                return self._targets[above]
            seen = self.now.groups.get(above)
            if seen is not None:
                # v1 compares with the configured set, v2 intersects the effective ones.
                limit = seen.effective() if self._unified else seen.cpus() or seen.effective()
                if limit is not None:
                    return limit
        return self.now.topology.online

    def _write(self, one: pod.Pod, group: cgroup.Group, cpus: cpuset.CPUSet, reason: str) -> None:
        self._file(one, group, knob.CPUSET_CPUS, str(cpus), reason)
        if not self._unified and group.values.get(knob.CPUSET_MEMS.name) == "":
            # A v1 group without mems refuses every task with ENOSPC.
            mems = str(self.now.topology.memory_nodes or "0")
            self._file(one, group, knob.CPUSET_MEMS, mems, f"{reason}; a v1 cpuset needs mems")

    def _file(
        self, one: pod.Pod, group: cgroup.Group, row: knob.Knob, value: str, reason: str
    ) -> None:
        target = self.now.layout.file(row, group.path)
        if target is None:
            return
        self.actions.append(
            action.WriteFile(
                target=target,
                value=value,
                policy=STEM,
                reason=reason,
                knob=row.name,
                group=group.path,
                protective=one.qos is qos.Qos.BE and row is knob.CPUSET_CPUS,
            )
        )

    def _inside(self, one: pod.Pod, top: cgroup.Group, allowed: cpuset.CPUSet) -> None:
        """v1: every group below must stay a subset: its wish, cut to what is allowed."""
        for group in self._undeclared(top.path):
            self._fit(one, group, top.path, allowed)

    def _undeclared(self, path: str) -> Iterator[cgroup.Group]:
        """What is inside a group, parents first; what is inside a workload is that one's affair."""
        todo = list(self._children.get(path, ()))[::-1]
        while todo:
            child = todo.pop()
            if child.path not in self._declared:
                yield child
                todo.extend(list(self._children.get(child.path, ()))[::-1])

    def _fit(self, one: pod.Pod, group: cgroup.Group, top: str, allowed: cpuset.CPUSet) -> None:
        cpus = group.cpus()
        if cpus is None:
            return
        wish = self._wish(group, cpus)
        room = self._room(group) & allowed
        target = wish & room or room
        self._targets[group.path] = target
        self._write(one, group, target, f"inside {top}, whose cpuset it must stay in")

    def _hold(self, one: pod.Pod, group: cgroup.Group) -> None:
        """v1: a workload without a set of its own still has to fit into another one around it."""
        above = cgroup.ancestors(group.path)
        top = next((path for path in above if path in self._targets), None)
        if top is None or self._unified or one.kubelet_owned or group.path in self._targets:
            return
        self._fit(one, group, top, self._targets[top])
        if group.path in self._targets:
            self._inside(one, group, self._targets[group.path])

    def _wish(self, group: cgroup.Group, cpus: cpuset.CPUSet) -> cpuset.CPUSet:
        kept = self.before.wishes.get(group.path, "")
        inode, _, text = kept.partition(":")
        wish = cpuset.CPUSet.parse(text) if inode == str(group.inode) else cpus
        self.wishes[group.path] = f"{group.inode}:{wish}"
        return wish

    def _lacks_cpuset(self, one: pod.Pod, group: cgroup.Group) -> None:
        if not self._unified:
            self._complain(one, f"cgroup {group.path} has no cpuset files")
        elif not self.settings.enable_controllers:
            self._complain(
                one,
                f"the cpuset controller is not enabled for cgroup {group.path}: set AllowedCPUs= in"
                " its unit, or policies.shared_pools.enableControllers: true",
            )

    def _hand_down(self, group: cgroup.Group) -> None:
        """v2: the controller reaches a group only when every group above hands it down.

        Named every time, also when it is so already: what is not named any more is put back.
        """
        for above in reversed(tuple(cgroup.ancestors(group.path))):
            self._enable(above)

    def _enable(self, path: str) -> None:
        target = self.now.layout.file(knob.SUBTREE, path)
        if target is None or path in self._enabled:
            return
        self._enabled.add(path)
        self.actions.append(
            action.WriteFile(
                target=target,
                value="+cpuset",
                policy=STEM,
                reason=f"hand the cpuset controller down to the groups in {path or 'the root'}",
                knob=knob.SUBTREE.name,
                group=path,
            )
        )
