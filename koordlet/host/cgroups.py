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


class Reader:
    """Reads groups of one layout."""

    def __init__(self, host: root.HostRoot, layout: cgroup.Layout) -> None:
        self.host = host
        self.layout = layout
        self._rows = tuple(row for row in _READ if layout.file(row, "") is not None)
        self._home = layout.holder("cpuset") or layout.tree or next(iter(layout.hierarchies), None)
        self._clock = layout.file(knob.CPU_USAGE, "") is not None

    def exists(self, path: str) -> bool:
        """True when the group is there."""
        return self._home is not None and self.host.exists(self.host.at(self._home.directory(path)))

    def children(self, path: str) -> list[str]:
        """The groups directly below, sorted; none when the group is gone."""
        if self._home is None:
            return []
        directory = self.host.at(self._home.directory(path))
        try:
            names = self.host.list(directory)
        except OSError:
            return []
        found = []
        for name in names:
            # Control files have a dot after their controller's name or are one of v1's two bare
            # names; a stat decides, because group names may have dots as well.
            if _looks_like_file(name):
                continue
            try:
                kind = self.host.stat(self.host.below(directory, name)).kind
            except OSError:
                continue
            if kind is root.Kind.DIRECTORY:
                found.append(f"{path}/{name}" if path else name)
        return found

    def tree(self, path: str) -> Iterator[str]:
        """A group and everything below it, parents first."""
        yield path
        for child in self.children(path):
            yield from self.tree(child)

    def read(self, path: str) -> cgroup.Group | absence.Gone:
        """One group's files, as far as they exist."""
        if self._home is None:
            return absence.Gone(path)
        try:
            inode = self.host.stat(self.host.at(self._home.directory(path))).inode
        except OSError:
            return absence.Gone(path)
        values = {}
        for row in self._rows:
            text = self._text(row, path)
            if text is not None:
                values[row.name] = text
        return cgroup.Group(path=path, inode=inode, values=values, usage_usec=self._usage(path))

    def read_all(self, paths: Iterable[str]) -> dict[str, cgroup.Group]:
        """The groups that are still there, by path."""
        groups: dict[str, cgroup.Group] = {}
        for path in dict.fromkeys(paths):
            group = self.read(path)
            if isinstance(group, cgroup.Group):
                groups[path] = group
        return groups

    def _text(self, row: knob.Knob, path: str) -> str | None:
        where = self.layout.file(row, path)
        if where is None:
            return None
        try:
            return self.host.text(self.host.at(where)).rstrip("\n")
        except OSError:
            return None

    def _usage(self, path: str) -> int | None:
        if not self._clock:
            return None
        text = self._text(knob.CPU_USAGE, path)
        return None if text is None else usage_usec(text)


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
    """The layout with ``writable`` narrowed to what this process may really write."""
    hierarchies = tuple(
        dataclasses.replace(
            one,
            writable=one.writable and host.access(host.at(one.directory("")), os.W_OK),
        )
        for one in layout.hierarchies
    )
    return cgroup.Layout(hierarchies=hierarchies)
