"""The scheduling class of a workload's threads: set, followed, taken back.

Covers: one action for all threads of a group and of those below.
Does not cover: the calls (``host.process.scheduler_calls``), who shall be real-time
(``policy.cpu.real_time``).

Rules:
1. Only ordinary threads (``SCHED_OTHER``) become real-time, and only threads that have exactly what
   koordlet gives become ordinary again: whoever chose a class keeps it.
2. A thread that ended is as it should be. One that was forked meanwhile has its parent's class:
   the groups are looked at again until nobody is left.
3. The journal keeps the entry while a thread is refused: on the way there some may have it, on the
   way back some have it still. A group that another one has replaced holds no thread of ours.
4. Whoever moves its own threads into groups of others takes the class along: they are not found.
"""

from __future__ import annotations

import errno

from koordlet.host.cgroup import subgroups
from koordlet.host.fs import root
from koordlet.host.process import real_time as classes
from koordlet.model import action, real_time
from koordlet.state import journal

_ROUNDS = 4


def undo(entry: journal.Entry) -> action.SetRealTime:
    """The action that makes a group's threads ordinary again."""
    return action.SetRealTime(
        target=entry.target,
        policy=entry.policy,
        reason="restore what was before koordlet: ordinary threads",
        group=entry.group,
        back=True,
    )


def carry_out(host: root.HostRoot, wanted: action.SetRealTime) -> tuple[str, str]:
    """Set the class of all threads; returns it, and what differs. One refusal stops no other."""
    scheduler = host.scheduler()
    here, there = real_time.ORDINARY, real_time.GIVEN
    if wanted.back:
        here, there = there, here
    landed = "" if wanted.back else real_time.GIVEN_TEXT
    for _ in range(_ROUNDS):
        refused: list[OSError] = []
        top = wanted.target.rpartition("/")[0]
        groups = subgroups.below(host, top) if wanted.back else wanted.groups
        todo = [
            tid
            for directory in groups
            for tid in classes.threads(host, directory)
            if classes.policy(scheduler, tid) == here
        ]
        if not todo:
            return landed, ""
        for tid in todo:
            try:
                scheduler.set_policy(tid, *there)
            except ProcessLookupError:
                continue
            except OSError as error:
                refused.append(error)
        if refused:
            raise refused[0]
    if wanted.back:
        raise root.fail(errno.EAGAIN, wanted.target)
    return landed, "threads are forked faster than they can be set"
