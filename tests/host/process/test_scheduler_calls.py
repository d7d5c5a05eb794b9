"""The policy of a thread, asked of and set by this kernel."""

from __future__ import annotations

import os
import subprocess

from koordlet.host.process import scheduler_calls


def test_a_policy_is_set_and_read() -> None:
    """Of a process that sleeps; its nice value is there again when it is ordinary."""
    calls = scheduler_calls.SchedulerCalls()
    with subprocess.Popen(["sleep", "100"]) as process:
        try:
            os.setpriority(os.PRIO_PROCESS, process.pid, 5)
            assert calls.policy(process.pid) == (os.SCHED_OTHER, 0)
            calls.set_policy(process.pid, os.SCHED_BATCH, 0)
            assert calls.policy(process.pid) == (os.SCHED_BATCH, 0)
            calls.set_policy(process.pid, os.SCHED_OTHER, 0)
            assert os.getpriority(os.PRIO_PROCESS, process.pid) == 5
        finally:
            process.kill()


def test_real_time_has_a_priority() -> None:
    """What this thread itself has, where it may: a real-time policy comes with its priority."""
    calls, own = scheduler_calls.SchedulerCalls(), os.sched_getscheduler(0)
    try:
        calls.set_policy(0, os.SCHED_RR, 3)
        assert calls.policy(0) == (os.SCHED_RR, 3)
    except PermissionError:
        assert os.geteuid() or calls.policy(0) == (own, 0), "no right, or a group without real time"
    finally:
        calls.set_policy(0, own, 0)
