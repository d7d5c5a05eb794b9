"""Core scheduling on a stand-in machine: prctl(PR_SCHED_CORE).

Covers: what ``host.process.core_cookies`` calls; cookies of processes, and the one of the thread
that asks; ESRCH, EINVAL, ENODEV.
Does not cover: threads of other processes, what a cookie does to scheduling. As
kernel/sched/core_sched.c of Linux 6.1 has it.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import threading

from koordlet.host.fs.root import fail
from koordlet.host.process import core_cookies
from tests.kit.kernel.group import Processes
from tests.kit.kernel.hardware import Hardware

_GET, _CREATE, _SHARE_TO, _SHARE_FROM = range(4)


class Cookies(core_cookies.CoreSchedulingCalls):
    """The calls, answered from memory."""

    def __init__(self, processes: Processes, machine: Hardware) -> None:
        self._processes = processes
        self._machine = machine
        self._numbers = itertools.count(0xC00C1E)
        #: Whether the kernel is built with it.
        self.built = True
        #: Process to cookie; 0 for who is missing.
        self.of: dict[int, int] = {}
        #: The cookie of the calling thread: threads of ours are born with the agent's.
        self._own = threading.local()
        #: Every call that changed something: its name and the process.
        self.changes: list[tuple[str, int]] = []

    def together(self, *pids: int) -> bool:
        """Whether these have one cookie, and nobody else has it."""
        cookies = {self.of.get(pid, 0) for pid in pids}
        return len(cookies) == 1 and set(pids) == {
            pid for pid in self._processes.table if self.of.get(pid, 0) in cookies
        }

    def _call(self, command: int, pid: int, scope: int, address: int = 0) -> None:
        del scope
        if not self.built:
            raise fail(errno.EINVAL, "prctl")
        if self._machine.threads < 2:
            raise fail(errno.ENODEV, "prctl")
        pid = pid or self._processes.agent.pid
        if pid not in self._processes.table:
            raise fail(errno.ESRCH, "prctl")
        if command == _GET:
            ctypes.c_ulonglong.from_address(address).value = self.of.get(pid, 0)
        elif command == _SHARE_FROM:
            self._own.cookie = self.of.get(pid, 0)
        else:
            agent = self.of.get(self._processes.agent.pid, 0)
            own = getattr(self._own, "cookie", agent)
            self.of[pid] = next(self._numbers) if command == _CREATE else own
            self.changes.append(("create" if command == _CREATE else "copy", pid))
