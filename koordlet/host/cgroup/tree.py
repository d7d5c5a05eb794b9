"""Groups as the kernel shows them: their tree and their sets.

Covers: which groups there are, their files, told by the kernel where it tells
(``host.fs.inotify``).
Does not cover: mounts (``hierarchies``), what to write. A vanished group is ``Gone``.

Rules:
1. A look at a group that the kernel watches for us costs nothing until something happened to it.
2. Events are a short cut, not the truth: a slice of the watched sets is read at each poll, a slice
   of all groups with all their files at each rescan, and everything when somebody asks for a full
   look, or events were lost.
3. Where there are no events (a recording, no watches left), each look asks the kernel.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping
from typing import cast

from koordlet.host.cgroup import known_groups, subgroups
from koordlet.host.fs import root
from koordlet.model import absence, cgroup, knob

if typing.TYPE_CHECKING:
    from koordlet.host.fs import inotify

#: What is read of every group.
_READ = (
    knob.CPUSET_CPUS,
    knob.CPUSET_MEMS,
    knob.CPUSET_EFFECTIVE,
    knob.MEMS_EFFECTIVE,
    knob.SUBTREE,
    knob.EVENTS,
    # v1: a quota means nothing without it. On v2 both are one file.
    knob.CPU_CFS_PERIOD,
)
#: Written in one group, these change what the groups below it have.
_SPREADING = ("cpuset.", "cgroup.subtree_control")
#: A watched group is doubted, and all its files are read, at one of this many rescans.
_TURNS = 24


class CgroupReader:
    """Reads groups of one layout. Descriptors beyond a bound are not kept."""

    def __init__(self, host: root.HostRoot, layout: cgroup.Layout, *, handles: int = 400) -> None:
        self.host = host
        self.layout = layout
        #: Grows when something that was read may not be so any more.
        self.generation = 0
        #: Grows with what others did, as far as it was told.
        self.disturbed = 0
        self._room = handles
        places = ((row, layout.place(row)) for row in _READ)
        #: What is read here, with its hierarchy and its name there.
        self._rows = tuple((row, *place) for row, place in places if place is not None)
        self._set = layout.place(knob.CPUSET_CPUS)
        self._home = layout.holder("cpuset") or layout.tree or next(iter(layout.hierarchies), None)
        self._known: dict[str, known_groups.Known] = {}
        self._round = 0
        self._samples = known_groups.GroupSamples(host)
        self._turn = 0
        #: No group came or went since the last look at all of them, as far as anybody knows.
        self._settled = False
        self._events: inotify.Inotify | None = None
        self._watched: dict[int, str] = {}
        names = (row.file(unified=bool(self._home and self._home.unified)) for row in _OURS)
        self._names = frozenset(name for name in names if name is not None)

    # Events --------------------------------------------------------------------------------------

    def watch(self, events: inotify.Inotify) -> None:
        """Have the kernel tell what happens, from the next look on."""
        self._events = events
        self._doubt()
        self.generation += 1
        self.disturbed += 1

    @property
    def watched(self) -> bool:
        """True if the kernel sends events of cgroups."""
        return self._events is not None

    def hear(self, ours: Iterable[str] = ()) -> bool:
        """Read the kernel's events: true if something that was read has changed.

        ``ours`` are files that we wrote ourselves: those are read again, and surprise nobody.
        """
        if self._events is None:
            return False
        events = self._events.drain()
        if self._take(events):
            self.generation += 1
            mine = frozenset(ours)
            heard = any(self._where(event) not in mine for event in events if self._matters(event))
            self.disturbed += heard
            return heard
        return False

    def _matters(self, event: inotify.InotifyEvent) -> bool:
        known = event.watch < 0 or event.watch in self._watched
        return known and (event.directory or event.name in self._names)

    def _where(self, event: inotify.InotifyEvent) -> str:
        path = self._watched.get(event.watch)
        return "" if path is None else f"{self._known[path].directory}/{event.name}"

    def poll(self) -> bool:
        """Like ``hear``, with rule 2; always true without events."""
        heard = self.hear()
        # Rule 2: one slice of the watched sets.
        sampled = self._events is None or self._samples.next(self._known.values())
        self.generation += sampled
        self.disturbed += sampled
        return heard or sampled

    def _take(self, events: Iterable[inotify.InotifyEvent]) -> bool:
        spread: set[str] = set()
        changed = False
        for event in events:
            path = self._watched.get(event.watch)
            if event.watch < 0:
                self._doubt()
                changed = True
            elif path is None or not self._matters(event):
                continue
            elif event.directory:
                self._came_or_went(path, event.name)
                changed = True
            else:
                self._known[path].stale = changed = True
                if event.name.startswith(_SPREADING):
                    spread.add(path)
        for path, known in self._known.items() if spread else ():
            known.stale |= not spread.isdisjoint(cgroup.ancestors(path))
        return changed

    def _came_or_went(self, path: str, name: str) -> None:
        self._settled = False
        known = self._known[path]
        known.stat = known.children = None
        child = self._known.get(f"{path}/{name}" if path else name)
        if child is not None:
            child.stat = child.children = None
            child.stale = True

    def _doubt(self) -> None:
        """Nothing that is kept is certain any more."""
        self._settled = False
        for known in self._known.values():
            known.stat = known.children = None
            known.stale = True

    # Looking -------------------------------------------------------------------------------------

    def close(self) -> None:
        """Give all descriptors and watches back."""
        for path in list(self._known):
            self._forget(path)

    def exists(self, path: str) -> bool:
        """True when the group is there."""
        if self._home is None:
            return False
        if self._there(path) is not None:
            return True
        if self._events is not None:
            # Where it would appear is worth an event.
            next((above for above in cgroup.ancestors(path) if self._there(above)), None)
        return False

    def width(self, path: str) -> int | None:
        """Lower bound of the number of children; ``None`` if the cgroup is gone."""
        there = self._there(path)
        return None if there is None else max(0, there[1].links - subgroups.NONE)

    def children(self, path: str) -> tuple[str, ...]:
        """The groups directly below, sorted; none when the group is gone.

        The link count of a cgroup directory is two more than its groups, and changes with them; the
        time stamp does not. So an unchanged count needs no second look.
        """
        there = self._there(path)
        if there is None:
            return ()
        known, stat = there
        changed = known.links != stat.links or known.inode not in (0, stat.inode)
        unsure = known.watch is None and stat.links < subgroups.NONE
        if known.children is None or changed or unsure:
            try:
                names = subgroups.names(self.host, known.directory, stat.links)
            except OSError as error:
                self._doubtful(known, error, known=known.children is not None)
                return known.children or ()
            known.children = tuple(f"{path}/{name}" if path else name for name in names)
            known.links = stat.links
        return known.children

    def read(self, path: str, *, full: bool = True) -> cgroup.Group | absence.Gone:
        """One group's files, as far as they exist. The same object while nothing changed."""
        there = self._there(path)
        if there is None:
            self._forget(path)
            return absence.Gone(path)
        known, stat = there
        if known.inode not in (0, stat.inode):
            # Another group under the same path: nothing that we keep is about it.
            self._forget(path)
            return self.read(path)
        known.inode = stat.inode
        if full or known.stale or known.group is None:
            return self._group(path, known)
        held = known.group.values.get(knob.CPUSET_CPUS.name)
        if known.watch is None and self._hot(path, known) != held:
            return self._group(path, known)
        return known.group

    def read_all(self, paths: Iterable[str], *, full: bool = True) -> dict[str, cgroup.Group]:
        """Read existing cgroups by path; those not requested are forgotten in time."""
        self._round += full
        groups: dict[str, cgroup.Group] = {}
        for path in dict.fromkeys(paths):
            group = self.read(path, full=full)
            if isinstance(group, cgroup.Group):
                groups[path] = group
        for path, known in list(self._known.items()):
            if known.watch is None:
                known.stat = None
            if path not in groups and (known.stat is None or known.round < self._round - 1):
                self._forget(path)
        self._settled = True
        return groups

    def renewed(self, groups: Mapping[str, cgroup.Group]) -> Mapping[str, cgroup.Group] | None:
        """Groups of the last look with current values; the same mapping if nothing is new.

        Only what is in doubt is read. ``None`` where a group came or went: all are to be looked at.
        """
        if self._events is None or not self._settled:
            return None
        reread: dict[str, cgroup.Group] = {}
        doubted = [path for path, known in self._known.items() if known.stale or known.stat is None]
        for path in doubted:
            known = self._known[path]
            inside, inode = known.children, known.inode
            if known.watch is None or path not in groups:
                return None  # nobody tells of it, or it may be there now
            group = self.read(path, full=False)
            if not isinstance(group, cgroup.Group) or group.inode != inode:
                return None
            if inside is not None and self.children(path) != inside:
                return None
            if group is not groups[path]:
                reread[path] = group
        return {**groups, **reread} if reread else groups

    def rescan(self) -> None:
        """The next look asks the kernel about the part whose turn it is, and reads that anew."""
        self._turn = (self._turn + 1) % _TURNS
        every = list(self._known.values())
        for known in (
            *every[self._turn :: _TURNS],
            *[known for known in every if known.watch is None],
        ):
            known.stat, known.stale = None, True
        self.generation += 1

    def _know(self, path: str) -> known_groups.Known:
        """Begin to know a group."""
        home = cast("cgroup.Hierarchy", self._home)
        known = known_groups.Known(self.host.at(home.directory(path)))
        self._known[path] = known
        self._samples.forget()
        return known

    def _forget(self, path: str) -> None:
        known = self._known.pop(path, None)
        if known is None:
            return
        self._settled = False
        self._samples.forget()
        self._close(known)
        if known.watch is not None and self._watched.pop(known.watch, None) is not None:
            cast("inotify.Inotify", self._events).remove(known.watch)

    def _there(self, path: str) -> tuple[known_groups.Known, root.Stat] | None:
        """Cached state and directory of a cgroup; ``None`` if it does not exist."""
        if self._home is None:
            return None
        known = self._known.get(path) or self._know(path)
        known.round = self._round
        stat = known.stat
        if stat is None:
            try:
                # The watch comes first: what happens after this look is told.
                self._attach(path, known)
                stat = known.stat = self.host.stat(known.directory)
            except OSError as error:
                if not self._doubtful(known, error, known=known.group is not None):
                    return None
                # What was there is there, until the kernel says otherwise.
                stat = root.Stat(root.FileKind.DIRECTORY, known.inode, known.links, 0, 0, 0.0)
        return known, stat

    def _doubtful(self, group: known_groups.Known, error: OSError, *, known: bool) -> bool:
        """True if the cached state may be stale, because the kernel does not answer."""
        group.stale = self.host.silence.met(error, known=known)
        return group.stale and known

    def _attach(self, path: str, known: known_groups.Known) -> None:
        if self._events is None:
            return
        try:
            number = self._events.add(known.directory)
        except OSError:
            return  # gone, or no watches left: it is polled
        if known.watch not in (None, number):
            # The group that was watched under this path is gone.
            self._watched.pop(known.watch, None)
        if known.watch != number:
            self._samples.forget()
        known.watch = number
        self._watched[number] = path

    # Files ---------------------------------------------------------------------------------------

    def _group(self, path: str, known: known_groups.Known) -> cgroup.Group:
        values = {}
        last = known.group.values if known.group is not None else {}
        silent = self.host.silence.count
        for row, where, name in self._rows:
            if row is knob.EVENTS and knob.SUBTREE.name not in values:
                continue  # every group of the v2 tree has both: beside v1, most are not in it
            hot = row is knob.CPUSET_CPUS
            held = last.get(row.name)
            text = self._hot(path, known) if hot else self._text(where, name, path, held)
            if text is not None:
                values[row.name] = known_groups.shared(text)
        before, known.stale = known.group, silent != self.host.silence.count
        if before is None or before.inode != known.inode or before.values != values:
            known.group = cgroup.Group(path=path, inode=known.inode, values=values)
            self._samples.forget()
        return cast("cgroup.Group", known.group)

    def _hot(self, path: str, known: known_groups.Known) -> str | None:
        """The group's set, which is read through a handle that is kept."""
        if self._set is None:
            return None
        before = known.hot
        data = self._kept(path, known, *self._set)
        if known.hot != before:
            self._samples.forget()
        if data is not None and len(data) < known_groups.HOT:
            return data.decode("utf-8", "replace").rstrip("\n")
        held = None if known.group is None else known.group.values.get(knob.CPUSET_CPUS.name)
        return self._text(*self._set, path, held)

    def _kept(
        self, path: str, known: known_groups.Known, where: cgroup.Hierarchy, name: str
    ) -> bytes | None:
        """One read through the handle, which a group that came anew has anew; else ``None``."""
        try:
            if known.hot is None:
                if self._room <= 0:
                    return None
                known.hot = self.host.open(self._file(where, name, path))
                self._room -= 1
            return self.host.pread(known.hot, known_groups.HOT)
        except OSError:
            self._close(known)
            return None

    def _close(self, known: known_groups.Known) -> None:
        if known.hot is not None:
            self.host.close(known.hot)
            self._room += 1
            known.hot = None

    def _file(self, where: cgroup.Hierarchy, name: str, group: str) -> root.HostPath:
        # Made anew: paths of all files of a thousand groups would be a megabyte.
        return self.host.at(f"{where.directory(group)}/{name}")

    def _text(self, where: cgroup.Hierarchy, name: str, group: str, held: str | None) -> str | None:
        """Content of a file, or its last content if the kernel does not answer."""
        try:
            return self.host.text(self._file(where, name, group)).rstrip("\n")
        except OSError as error:
            return held if self.host.silence.met(error, known=held is not None) else None


#: Files whose writing by anybody is worth a look: what the table has, but for the tasks. The kernel
#: tells of its own events in the same way.
_OURS = tuple(
    row
    for row in knob.TABLE.values()
    if row is knob.EVENTS or (row.access is knob.Access.WRITE and row is not knob.PROCS)
)
