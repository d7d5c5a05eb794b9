"""The book of gangs: which there are, who is in them, which are satisfied together.

Covers: members by gang, groups as connected sets, what a group lacks, whether it was satisfied
once, what has changed since somebody looked. Does not cover: who may be tried (``admission``),
deciding (``attempt``).

Rules:
1. A member is a pod of the gang that exists; a *child* is a member that counts: neither
   terminating nor gated. Pods that have ended do not exist here. A child is *bound* when the store
   shows it on a node.
2. A group is the connected set of gangs that name each other, in either direction. Gangs of
   Kubernetes' own kind are alone.
3. A group is satisfied once from the moment that it is released or any child is bound, until a
   gang of it has no child and no child of the group is bound: a job that starts anew.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import field
from operator import attrgetter

from koordlet.kubeapi.pod_groups import GangForm, Membership, PodGroup
from koordlet.model.record import dataclass
from koordlet.scheduler.gangs import gang as gang_model
from koordlet.scheduler.gangs.gang import Gang, GangDefaults, Obstacle
from koordlet.scheduler.gangs.mentions import Mention, Mentions
from koordlet.scheduler.objects.pods import Pod

#: Notices that wait to be read; more are dropped.
_NOTICES = 1000
#: What a pod says of its gang.
_CONFIGURED = attrgetter("min", "total", "strict", "match_policy", "wait_seconds", "group_ids")


class Lack(enum.Enum):
    """What a gang lacks before its group may be tried."""

    NOTHING = ""
    EXISTENCE = "doesn't exists"
    DEFINITION = "has not init"
    CHILDREN = "child pod not collect enough"

    #: Groups are asked about each member; Python 3.11 hashes members in Python otherwise.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class GangNotice:
    """Something about a gang that its owner should know, for an event on a pod."""

    pod: Pod
    reason: str
    message: str


@dataclass(slots=True, eq=False)
class GangEntry:
    """A gang and its members; also of a gang that others name and that does not exist."""

    key: str
    #: ``None``: not initialised, or unknown.
    gang: Gang | None = None
    pod_group: PodGroup | None = None
    members: dict[str, Pod] = field(default_factory=dict)
    children: dict[str, Pod] = field(default_factory=dict)
    bound: set[str] = field(default_factory=set)
    #: Rule 3; ``GangGroup.satisfied`` is the answer.
    satisfied: bool = False
    lack: Lack = Lack.EXISTENCE
    mention: Mention | None = None
    #: A binding of a released member failed, and since then it has been below its minimum.
    broken: bool = False
    group: GangGroup | None = None

    def lacking(self) -> Lack:
        """What it lacks now."""
        if self.gang is not None:
            return Lack.CHILDREN if len(self.children) < self.gang.min else Lack.NOTHING
        objectless = any(
            pod.gang is not None and not pod.gang.has_object for pod in self.members.values()
        )
        return Lack.DEFINITION if self.pod_group is not None or objectless else Lack.EXISTENCE


@dataclass(slots=True, eq=False)
class GangGroup:
    """Gangs that are satisfied together, in the order of their keys."""

    entries: tuple[GangEntry, ...]
    satisfied: bool
    lacks: dict[Lack, set[str]]
    obstacle: Obstacle | None = None
    #: It has failed, and is not tried before.
    denied_until: float = 0.0

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of its gangs, sorted."""
        return tuple(entry.key.partition("@")[0] for entry in self.entries)

    @property
    def ready(self) -> bool:
        """Whether no gang of it lacks anything."""
        return len(self.lacks[Lack.NOTHING]) == len(self.entries)

    @property
    def strict(self) -> bool:
        """Whether a failure takes everything back: one strict gang is enough."""
        return any(entry.gang is None or entry.gang.strict for entry in self.entries)

    @property
    def emptied(self) -> bool:
        """Whether a gang of it has no child, and no child of any runs."""
        entries = self.entries
        return not (any(each.bound for each in entries) or all(each.children for each in entries))

    def children(self) -> Iterator[Pod]:
        """The children of all its gangs."""
        for entry in self.entries:
            yield from entry.children.values()


class GangBook:
    """All gangs."""

    def __init__(self, defaults: GangDefaults | None = None) -> None:
        self._defaults = GangDefaults() if defaults is None else defaults
        self._entries: dict[str, GangEntry] = {}
        #: The gang of each member.
        self._gang_of: dict[str, str] = {}
        self._mentions = Mentions()
        #: Gangs whose group may be admitted differently now, and those whose counts differ: in the
        #: order of the changes, until the reader drops them.
        self.unsettled: dict[str, None] = {}
        self.touched: dict[str, None] = {}
        self._notices: list[GangNotice] = []

    def __iter__(self) -> Iterator[GangEntry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> GangEntry | None:
        """The entry of a gang."""
        return self._entries.get(key)

    def of(self, pod: Pod) -> GangEntry | None:
        """The gang of a pod; ``None`` where it is in none."""
        return None if pod.gang is None else self._entries.get(pod.gang.key)

    def gang(self, pod: Pod) -> Gang | None:
        """The gang of a pod as it is configured."""
        entry = self.of(pod)
        return entry.gang if entry is not None else None

    def take_notices(self) -> list[GangNotice]:
        """What owners of gangs should know, once."""
        notices, self._notices = self._notices, []
        return notices

    # What changes.

    def put(self, pod: Pod) -> None:
        """Take in a pod, or its newer value; ``node`` is what the store says."""
        known = self._gang_of.get(pod.key)
        if known is not None and (pod.gang is None or pod.gang.key != known):
            self.drop(pod)
        if pod.gang is None:
            return
        entry = self._entry(pod.gang.key)
        self._gang_of[pod.key] = entry.key
        before, alone = entry.members.get(pod.key), not entry.members
        entry.members[pod.key] = pod
        if pod.terminating or pod.gates:
            self._uncount(entry, pod.key)
        else:
            entry.children[pod.key] = pod
            if pod.node:
                entry.bound.add(pod.key)
            else:
                entry.bound.discard(pod.key)
        if before is None or before.gang != pod.gang:
            self._joined(entry, pod, pod.gang)
        if alone and entry.pod_group is not None:
            # An event needs a pod, and the PodGroup came before its first one.
            self._notice_gang(entry)
        if entry.bound and not entry.satisfied:
            self.satisfy(entry)
        self._changed(entry)

    def drop(self, pod: Pod) -> None:
        """A pod has gone, or is a member no more."""
        entry = self._entries.get(self._gang_of.pop(pod.key, ""))
        if entry is None:
            return
        entry.members.pop(pod.key, None)
        self._uncount(entry, pod.key)
        if not entry.members and entry.pod_group is None:
            self._define(entry, None)
        self._changed(entry)
        self._prune(entry)

    def put_pod_group(self, pod_group: PodGroup) -> None:
        """Take in a PodGroup, or its newer value."""
        entry = self._entry(pod_group.key)
        entry.pod_group = pod_group
        self._define(entry, gang_model.of_pod_group(pod_group, self._defaults))
        self._changed(entry)

    def drop_pod_group(self, key: str) -> None:
        """A PodGroup has gone: what its pods say counts, where they say anything."""
        entry = self._entries.get(key)
        if entry is None:
            return
        entry.pod_group = None
        configured = (
            gang_model.of_membership(pod.gang, self._defaults)
            for pod in entry.members.values()
            if pod.gang is not None
        )
        self._define(entry, next((gang for gang in configured if gang is not None), None))
        self._changed(entry)
        self._prune(entry)

    def satisfy(self, entry: GangEntry) -> None:
        """Record that the group of a gang was released, or has a bound child (rule 3)."""
        group = self.group(entry)
        for each in group.entries:
            each.satisfied = True
        if not group.satisfied:
            group.satisfied = True
            self.unsettled[entry.key] = None

    def withdraw(self, group: GangGroup) -> None:
        """Record that a released group is decided again: where nothing is bound, as if anew."""
        if group.satisfied and not any(entry.bound for entry in group.entries):
            self._start_anew(group)

    def _start_anew(self, group: GangGroup) -> None:
        for each in group.entries:
            each.satisfied = False
        if group.satisfied:
            group.satisfied = False
            self.unsettled[group.entries[0].key] = None

    def broke(self, entry: GangEntry, pod: Pod, left: int) -> None:
        """Record that a gang fell below its minimum as a released member was not bound."""
        minimum = entry.gang.min if entry.gang is not None else 0
        if not entry.broken:
            message = f"gang {entry.key} has {left} of {minimum} members: a binding failed"
            self._notice((pod,), "GangBroken", message)
        entry.broken = True
        self.touched[entry.key] = None

    # Groups.

    def group(self, entry: GangEntry) -> GangGroup:
        """The group of a gang."""
        group = entry.group
        if group is None:
            entries = tuple(self._entry(key) for key in sorted(self._connected(entry.key)))
            lacks: dict[Lack, set[str]] = {lack: set() for lack in Lack}
            satisfied = any(each.satisfied for each in entries)
            group = GangGroup(entries, satisfied, lacks)
            for each in entries:
                each.group, each.lack = group, each.lacking()
                lacks[each.lack].add(each.key)
            self._notice_strangers(group)
        return group

    def group_of(self, key: str) -> GangGroup | None:
        """The group of a gang that is known by its key."""
        entry = self._entries.get(key)
        return self.group(entry) if entry is not None else None

    def _connected(self, key: str) -> set[str]:
        def carried(key: str) -> Mention | None:
            entry = self._entries.get(key)
            return entry.mention if entry is not None else None

        return self._mentions.connected(key, carried)

    def _notice_strangers(self, group: GangGroup) -> None:
        """Name the gangs that do not name all the others (rule 2)."""
        for entry in group.entries if len(group.entries) > 1 else ():
            names = entry.mention.names if entry.mention is not None else frozenset()
            known = len(names) + (entry.key not in names)
            if entry.gang is not None and known < len(group.entries):
                strangers = [each.key for each in group.entries if each.key not in names]
                others = next(key for key in strangers if key != entry.key)
                message = f"gang {entry.key} is in a group with {others}, which it does not name"
                self._notice(entry.members.values(), "GangGroupOneSided", message)

    def _link(self, entry: GangEntry) -> None:
        names = entry.gang.group_ids if entry.gang is not None and not entry.gang.native else ()
        before, entry.mention = entry.mention, None
        if before is not None:
            unnamed = self._mentions.remove(before, entry.key)
            self._ungroup(before.names | {entry.key})
            for name in unnamed:
                if name in self._entries:
                    self._prune(self._entries[name])
        if all(name == entry.key for name in names):
            return
        entry.mention, connects = self._mentions.add(names, entry.key)
        if connects:
            self._ungroup(entry.mention.names | {entry.key})

    def _ungroup(self, keys: Iterable[str]) -> None:
        """Forget the groups of these gangs: who is connected has changed."""
        for key in keys:
            entry = self._entries.get(key)
            group = entry.group if entry is not None else None
            if group is not None:
                for each in group.entries:
                    each.group = None
                    self.unsettled[each.key] = None

    # Single gangs.

    def _entry(self, key: str) -> GangEntry:
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = GangEntry(key)
        return entry

    def _prune(self, entry: GangEntry) -> None:
        """Forget a gang that nothing speaks of any more."""
        if not entry.members and entry.pod_group is None and entry.key not in self._mentions:
            self._ungroup((entry.key,))
            self._entries.pop(entry.key, None)

    def _uncount(self, entry: GangEntry, key: str) -> None:
        """A member does not count any more; the last one ends what was satisfied (rule 3)."""
        if entry.children.pop(key, None) is None:
            return
        last = not entry.children or entry.bound == {key}
        entry.bound.discard(key)
        group = self.group(entry)
        if last and group.emptied:
            self._start_anew(group)

    def _joined(self, entry: GangEntry, pod: Pod, membership: Membership) -> None:
        """Let a member that is new, or has changed, configure its gang, or say that it does not."""
        if membership.ignored:
            others = ", ".join(form.value for form in membership.ignored)
            form = membership.form.value
            message = f"the pod is of gang {entry.key} by its {form}: {others} ignored"
            self._notice((pod,), "GangFormIgnored", message)
        own = gang_model.of_membership(membership, self._defaults)
        if entry.gang is None and entry.pod_group is None:
            self._define(entry, own)
        elif own is not None and entry.gang is not None and not _agree(own, entry.gang):
            message = f"the pod configures gang {entry.key} differently: the first pod's counts"
            self._notice((pod,), "GangConfigurationIgnored", message)

    def _define(self, entry: GangEntry, gang: Gang | None) -> None:
        before = entry.gang
        if before == gang:
            return
        entry.gang = gang
        if (before.group_ids if before else ()) != (gang.group_ids if gang else ()):
            self._link(entry)
        self.unsettled[entry.key] = None
        self._notice_gang(entry)

    def _notice_gang(self, entry: GangEntry) -> None:
        gang, pods = entry.gang, entry.members.values()
        for problem in gang.problems if gang is not None else ():
            self._notice(pods, "GangUnreadable", problem)
        for text in gang.passed_over if gang is not None else ():
            self._notice(pods, "GangSettingIgnored", text)

    def _changed(self, entry: GangEntry) -> None:
        self.touched[entry.key] = None
        lack = entry.lacking()
        if lack is not entry.lack:
            if entry.group is not None:
                entry.group.lacks[entry.lack].discard(entry.key)
                entry.group.lacks[lack].add(entry.key)
            entry.lack = lack
            self.unsettled[entry.key] = None

    def _notice(self, pods: Iterable[Pod], reason: str, message: str) -> None:
        pod = next(iter(pods), None)
        if pod is not None and len(self._notices) < _NOTICES:
            self._notices.append(GangNotice(pod, reason, message))


def _agree(own: Gang, gang: Gang) -> bool:
    """Whether a pod configures what its gang is; forms 3 and 4 may be mixed."""
    return gang.source is not GangForm.POD_GROUP and bool(_CONFIGURED(own) == _CONFIGURED(gang))
