"""Calls of the kernel's scheduler that no file stands for.

Covers: the policy and priority of a thread, and with it the cookies of cores (``core_cookies``).
Does not cover: who shall have which (``policy.cpu``), keeping account (``apply``).
"""

from __future__ import annotations

import os

from koordlet.host.process import core_cookies


class SchedulerCalls(core_cookies.CoreSchedulingCalls):
    """The calls of this machine's kernel."""

    def policy(self, tid: int) -> tuple[int, int]:
        """The policy (``os.SCHED_*``) and the real-time priority of a thread."""
        policy = os.sched_getscheduler(tid)
        # Of two calls for each of a thousand threads, one is spared: only these have a priority.
        fixed = policy & ~os.SCHED_RESET_ON_FORK in (os.SCHED_FIFO, os.SCHED_RR)
        return policy, os.sched_getparam(tid).sched_priority if fixed else 0

    def set_policy(self, tid: int, policy: int, priority: int) -> None:
        """Set both; the thread keeps its nice value for when it is ordinary again."""
        os.sched_setscheduler(tid, policy, os.sched_param(priority))
