"""Current contents of all targets of a plan: the planner's view of the machine.

Covers: the value, and reading it through the port.
Does not cover: snapshots for policies (``host.observe``); this reads only what is about to change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field

from koordlet.apply import bursts, kinds, resctrl
from koordlet.host.devices import queueing as reader
from koordlet.host.fs import root
from koordlet.host.process import identity
from koordlet.model import absence, action, cgroup, knob, queueing, snapshot
from koordlet.model.record import dataclass
from koordlet.state import journal

#: Kinds by the name that entries of the journal have.
_WRITE_FILE = action.WriteFile.__name__
_MAKE_DIR, _MOUNT = action.MakeDir.__name__, action.Mount.__name__
_SET_QDISC, _SET_PROPERTY = action.SetQdisc.__name__, action.SetUnitProperty.__name__
#: Those that are about processes, which are looked at elsewhere.
_OF_PROCESSES = (action.MoveTasks.__name__, action.ShareCore.__name__)
_SET_REAL_TIME = action.SetRealTime.__name__


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """Contents by path. An absent target is not in the mapping."""

    #: Files: their text. Directories: ``kinds.PRESENT`` once usable. Task moves: see ``kinds``.
    texts: Mapping[str, str] = field(default_factory=dict)
    #: Inode of the directory that holds (or is) the target: the group's identity.
    inodes: Mapping[str, int] = field(default_factory=dict)
    #: The processes in groups that we made, or whose sets were empty before us, by directory.
    procs: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    #: Files that say so already, but not because systemd was told: it does not know of the value.
    untold: frozenset[str] = frozenset()
    #: Targets that gave no answer, and why: nobody knows what is there now.
    unknown: Mapping[str, absence.Unanswered] = field(default_factory=dict)


_NOTHING = Present()
#: The text of a file that somebody keeps a descriptor of; ``None``: it is opened and read.
Kept = Callable[[str], bytes | None]


def none_kept(_: str) -> bytes | None:
    """Nobody keeps a descriptor."""
    return None


def read(
    host: root.HostRoot,
    now: snapshot.Snapshot,
    actions: Iterable[action.Action],
    journaled: Iterable[journal.Entry],
    known: Present = _NOTHING,
    *,
    kept: Kept = none_kept,
) -> Present:
    """Read every target of ``actions`` and of ``journaled``.

    Files that the snapshot already holds are not read again, nor those that are ``known`` to say
    what is wanted, or what stands beside it. Of those that are ``kept``, no path is looked up.
    """
    look = _Look(host, now, known, kept)
    through_systemd = []
    # Wishes first: they know which files make a directory usable.
    for wanted in actions:
        # Of a thousand actions nearly all are files.
        if isinstance(wanted, kinds.FILES):
            text = known.texts.get(wanted.target)
            if (
                text is None
                or not kinds.same(wanted, wanted.value, text)
                or not look.knew(wanted.target)
            ):
                look.file(wanted.target, wanted.group, wanted.knob)
            other = bursts.beside(now.layout, wanted)
            if other is not None and not look.knew(other[0]):
                look.file(other[0], wanted.group, other[1])
        else:
            look.at(wanted)
        if isinstance(wanted, action.SetUnitProperty):
            through_systemd.append(wanted)
    written = {}
    for entry in journaled:
        if entry.kind != _WRITE_FILE or entry.original == "" or entry.target not in look.texts:
            look.at_entry(entry)
        if entry.kind == _SET_PROPERTY:
            written[entry.target] = (entry.inode, entry.values[-1])
    untold = {
        change.target
        for change in through_systemd
        if written.get(change.target) != (look.inodes.get(change.target, 0), change.value)
    }
    return Present(
        texts=look.texts,
        inodes=look.inodes,
        procs=look.procs,
        untold=frozenset(untold),
        unknown=look.unknown,
    )


class _Look:
    def __init__(
        self, host: root.HostRoot, now: snapshot.Snapshot, known: Present, kept: Kept
    ) -> None:
        self.host = host
        self._known = known
        self._kept = kept
        self.layout = now.layout
        self.texts: dict[str, str] = {}
        self.inodes: dict[str, int] = {}
        self.procs: dict[str, tuple[int, ...]] = {}
        self.unknown: dict[str, absence.Unanswered] = {}
        self.groups = now.groups
        #: Directory to what it is, for those of which a file was read.
        self._directories: dict[str, int] = {}
        #: Row to what comes before a group's path and after it in the path of its file.
        self._around: dict[str, tuple[str, str] | None] = {}
        self._links = now.links.links

    def knew(self, target: str) -> bool:
        """Use what is already known of a file; ``False`` where nothing is known."""
        text, inode = self._known.texts.get(target), self._known.inodes.get(target)
        if text is None or inode is None:
            return False
        self.texts[target], self.inodes[target] = text, inode
        return True

    def at(self, wanted: action.Action) -> None:
        """Read the target of an action that is not a file."""
        try:
            self._at(wanted)
        except OSError as error:
            self._unanswered(wanted.target, error)

    def at_entry(self, entry: journal.Entry) -> None:
        """Read the target of a journal entry."""
        try:
            self._at_entry(entry)
        except OSError as error:
            self._unanswered(entry.target, error)

    def file(self, target: str, path: str, row: str) -> None:
        """Read a file of a cgroup."""
        try:
            self._file(target, path, row)
        except OSError as error:
            self._unanswered(target, error)

    def _unanswered(self, target: str, error: OSError) -> None:
        """A read without an answer makes its target unknown, not absent."""
        if not self.host.silence.met(error, known=True):
            raise error
        self.unknown[target] = self.host.silence.so_far()[-1]
        for contents in (self.texts, self.inodes):
            contents.pop(target, None)

    def _at(self, wanted: action.Action) -> None:
        if isinstance(wanted, action.MakeDir):
            self._directory(wanted.target, wanted.initial)
        elif isinstance(wanted, action.MoveTasks):
            self._tasks(wanted)
        elif isinstance(wanted, action.Mount):
            self._mount(wanted.target)
        elif isinstance(wanted, action.SetQdisc):
            self._queueing(wanted.target)
        elif isinstance(wanted, action.RemoveDir):
            self._directory(wanted.target, ())

    def _at_entry(self, entry: journal.Entry) -> None:
        if entry.kind == _MAKE_DIR:
            self._directory(entry.target, ())
            self._processes(entry.target)
        elif entry.kind == _MOUNT:
            self._mount(entry.target)
        elif entry.kind == _SET_QDISC:
            self._queueing(entry.target)
        elif entry.kind == _SET_REAL_TIME:
            self._inode(entry.target, entry.target.rpartition("/")[0])
        elif entry.kind not in _OF_PROCESSES:
            self._file(entry.target, entry.group, entry.knob)
            if entry.original == "":
                # It goes back to empty only where nobody lives on it.
                self._processes(entry.target.rpartition("/")[0])

    def _processes(self, directory: str) -> None:
        members = pids(self.host, f"{directory}/{knob.PROCS.v2}")
        if members is not None:
            self.procs[directory] = members

    def _queueing(self, target: str) -> None:
        parts = queueing.of_target(target)
        if parts is None or target in self.texts:
            return
        self._inode(target, queueing.NETWORK)
        link, direction = parts
        known = next((side for side in self._links if side.name == link), None)
        if known is not None:
            self.texts[target] = known.side(direction)
            return
        # A link of before that no policy asks about any more.
        text = reader.side(self.host, link, direction)
        if text is not None:
            self.texts[target] = text

    def _mount(self, target: str) -> None:
        if resctrl.mounted_at(self.host, target):
            self.texts[target] = kinds.PRESENT
            self._inode(target, target.rpartition("/")[0])

    def _file(self, target: str, path: str, row: str) -> None:
        if target in self.texts:
            return
        group = self.groups.get(path)
        text = None if group is None else group.values.get(row)
        if group is not None and text is not None and self._is_of(target, path, row):
            self.texts[target], self.inodes[target] = text, group.inode
            return
        data = self._kept(target)
        try:
            if data is None:
                data = self.host.read(self.host.at(target))
        except OSError as error:
            self.host.silence.pass_on(error)
            return
        self.texts[target] = data.decode("utf-8", "replace").rstrip("\n")
        directory = target.rpartition("/")[0]
        inode = self._directories.get(directory)
        if inode is not None:
            self.inodes[target] = inode
        elif self._inode(target, directory):
            self._directories[directory] = self.inodes[target]

    def _is_of(self, target: str, group: str, row: str) -> bool:
        """Whether a path is that of a group's file."""
        if row not in self._around:
            place = self.layout.place(knob.TABLE[row])
            self._around[row] = place and (place[0].directory(""), f"/{place[1]}")
        around = self._around[row]
        inner = f"/{group}" if group else ""
        return around is not None and target == f"{around[0]}{inner}{around[1]}"

    def _directory(self, target: str, initial: tuple[tuple[str, str], ...]) -> None:
        if target in self.texts or not self._inode(target, target):
            return
        # Killed between mkdir and its first files, a v1 cpuset is there but takes no task.
        self.texts[target] = kinds.INCOMPLETE
        for name, _ in initial:
            try:
                if not self.host.text(self.host.at(f"{target}/{name}")).strip():
                    return
            except OSError as error:
                self.host.silence.pass_on(error)
                return
        self.texts[target] = kinds.PRESENT

    def _inode(self, target: str, directory: str) -> bool:
        try:
            inode = identity.identity(self.host, directory)
            self.inodes[target] = inode or self.host.inode(self.host.at(directory))
        except OSError as error:
            self.host.silence.pass_on(error)
            return False
        return True

    def _tasks(self, wanted: action.MoveTasks) -> None:
        if wanted.taken_from:
            # Where they come from is where they go back to: the root group.
            root_group = wanted.taken_from[0].rpartition("/")[0]
            self.texts[wanted.target] = root_group if resctrl.astray(self.host, wanted) else ""
            self._inode(wanted.target, wanted.target.rpartition("/")[0])
            return
        members = set(pids(self.host, wanted.target) or ())
        away = [pid for pid in wanted.pids if pid not in members]
        origins = (origin(self.host, self.layout, wanted.target, pid) for pid in away)
        self.texts[wanted.target] = next((where for where in origins if where), "")
        self._inode(wanted.target, wanted.target.rpartition("/")[0])


def pids(host: root.HostRoot, procs: str) -> tuple[int, ...] | None:
    """The processes in a ``cgroup.procs`` file; ``None`` when the group is gone. Silence raises."""
    try:
        return tuple(int(word) for word in host.text(host.at(procs)).split() if word.isdigit())
    except OSError as error:
        host.silence.pass_on(error)
        return None


def origin(host: root.HostRoot, layout: cgroup.Layout, procs: str, pid: int) -> str:
    """The directory of a process in the hierarchy of ``procs``; empty when it ended.

    Silence raises.
    """
    where = next((h for h in layout.hierarchies if procs.startswith(h.mount + "/")), None)
    try:
        lines = host.text(host.proc(str(pid), "cgroup")).splitlines()
    except OSError as error:
        host.silence.pass_on(error)
        return ""
    for line in lines:
        _, controllers, path = line.split(":", 2)
        names = frozenset(controllers.split(",")) if controllers else frozenset()
        if where is not None and (names == where.controllers or (where.unified and not names)):
            return where.mount + path.rstrip("/")
    return ""
