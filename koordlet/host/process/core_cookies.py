"""Cookies of core scheduling: prctl(PR_SCHED_CORE), and who of the workloads has which.

Covers: asking for cookies, making, copying; a look at all processes of groups.
Does not cover: who shall have which (``policy.cpu.core_scheduling``), keeping account of those that
we gave (``apply.core_cookies``).

Kernel facts (Documentation/admin-guide/hw-vuln/core-scheduling.rst; prctl(2); Linux 5.14):

* The threads of a core run only tasks of one cookie at the same moment; a thread whose sibling has
  another one stays idle. A task has its parent's.
* ``CREATE`` gives a new cookie to a task of any number, ``SHARE_TO`` the caller's own, and
  ``SHARE_FROM`` makes another's the caller's. So a cookie that is there is copied by a task that
  has it: here a thread of ours, for as long as that takes. There is no call that takes one away;
  a copy of "none" does it.
* ``GET`` gives a number that stands for it, the same for all that have it, until the next boot. It
  and ``SHARE_FROM`` are about one thread, the others about a whole process where they are told so.
* EINVAL: a kernel without (``CONFIG_SCHED_CORE``); ENODEV: no core has two threads, or the others
  are switched off. Others than root need the right to look into the process (``ptrace``): EPERM.
"""

from __future__ import annotations

import ctypes
import errno
import os
import threading
from collections.abc import Iterable, Iterator, Sequence

from koordlet.host.fs import root
from koordlet.host.process import threads
from koordlet.model import cgroup, cookies

_PR_SCHED_CORE = 62
_GET, _CREATE, _SHARE_TO, _SHARE_FROM = range(4)
_THREAD, _PROCESS = 0, 1

#: Seconds between two looks: who is forked has its parent's anyway.
_EVERY = 5.0
_WHY = {
    errno.EINVAL: "this kernel has no core scheduling (CONFIG_SCHED_CORE)",
    errno.ENODEV: "no core of this machine has two online threads",
    errno.ENOSYS: "nothing runs here",
    errno.EPERM: "not permitted: CAP_SYS_PTRACE is missing",
}


class CoreSchedulingCalls:
    """The calls of this machine's kernel."""

    def __init__(self) -> None:
        self._prctl = ctypes.CDLL(None, use_errno=True).prctl

    def get(self, pid: int) -> int:
        """The cookie of a process, by its first thread; 0 asks for our own."""
        c_ulonglong = ctypes.c_ulonglong()
        self._call(_GET, pid, _THREAD, ctypes.addressof(c_ulonglong))
        return c_ulonglong.value

    def create(self, pid: int) -> None:
        """A new cookie for all threads of a process."""
        self._call(_CREATE, pid, _PROCESS)

    def copy(self, source: int, pids: Sequence[int]) -> list[int]:
        """Give all threads of processes what a thread has; the errno of each, 0 where it took it.

        ``OSError`` where nothing could be copied from there.
        """
        answers: list[int] = []
        problems: list[OSError] = []

        def work() -> None:
            try:
                self._call(_SHARE_FROM, source, _THREAD)
            except OSError as error:
                problems.append(error)
                return
            for pid in pids:
                try:
                    self._call(_SHARE_TO, pid, _PROCESS)
                except OSError as error:
                    answers.append(error.errno or errno.EIO)
                else:
                    answers.append(0)

        # It has the cookie while it copies; the agent never does.
        worker = threading.Thread(target=work, name="cookies")
        threads.start(worker)
        worker.join()
        if problems:
            raise problems[0]
        return answers

    def without(self) -> int:
        """A task that has none: the first process, a thread of the kernel, or ourselves."""
        for pid in (1, 2, os.getpid()):
            try:
                if self.get(pid) == 0:
                    return pid
            except OSError as error:
                if error.errno in (errno.EINVAL, errno.ENODEV):
                    raise
        raise root.fail(errno.ESRCH, "the process has no cookie")

    def _call(self, command: int, pid: int, scope: int, address: int = 0) -> None:
        arguments = (ctypes.c_ulong(one) for one in (command, pid, scope, address))
        if self._prctl(ctypes.c_int(_PR_SCHED_CORE), *arguments) != 0:
            raise root.fail(ctypes.get_errno(), f"PR_SCHED_CORE of process {pid}")


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
            found = self._read(layout)
            self._found = self._found if found == self._found else found
        return self._found

    def _read(self, layout: cgroup.Layout) -> cookies.Cookies:
        where = layout.holder("cpu") or layout.tree
        try:
            cores = self._host.cores()
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
        return cookies.Cookies(of={one: found for one, found in of.items() if found})

    def _of(self, cores: CoreSchedulingCalls, directory: str) -> Iterator[tuple[int, int]]:
        try:
            words = self._host.read(self._host.at(f"{directory}/cgroup.procs")).split()
        except OSError as error:
            self._host.silence.pass_on(error)
            return
        for pid in map(int, words):
            if pid == 0:
                continue  # of another PID namespace; asked for by 0, we would speak of ourselves
            try:
                yield pid, cores.get(pid)
            except OSError as error:
                # It ended meanwhile.
                if error.errno != errno.ESRCH:
                    raise
