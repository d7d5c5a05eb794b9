"""Scheduling classes on a stand-in machine: sched_getscheduler(2), sched_setscheduler(2).

Covers: policy and priority of processes, each of which has one thread; ESRCH; EPERM where the test
says so. Does not cover: what a class does to scheduling, inheritance, budgets of groups.
"""

from __future__ import annotations

import errno
import os

from koordlet.host.process import scheduler_calls
from tests.kit.kernel.cookies import Cookies
from tests.kit.kernel.group import Processes
from tests.kit.kernel.hardware import Hardware
from tests.kit.kernel.tree import refused


class Scheduling(Cookies, scheduler_calls.SchedulerCalls):
    """The scheduler's calls, answered from memory."""

    #: Whether groups have a budget of real time, which is nothing for all but the root.
    grouped = False

    def __init__(self, processes: Processes, machine: Hardware) -> None:
        super().__init__(processes, machine)
        #: Thread to policy and priority; who is missing is ordinary.
        self.classes: dict[int, tuple[int, int]] = {}

    def policy(self, tid: int) -> tuple[int, int]:
        """As it is remembered."""
        if tid not in self._processes.table:
            raise refused(errno.ESRCH)
        return self.classes.get(tid, (os.SCHED_OTHER, 0))

    def set_policy(self, tid: int, policy: int, priority: int) -> None:
        """Remember it."""
        self.policy(tid)
        if self.grouped and policy in (os.SCHED_RR, os.SCHED_FIFO):
            raise refused(errno.EPERM)
        self.classes[tid] = (policy, priority)
