"""The scheduling class of a workload's threads: set, followed, taken back.

Covers: one action for all threads of a group and of those below.
Does not cover: the calls (``host.process.scheduler_calls``), who shall be real-time
(``policy.cpu.real_time``).

Rules:
1. Only ordinary threads (``SCHED_OTHER``) become real-time, and only threads that have exactly what
   koordlet gives become ordinary again: whoever chose a class keeps it.
2. A thread that ended is as it should be. One that was forked meanwhile has its parent's class:
   the groups are looked at again until nobody is left.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

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
    """Set the class of all threads; returns it, and what differs."""
    scheduler = host.scheduler()
    here, there = real_time.ORDINARY, real_time.GIVEN
    if wanted.back:
        here, there = there, here
    top = wanted.target.rpartition("/")[0]
    landed = "" if wanted.back else real_time.GIVEN_TEXT
    for _ in range(_ROUNDS):
        todo = [tid for tid in _threads(host, top) if classes.policy(host, tid) == here]
        if not todo:
            return landed, ""
        for tid in todo:
            with contextlib.suppress(ProcessLookupError):
                scheduler.set_policy(tid, *there)
    if wanted.back:
        raise root.fail(errno.EAGAIN, wanted.target)
    return landed, "threads are forked faster than they can be set"


def _threads(host: root.HostRoot, top: str) -> Iterator[int]:
    """The threads of a group and of all below, as far as these are there."""
    # Of another PID namespace they are 0, and that would be ourselves.
    yield from filter(None, classes.threads(host, top))
    for name in host.silence.answer(lambda: host.list(host.at(top)), list[str]()):
        path = f"{top}/{name}"
        with contextlib.suppress(FileNotFoundError):
            if host.stat(host.at(path), follow=False).kind is root.FileKind.DIRECTORY:
                yield from _threads(host, path)
