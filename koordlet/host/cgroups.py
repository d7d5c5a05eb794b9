"""Cgroup hierarchies and groups as the kernel shows them.

Covers: v1, v2 and hybrid mounts from mountinfo, reading groups and their tree.
Does not cover: what to write there. A vanished group is ``Gone``.

Kernel facts: proc(5) on mountinfo; Documentation/admin-guide/cgroup-v2.rst.
``/proc/cgroups`` is not used: it says nothing about v2.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator
from typing import cast

from koordlet.host import root
from koordlet.model import absence, cgroup, knob

#: v1 mount options that are not controllers.
_NOT_CONTROLLERS = frozenset(
    {"rw", "ro", "xattr", "noprefix", "clone_children", "cpuset_v2_mode", "none", "all", "seclabel"}
)

#: What is read of every group, each time.
_READ = (
    knob.CPUSET_CPUS,
    knob.CPUSET_MEMS,
    knob.CPUSET_EFFECTIVE,
    knob.MEMS_EFFECTIVE,
    knob.SUBTREE,
    knob.EVENTS,
)


#: Bytes of a hot file: a CPU list of any machine, or the head of ``cpu.stat``.
_HOT = 4096
#: Link count of a directory without groups in it. A filesystem that does not count says less.
_NO_GROUPS = 2


def discover(host: root.HostRoot, base: str = "") -> cgroup.Layout:
    """The mounted hierarchies, as this process sees them. Nothing mounted is an empty layout."""
    try:
        lines = host.text(host.proc("self", "mountinfo")).splitlines()
    except OSError:
        lines = []
    found: dict[frozenset[str] | str, cgroup.Hierarchy] = {}
    for line in lines:
        one = _hierarchy(host, line, base)
        if one is None:
            continue
        key = "unified" if one.unified else one.controllers
        before = found.get(key)
        # Mounted twice: what is below /sys/fs/cgroup is where other programs look, too; of
        # two there, the later covers the earlier.
        if before is None or _usual(one) or not _usual(before):
            found[key] = one
    return cgroup.Layout(hierarchies=tuple(found.values()))


def _usual(one: cgroup.Hierarchy) -> bool:
    return one.mount.startswith("/sys/fs/cgroup")


def _hierarchy(host: root.HostRoot, line: str, base: str) -> cgroup.Hierarchy | None:
    """One line of mountinfo, or ``None`` when it is no cgroup mount with something to control."""
    left, _, right = line.partition(" - ")
    fields, tail = left.split(), right.split()
    if len(fields) < 6 or len(tail) < 3 or tail[0] not in ("cgroup", "cgroup2"):
        return None
    options = set(fields[5].split(",")) | set(tail[2].split(","))
    mount = _unescape(fields[4])
    if tail[0] == "cgroup2":
        controllers = _controllers(host, mount)
    else:
        controllers = frozenset(
            word for word in tail[2].split(",") if word not in _NOT_CONTROLLERS and "=" not in word
        )
        if not controllers:
            return None  # a named hierarchy: bookkeeping of systemd, nothing to control
    return cgroup.Hierarchy(
        mount=mount,
        unified=tail[0] == "cgroup2",
        controllers=controllers,
        base=base.strip("/"),
        # The superblock or this mount may be read-only; either refuses a write.
        writable="ro" not in options,
        why="mounted read-only" if "ro" in options else "",
    )


def _unescape(text: str) -> str:
    r"""Mountinfo writes blanks as octal: ``\040``."""
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text


def _controllers(host: root.HostRoot, mount: str) -> frozenset[str]:
    try:
        return frozenset(host.text(host.at(f"{mount}/cgroup.controllers")).split())
    except OSError:
        return frozenset()


class _Known:
    """What is kept of one group between two looks: names, identity, two descriptors, old values."""

    __slots__ = (
        "children",
        "clock",
        "cold",
        "directory",
        "hot",
        "inode",
        "links",
        "paths",
        "stat",
    )

    def __init__(self, directory: root.HostPath, paths: dict[str, root.HostPath]) -> None:
        self.directory = directory
        #: Row name to path.
        self.paths = paths
        #: What stat said in this pass; the next one asks again.
        self.stat: root.Stat | None = None
        self.inode = 0
        self.links = -1
        self.children: tuple[str, ...] | None = None
        #: Handles of the set and of the CPU clock.
        self.hot: int | None = None
        self.clock: int | None = None
        self.cold: dict[str, str] = {}


class Reader:
    """Reads groups of one layout.

    A pass ends with ``read_all``. It costs a stat and two preads of kept descriptors for each
    group; the other files are read when ``full`` is asked for, when the group is new, or when its
    set has changed. Descriptors beyond a bound are not kept.
    """

    def __init__(self, host: root.HostRoot, layout: cgroup.Layout, *, handles: int = 400) -> None:
        self.host = host
        self.layout = layout
        self._room = handles
        self._rows = tuple(row for row in _READ if layout.file(row, "") is not None)
        self._home = layout.holder("cpuset") or layout.tree or next(iter(layout.hierarchies), None)
        self._clock = layout.file(knob.CPU_USAGE, "") is not None
        self._known: dict[str, _Known] = {}

    def close(self) -> None:
        """Give all descriptors back."""
        for path in list(self._known):
            self._forget(path)

    def exists(self, path: str) -> bool:
        """True when the group is there."""
        return self._home is not None and self._stat(self._know(path)) is not None

    def tree(self, path: str) -> Iterator[str]:
        """A group and everything below it, parents first."""
        # A workload may nest groups deeper than Python nests calls.
        todo = [path]
        while todo:
            here = todo.pop()
            yield here
            todo.extend(reversed(self.children(here)))

    def children(self, path: str) -> tuple[str, ...]:
        """The groups directly below, sorted; none when the group is gone.

        The link count of a cgroup directory is two more than its groups, and changes with them; the
        time stamp does not. So an unchanged count needs no second look.
        """
        if self._home is None:
            return ()
        known = self._know(path)
        found = self._stat(known)
        if found is None:
            return ()
        changed = known.links != found.links or known.inode != found.inode
        if known.children is None or changed or found.links < _NO_GROUPS:
            known.children = self._list(path, known, found.links)
            known.links = found.links
        return known.children

    def read(self, path: str, *, full: bool = True) -> cgroup.Group | absence.Gone:
        """One group's files, as far as they exist."""
        if self._home is None:
            return absence.Gone(path)
        known = self._know(path)
        found = self._stat(known)
        if found is None:
            self._forget(path)
            return absence.Gone(path)
        if known.inode != found.inode:
            # Another group under the same path: nothing that we keep is about it.
            self._forget(path)
            known = self._know(path)
            known.stat, known.inode = found, found.inode
            full = True
        values = self._values(known, full=full)
        usage = self._usage(known)
        return cgroup.Group(path=path, inode=found.inode, values=values, usage_usec=usage)

    def read_all(self, paths: Iterable[str], *, full: bool = True) -> dict[str, cgroup.Group]:
        """The groups that are still there, by path; what is kept of all others is forgotten."""
        groups: dict[str, cgroup.Group] = {}
        for path in dict.fromkeys(paths):
            group = self.read(path, full=full)
            if isinstance(group, cgroup.Group):
                groups[path] = group
        for path, known in list(self._known.items()):
            known.stat = None
            if path not in groups:
                self._forget(path)
        return groups

    def _know(self, path: str) -> _Known:
        known = self._known.get(path)
        if known is None and self._home is not None:
            rows = (*self._rows, knob.CPU_USAGE) if self._clock else self._rows
            files = {row.name: self.layout.file(row, path) for row in rows}
            known = _Known(
                self.host.at(self._home.directory(path)),
                {name: self.host.at(where) for name, where in files.items() if where is not None},
            )
            self._known[path] = known
        return cast("_Known", known)

    def _forget(self, path: str) -> None:
        known = self._known.pop(path, None)
        for handle in (known.hot, known.clock) if known is not None else ():
            if handle is not None:
                self.host.close(handle)
                self._room += 1

    def _stat(self, known: _Known) -> root.Stat | None:
        if known.stat is None:
            try:
                known.stat = self.host.stat(known.directory)
            except OSError:
                return None
        return known.stat

    def _list(self, path: str, known: _Known, links: int) -> tuple[str, ...]:
        """Names that look like files are looked at when groups are missing among the others."""
        try:
            names = self.host.list(known.directory)
        except OSError:
            return ()
        plain = [name for name in names if not _looks_like_file(name)]
        found = [name for name in plain if self._is_group(known, name)]
        if links < _NO_GROUPS or len(found) < links - _NO_GROUPS:
            odd = [name for name in names if _looks_like_file(name)]
            found = sorted((*found, *(name for name in odd if self._is_group(known, name))))
        return tuple(f"{path}/{name}" if path else name for name in found)

    def _is_group(self, known: _Known, name: str) -> bool:
        try:
            found = self.host.stat(self.host.below(known.directory, name))
        except OSError:
            return False
        return found.kind is root.Kind.DIRECTORY

    def _values(self, known: _Known, *, full: bool) -> dict[str, str]:
        name = knob.CPUSET_CPUS.name
        known.hot, cpus = self._pread(known.hot, known.paths.get(name))
        if full or known.cold.get(name) != cpus:
            known.cold = {}
            for row in self._rows:
                text = cpus if row is knob.CPUSET_CPUS else self._text(known.paths.get(row.name))
                if text is not None:
                    known.cold[row.name] = text
        return known.cold

    def _usage(self, known: _Known) -> int | None:
        if not self._clock:
            return None
        known.clock, text = self._pread(known.clock, known.paths.get(knob.CPU_USAGE.name))
        return None if text is None else usage_usec(text)

    def _pread(
        self, handle: int | None, path: root.HostPath | None
    ) -> tuple[int | None, str | None]:
        """The text, and the handle to keep. A handle of a group that went and came is renewed."""
        if handle is None and (path is None or self._room <= 0):
            return None, self._text(path)
        try:
            if handle is None:
                handle = self.host.open(cast("root.HostPath", path))
                self._room -= 1
            return handle, self.host.pread(handle, _HOT).decode("utf-8", "replace").rstrip("\n")
        except OSError:
            if handle is not None:
                self.host.close(handle)
                self._room += 1
            return None, self._text(path)

    def _text(self, path: root.HostPath | None) -> str | None:
        if path is None:
            return None
        try:
            return self.host.text(path).rstrip("\n")
        except OSError:
            return None


def usage_usec(text: str) -> int | None:
    """CPU time in microseconds from ``cpuacct.usage`` (nanoseconds) or ``cpu.stat``."""
    try:
        if text.startswith("usage_usec "):
            return int(text.split(None, 2)[1])
        return int(text) // 1000
    except ValueError:
        return None


_FILE_PREFIXES = (
    "cgroup.", "cpu.", "cpuset.", "cpuacct.", "memory.", "io.", "pids.", "hugetlb.",
    "rdma.", "misc.", "blkio.", "devices.", "freezer.", "net_cls.", "net_prio.", "irq.",
)  # fmt: skip


def _looks_like_file(name: str) -> bool:
    return name.startswith(_FILE_PREFIXES) or name in (
        "tasks",
        "notify_on_release",
        "release_agent",
    )


def writable(host: root.HostRoot, layout: cgroup.Layout) -> cgroup.Layout:
    """The layout with ``writable`` narrowed to what this process may really write.

    A recording is read-only to us, which says nothing about the machine that it is of.
    """
    if not host.live:
        return layout
    hierarchies = tuple(
        one
        if not one.writable or host.access(host.at(one.directory("")), os.W_OK)
        else dataclasses.replace(one, writable=False, why="this user may not write there")
        for one in layout.hierarchies
    )
    return cgroup.Layout(hierarchies=hierarchies)
