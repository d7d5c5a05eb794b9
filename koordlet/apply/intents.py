"""Journal entries of a plan: originals, and every value that koordlet may write.

Covers: the entries of one plan, who has written a file that was ours (its usual
writer guessed from the group's name), groups' identities.
Does not cover: the file on disk (``state.journal``), carrying the plan out (``apply.executor``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from koordlet.apply import devices, kinds, resctrl, units
from koordlet.host.fs import root
from koordlet.host.process import identity
from koordlet.model import action, container_names, errors, knob, plan, snapshot
from koordlet.state import journal


class Intents:
    """One plan's view of the journal. Each group is looked at once."""

    def __init__(self, host: root.HostRoot, book: journal.Journal, now: snapshot.Snapshot) -> None:
        self._host = host
        self._book = book
        self._now = now
        self._inodes: dict[str, int] = {}

    def inode(self, wanted: action.Action) -> int:
        """The inode of an action's cgroup; 0 where it does not exist."""
        directory = kinds.directory(wanted)
        inode = self._inodes.get(directory)
        if inode is None:
            inode = self._inodes[directory] = inode_of(self._host, directory)
        return inode

    def unknown(self, wanted: action.Action) -> str:
        """The reason that an action's cgroup cannot be identified; empty where it can."""
        if not kinds.journaled(wanted):
            return ""  # an eviction names a pod, which is no directory
        try:
            self.inode(wanted)
        except OSError as error:
            return f"the cgroup's identity cannot be read: {error.strerror}"
        return ""

    def contested(self, step: plan.Step) -> bool:
        """Whether another program overwrote koordlet's value in a file."""
        wanted = step.action
        entry = self._book.entries.get(wanted.target)
        if entry is None or step.was is None or not isinstance(wanted, kinds.FILES):
            return False
        if step.was in entry.values:
            return False  # what we read back there, and nobody else's
        if entry.inode not in (0, self.inode(wanted)):
            return False  # another group under the same path: that one was never ours
        if not entry.sure and step.was == entry.original:
            return False  # killed before the write: what is there is what was there
        if _is_schemata(wanted):
            return not resctrl.undisturbed(entry, step.was)
        return not kinds.is_ours(wanted, entry.values, step.was, self._now.taken_out(wanted.group))

    def entries(
        self,
        steps: Iterable[plan.Step],
        contested: set[str],
        looked: Mapping[str, units.Properties] = MappingProxyType({}),
    ) -> list[journal.Entry]:
        """An entry for each target, with every value that it may hold on the way.

        ``looked`` is what systemd said of the properties that will be set.
        """
        by_target: dict[str, journal.Entry] = {}
        for step in steps:
            wanted = step.action
            if not kinds.journaled(wanted):
                continue
            before = by_target.get(wanted.target)
            if before is None:
                before = self._known(wanted, contested)
            # A value on the way, or tasks from several groups: one entry knows all of it.
            made = self._new(step) if before is None else _with(before, wanted)
            if isinstance(wanted, action.SetUnitProperty) and not step.undo:
                made = self._of_unit(made, wanted, looked.get(wanted.target, ()))
            elif wanted.target in contested and isinstance(wanted, action.WriteFile):
                made = self._of_parts(made, wanted, step.was or "")
            by_target[wanted.target] = made
        return list(by_target.values())

    def put_down(
        self,
        steps: Sequence[plan.Step],
        contested: set[str],
        looked: Mapping[str, units.Properties],
        patience: float,
    ) -> frozenset[str]:
        """Write the entries of these steps to disk; returns the targets that must wait for it.

        What is put back never waits: its original is on disk already, and neither a full disk nor
        one that hangs must keep us from leaving. Nor does a value that is known there as ours and
        that somebody has overwritten: a crash costs no more than his value as the original.
        """
        entries = self.entries(steps, contested, looked)
        try:
            missing = self._book.intend(entries, patience)
        except OSError as error:
            if all(step.undo for step in steps):
                self._book.remember(entries)
                return frozenset()
            raise errors.HostError(
                f"cannot write the journal: {error.strerror}; nothing was changed",
                culprit=str(self._book.path),
                fix="free space or fix permissions there",
                errno=error.errno,
            ) from error
        if not missing:
            return frozenset()
        waiting = {s.action.target for s in steps if not (s.undo or self._is_known(s.action))}
        for entry in entries:
            if entry.target in missing and entry.target not in waiting:
                self._book.note(entry)
        return frozenset(waiting.intersection(missing))

    def _is_known(self, wanted: action.Action) -> bool:
        """Whether the journal has an original for this group, and the value as one of ours."""
        entry = self._book.entries.get(wanted.target)
        return (
            entry is not None
            and kinds.value(wanted) in entry.values
            and entry.inode in (0, self.inode(wanted))
        )

    def _known(self, wanted: action.Action, contested: set[str]) -> journal.Entry | None:
        """The journal entry of the same cgroup, unless another program's value became the original.

        A unit that was started anew has another group and the same properties: what they were
        before us is known from the entry alone, also while systemd does not answer and the file
        is written.
        """
        entry = self._book.entries.get(wanted.target)
        if entry is None or wanted.target in contested:
            return None
        if entry.inode and entry.inode != self.inode(wanted):
            return entry._replace(inode=self.inode(wanted)) if entry.unit else None
        return entry

    def _of_unit(
        self,
        made: journal.Entry,
        wanted: action.SetUnitProperty,
        properties: units.Properties,
    ) -> journal.Entry:
        """An entry with the unit's originals; the old ones where systemd still has koordlet's."""
        file = wanted.target.rpartition("/")[2]
        before = self._book.entries.get(wanted.target)
        ours = () if before is None or before.unit != wanted.unit else before.values
        if before is not None and properties in [
            units.properties_of(file, value) for value in ours
        ]:
            kept = made._replace(original=before.original, values=before.values)
            made = _with(kept, wanted)
            properties = before.properties
        kind = action.SetUnitProperty.__name__
        return made._replace(
            kind=kind, unit=wanted.unit, properties=properties, inode=self.inode(wanted)
        )

    def _of_parts(self, made: journal.Entry, wanted: action.WriteFile, was: str) -> journal.Entry:
        """An entry with a new original after another program changed some domains or devices."""
        before = self._book.entries[made.target]
        if _is_schemata(wanted):
            original = resctrl.original(before, was)
        elif devices.form_of(wanted) is not None:
            original = devices.original(before, wanted, was)
        else:
            return made
        return _with(made._replace(original=original, values=before.values), wanted)

    def _new(self, step: plan.Step) -> journal.Entry:
        wanted = step.action
        return journal.Entry(
            kind=action.kind(wanted),
            target=wanted.target,
            policy=wanted.policy,
            original=step.was,
            values=(kinds.value(wanted),),
            knob=wanted.knob if isinstance(wanted, kinds.FILES) else "",
            group=wanted.group,
            inode=self.inode(wanted),
            unix_time=self._now.wall,
        )


def _is_schemata(wanted: action.Action) -> bool:
    return isinstance(wanted, action.WriteFile) and wanted.knob == knob.SCHEMATA.name


def _with(entry: journal.Entry, wanted: action.Action) -> journal.Entry:
    """The entry with one more value that koordlet may have written, last."""
    value = kinds.value(wanted)
    values = entry.values
    if values[-1:] == (value,):
        return entry
    others = [old for old in values if old != value] if value in values else values
    return entry.holding((*others, value))


def inode_of(host: root.HostRoot, directory: str, *, known: int | None = None) -> int:
    """The identity of a cgroup or of a process; 0 where it does not exist.

    Where there is no answer it is what is ``known``; without that, silence raises.
    """
    try:
        if directory.startswith("/proc/"):
            return identity.identity(host, directory) or host.inode(host.at(directory))
        return host.inode(host.at(directory))
    except OSError as error:
        if not host.silence.met(error, known=known is not None):
            return 0
        if known is None:
            raise
        return known


def back(entry: journal.Entry) -> action.WriteFile:
    """The write that restores a file's original."""
    return action.WriteFile(
        target=entry.target,
        value=entry.original or "",
        policy=entry.policy,
        reason="restore what was before koordlet",
        knob=entry.knob,
        group=entry.group,
    )


_RUNTIMES = ("cri-containerd-", "crio-", "docker-", "libpod-")


def usual_writer(group: str) -> str:
    """The usual other writer of a cgroup of this name."""
    above, _, last = group.rpartition("/")
    top = group.partition("/")[0]
    if _is_container(last):
        return "the container runtime (runc update), or systemd at a daemon-reload"
    if last == container_names.NESTED and _is_container(above.rpartition("/")[2]):
        return "the container runtime (crun update)"
    if top in ("kubepods", "kubepods.slice", "kubelet", "kubelet.slice"):
        return "the kubelet, or the container runtime below it"
    if top == "docker":
        return "Docker (docker update)"
    if last.endswith((".service", ".scope", ".slice")):
        return "systemd, at a daemon-reload or when a property of the unit is set"
    return "unknown"


def _is_container(name: str) -> bool:
    return name.startswith(_RUNTIMES) and name.endswith(".scope")


def contested_text(step: plan.Step) -> str:
    """What another program wrote into a file of ours, in a sentence."""
    wanted = step.action
    return f"{wanted.target} had {step.was!r} from another writer ({usual_writer(wanted.group)})"
