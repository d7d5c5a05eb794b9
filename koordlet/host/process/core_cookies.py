"""Cookies of core scheduling: prctl(PR_SCHED_CORE).

Covers: asking for cookies, making, copying.
Does not cover: who shall have which (``policy.cpu.core_scheduling``), keeping account of those that
we gave (``apply.core_cookies``), who of the workloads has which (``cookie_reader``).

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
from collections.abc import Sequence

from koordlet.host.process import libc, threads

_PR_SCHED_CORE = 62
_GET, _CREATE, _SHARE_TO, _SHARE_FROM = range(4)
_THREAD, _PROCESS = 0, 1


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
        raise libc.failure(errno.ESRCH, "the process has no cookie")

    def _call(self, command: int, pid: int, scope: int, address: int = 0) -> None:
        arguments = (ctypes.c_ulong(argument) for argument in (command, pid, scope, address))
        if self._prctl(ctypes.c_int(_PR_SCHED_CORE), *arguments) != 0:
            raise libc.failure(ctypes.get_errno(), f"PR_SCHED_CORE of process {pid}")
