"""A machine in memory whose counters a test sets.

Covers: texts of single files in place of the stand-in's own, also behind kept descriptors.
"""

from __future__ import annotations

import errno
import math
from array import array
from collections.abc import Iterable, Mapping

from koordlet.host.cgroup import followed, hierarchies, tree
from koordlet.host.fs import root
from koordlet.model import cgroup, counters, meter
from tests.kit.kernel import KernelHost, Machine
from tests.kit.kernel.machine import Cgroup

TOP = "/sys/fs/cgroup"


class Counting(KernelHost):
    """The stand-in, and what a test says about some of its files; ``None`` takes one away."""

    def __init__(self, base: KernelHost) -> None:
        super().__init__(base.machine, base.tree, base.hierarchies)
        # One table of processes: the one that the tree's /proc shows.
        self.processes = base.processes
        self.scheduling = self.cookies = base.scheduling
        for hierarchy in base.hierarchies:
            hierarchy.processes = base.processes
        self.texts: dict[str, str | None] = {}
        #: Ends of the names of files that open and answer EOPNOTSUPP.
        self.refused: tuple[str, ...] = ()
        self._opened: dict[int, str] = {}

    def read(self, path: str) -> bytes:
        """The test's text, else the stand-in's."""
        if path in self.texts:
            return self._said(path)
        return super().read(self.at(path))

    def open(self, path: root.HostPath) -> int:
        """As the stand-in; it remembers what was opened."""
        if self.texts.get(path, "") is None:
            raise root.fail(errno.ENOENT, path)
        handle = super().open(path)
        self._opened[handle] = path
        return handle

    def pread(self, handle: int, size: int) -> bytes:
        """The test's text, else the stand-in's."""
        path = self._opened[handle]
        if self.refused and path.endswith(self.refused):
            raise root.fail(errno.EOPNOTSUPP, path)
        answer = super().pread(handle, size)
        return self._said(path)[:size] if path in self.texts else answer

    def _said(self, path: str) -> bytes:
        text = self.texts[path]
        if text is None:
            raise root.fail(errno.ENODEV, path)
        return text.encode()


def machine(version: Cgroup, *groups: str) -> Counting:
    """A machine with these groups in every hierarchy."""
    host = Counting(Machine("0-3", cgroup=version))
    for hierarchy in hierarchies.discover(host).hierarchies:
        for group in groups:
            host.mkdir(host.at(f"{hierarchy.mount}/{group}"))
    return host


def found(host: root.HostRoot) -> Mapping[str, cgroup.Group]:
    """All its groups."""
    look = tree.CgroupReader(host, hierarchies.discover(host))
    try:
        return look.read_all(followed.inside(look, "", 1 << 20) or ())
    finally:
        look.close()


def reading(
    at: float,
    values: Mapping[meter.Meter, Iterable[float]],
    *,
    names: Iterable[str] = ("a",),
    renewed: tuple[int, ...] = (),
    suspended: float = 0.0,
) -> counters.Reading:
    """A reading of all slots at once."""
    slots = {name: slot for slot, name in enumerate(names)}
    columns = {what: array("d", column) for what, column in values.items()}
    return counters.Reading(
        at=at,
        suspended=suspended,
        slots=slots,
        renewed=renewed,
        width=len(slots),
        batches=tuple(counters.Batch(what, 0, 1, column) for what, column in columns.items()),
    )


def same(value: float, other: float) -> bool:
    """Equal, or both missing."""
    return value == other or (math.isnan(value) and math.isnan(other))
