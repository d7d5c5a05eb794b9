"""Who of the workloads has which cookie of core scheduling: a look at all processes of groups.

Covers: the look, and why there is none. Does not cover: the calls (``core_cookies``).
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator

from koordlet.host.fs import root
from koordlet.host.process import core_cookies
from koordlet.model import cgroup, cookies

#: Seconds between two looks: who is forked has its parent's anyway.
_EVERY = 5.0
_WHY = {
    errno.EINVAL: "this kernel has no core scheduling (CONFIG_SCHED_CORE)",
    errno.ENODEV: "no core of this machine has two online threads",
    errno.ENOSYS: "nothing runs here",
    errno.EPERM: "not permitted: CAP_SYS_PTRACE is missing",
}


class CookieReader:
    """Looks at one machine."""

    def __init__(self, host: root.HostRoot) -> None:
        self._host = host
        self._groups: frozenset[str] = frozenset()
        self._at = float("-inf")
        self._found = cookies.Cookies()

    def due(self) -> None:
        """Cookies were given or taken: the next look is not the last one."""
        self._at = float("-inf")

    def look(self, at: float, layout: cgroup.Layout, groups: Iterable[str]) -> cookies.Cookies:
        """Every process of the groups; the same as before where that was a moment ago."""
        wanted = frozenset(groups)
        if wanted != self._groups or not 0 <= at - self._at < _EVERY:
            self._groups, self._at = wanted, at
            current = self._read(layout)
            self._found = self._found if current == self._found else current
        return self._found

    def _read(self, layout: cgroup.Layout) -> cookies.Cookies:
        where = layout.holder("cpu") or layout.tree
        try:
            cores = self._host.scheduler()
            cores.get(0)
            if where is None:
                return cookies.Cookies()
            of = {
                group: dict(self._of(cores, where.directory(group)))
                for group in sorted(self._groups)
            }
        except OSError as error:
            if self._host.silence.met(error, known=bool(self._found.of)) and self._found.of:
                self.due()
                return self._found
            why = _WHY.get(error.errno or 0, f"prctl: {error.strerror}")
            return cookies.Cookies(why=why)
        return cookies.Cookies(of={group: marks for group, marks in of.items() if marks})

    def _of(
        self, cores: core_cookies.CoreSchedulingCalls, directory: str
    ) -> Iterator[tuple[int, int]]:
        procs = self._host.at(f"{directory}/cgroup.procs")
        listed = self._host.silence.answer(lambda: self._host.read(procs), b"")
        for pid in map(int, listed.split()):
            if pid == 0:
                continue  # of another PID namespace; asked for by 0, we would speak of ourselves
            try:
                yield pid, cores.get(pid)
            except OSError as error:
                # It ended meanwhile.
                if error.errno != errno.ESRCH:
                    raise
