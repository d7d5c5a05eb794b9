"""In which scheduling class the threads of workloads are: a look at all threads of their groups.

Covers: the look, all threads of a group, why nobody can be real-time here.
Does not cover: the calls (``scheduler_calls``), who shall be (``policy.cpu.real_time``).

Kernel facts (sched(7), Documentation/scheduler/sched-rt-group.rst): a thread that is forked has its
parent's class. Of each second (``sched_rt_period_us``) real-time threads get
``sched_rt_runtime_us`` on a CPU, usually 0.95 s, where others want to run; -1, or as much as the
period, is all of it.
"""

from __future__ import annotations

import errno
import functools
from collections.abc import Mapping

from koordlet.host.fs import root
from koordlet.host.process import scheduler_calls
from koordlet.model import cgroup, knob, real_time

#: Seconds between two looks, which is each tick: only few ask, and a service that was started anew
#: waits with ordinary threads until it is seen.
_EVERY = 1.0
_RUNTIME, _PERIOD = "sched_rt_runtime_us", "sched_rt_period_us"
#: Microseconds of each second for all groups, of the kernel's usual 950 000.
_MOST_USEC = 900_000


def threads(host: root.HostRoot, directory: str) -> tuple[int, ...]:
    """The threads of one group; none where it is gone.

    Those of another PID namespace are listed as 0, which would be ourselves: they are left out.
    """
    for name in ("cgroup.threads", "tasks"):
        try:
            listed = host.read(host.at(f"{directory}/{name}")).split()
            return tuple(filter(None, map(int, listed)))
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENODEV):
                raise
    return ()


def policy(scheduler: scheduler_calls.SchedulerCalls, tid: int) -> tuple[int, int] | None:
    """The class of a thread; ``None`` where it ended."""
    try:
        return scheduler.policy(tid)
    except ProcessLookupError:
        return None


class RealTimeReader:
    """Looks at one machine."""

    def __init__(self, host: root.HostRoot) -> None:
        self._host = host
        self._groups: Mapping[str, tuple[str, ...]] = {}
        self._at = float("-inf")
        self._found = real_time.Classes()

    def due(self) -> None:
        """Threads were given another class: the next look is not the last one."""
        self._at = float("-inf")

    def look(
        self, at: float, layout: cgroup.Layout, groups: Mapping[str, tuple[str, ...]]
    ) -> real_time.Classes:
        """Of each workload's group, all groups in it; the same as before if that was just now."""
        if groups != self._groups or not 0 <= at - self._at < _EVERY:
            self._groups, self._at = groups, at
            current = self._read(layout)
            self._found = self._found if current == self._found else current
        return self._found

    def _read(self, layout: cgroup.Layout) -> real_time.Classes:
        where = layout.holder("cpu") or layout.tree
        try:
            usec = self._shared_out(layout)
            why = self._why_not(usec)
            if why or where is None:
                return real_time.Classes(why=why)
            scheduler = self._host.scheduler()
            of = {group: self._of(scheduler, layout, where, group) for group in self._groups}
        except ValueError as error:
            return real_time.Classes(why=f"the kernel says no number: {error}")
        except OSError as error:
            if self._host.silence.met(error, known=bool(self._found.of)) and self._found.of:
                self.due()
                return self._found
            return real_time.Classes(why=f"scheduling classes cannot be read: {error.strerror}")
        return real_time.Classes(of=of, usec=usec)

    def _why_not(self, usec: int | None) -> str:
        """Why nobody can be real-time here."""
        runtime, period = map(self._number, (_RUNTIME, _PERIOD))
        if not 0 < runtime < period:
            return f"the kernel keeps nothing back from it: kernel.{_RUNTIME} is {runtime}"
        if usec == 0:
            return "the top of the cgroup tree has none to share out: cpu.rt_runtime_us is 0"
        return ""

    def _number(self, name: str) -> int:
        return int(self._host.read(self._host.proc("sys", "kernel", name)))

    def _shared_out(self, layout: cgroup.Layout) -> int | None:
        """Real time for all groups together; ``None`` where the kernel does not share it out."""
        path = layout.file(knob.CPU_RT_RUNTIME, "")
        if path is None:
            return None
        # A part stays for whom others made real-time.
        return min(_MOST_USEC, int(self._host.read(self._host.at(path))) * 18 // 19)

    def _of(
        self,
        scheduler: scheduler_calls.SchedulerCalls,
        layout: cgroup.Layout,
        where: cgroup.Hierarchy,
        top: str,
    ) -> real_time.Threads:
        groups = self._groups[top]
        listed = {group: threads(self._host, where.directory(group)) for group in groups}
        above = dict.fromkeys((*groups, *filter(None, cgroup.ancestors(top))))
        classes = [policy(scheduler, tid) for tids in listed.values() for tid in tids]
        ordinary, given = (classes.count(kind) for kind in (real_time.ORDINARY, real_time.GIVEN))
        return real_time.Threads(
            ordinary=ordinary,
            given=given,
            others=len(classes) - classes.count(None) - ordinary - given,
            limited=next(filter(functools.partial(self._is_limited, layout), above), ""),
            groups=tuple(group for group, tids in listed.items() if tids),
        )

    def _is_limited(self, layout: cgroup.Layout, group: str) -> bool:
        """Whether a group has a CPU limit (``cpu.max``, on v1 ``cpu.cfs_quota_us``)."""
        paths = (layout.file(row, group) for row in (knob.CPU_MAX, knob.CPU_CFS_QUOTA))
        path = next(filter(None, paths), None)
        if path is None:
            return False
        text = self._host.silence.answer(lambda: self._host.read(self._host.at(path)), b"")
        return not text.startswith((b"max", b"-1")) and bool(text)
