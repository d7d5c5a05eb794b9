"""The directories and files of a stand-in resctrl: where mkdir and rmdir go, what has a name.

Covers: control and monitoring groups, ``mon_groups``, ``mon_data``.
Does not cover: what a write does (``resctrl``).
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import TYPE_CHECKING

from koordlet.model.cpuset import CPUSet
from tests.kit.kernel.tree import Directory, File, Node, refused

if TYPE_CHECKING:
    from tests.kit.kernel.resctrl import Resctrl

FILES = ("llc_occupancy", "mbm_total_bytes", "mbm_local_bytes")


class Group(Directory):
    """A control or monitoring group."""

    def __init__(self, fs: Resctrl, key: str, rmid: int) -> None:
        super().__init__()
        self.fs = fs
        #: Path below the mount; empty for the root.
        self.key = key
        self.rmid = rmid
        self.sharing = "shareable"
        self.cpus = CPUSet()

    @property
    def control(self) -> str:
        """The control group that this one is or belongs to."""
        head, inside, _ = self.key.rpartition("mon_groups/")
        return head.rstrip("/") if inside else self.key

    @property
    def monitors(self) -> bool:
        """A monitoring group."""
        return self.control != self.key

    def mkdir(self, name: str) -> None:
        if name in self.entries:
            raise refused(errno.EEXIST)
        if self.key or not self.fs.wish.alloc:
            raise refused(errno.EPERM)
        self.fs.make(name)

    def rmdir(self, name: str) -> None:
        entry = self.entries.get(name)
        if entry is None:
            raise refused(errno.ENOENT)
        if not isinstance(entry, Directory):
            raise refused(errno.ENOTDIR)
        if not isinstance(entry, Group):
            raise refused(errno.EPERM)
        self.fs.remove(entry)


class Monitors(Directory):
    """``mon_groups``."""

    def __init__(self, fs: Resctrl, above: str) -> None:
        super().__init__()
        self.fs = fs
        self.prefix = f"{above}/mon_groups/".lstrip("/")

    def mkdir(self, name: str) -> None:
        if name in self.entries:
            raise refused(errno.EEXIST)
        self.fs.make(self.prefix + name)

    def rmdir(self, name: str) -> None:
        entry = self.entries.get(name)
        if not isinstance(entry, Group):
            raise refused(errno.ENOENT if entry is None else errno.EPERM)
        self.fs.remove(entry)


class Taking(File):
    """A file that also answers a write of no bytes."""

    def write(self, data: bytes) -> None:
        self.check_alive()
        assert self._write is not None
        self._write(data.decode("utf-8", "surrogateescape"))


class MonData(Directory):
    """``mon_data``: a directory for each L3 domain that has an online CPU."""

    def __init__(self, fs: Resctrl, group: Group) -> None:
        super().__init__()
        self.fs = fs
        self.group = group

    @property
    def entries(self) -> Mapping[str, Node]:
        online = self.fs.machine.online
        domains: dict[str, Node] = {}
        for domain, cpus in self.fs.l3.items():
            if cpus & online:
                if str(domain) not in self._entries:
                    self._entries[str(domain)] = self._domain(domain)
                domains[f"mon_L3_{domain:02d}"] = self._entries[str(domain)]
        return domains

    def _domain(self, domain: int) -> Directory:
        def file(name: str) -> File:
            where = (self.group.key, domain, name)
            return File(lambda: f"{self.fs.counters.get(where, '0')}\n")

        return Directory({name: file(name) for name in FILES})


def kill(node: Node) -> None:
    """A removed directory and all in it: whoever holds a handle gets ENODEV."""
    node.gone = True
    if isinstance(node, Directory):
        for entry in node.entries.values():
            kill(entry)
