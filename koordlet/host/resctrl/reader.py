"""State of resctrl: groups every tick, threads and counters less often.

Covers: putting the readers together. Does not cover: what each reads (``tree``,
``tasks``, ``monitor``, ``host.process.events``).
"""

from __future__ import annotations

import contextlib
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from koordlet.host.fs import root
from koordlet.host.resctrl import monitor, tasks
from koordlet.host.resctrl import tree as files
from koordlet.host.topology import memory_speed
from koordlet.model import absence, cgroup, pod, resctrl, topology

if typing.TYPE_CHECKING:
    from koordlet.host.process import events

#: Looking at more processes one by one costs more than a scan.
_MANY = 64


class ResctrlReader:
    """Reads resctrl of one host; nothing without resctrl."""

    def __init__(self, host: root.HostRoot) -> None:
        self.reader = files.ResctrlTreeReader(host)
        self.tasks = tasks.Scanner(host)
        self.monitor = monitor.Monitor(host)
        self._usage: tuple[resctrl.Usage, ...] = ()
        self._last: resctrl.Resctrl | None = None
        self._threads: tuple[tuple[object, ...], Mapping[str, tuple[str, ...]]] = ((), {})
        self._slow = True
        #: The memory's bandwidth, once it was looked for.
        self._memory: tuple[float | None] | None = None
        self._events: events.ProcessEvents | None = None
        self._deaf: tuple[absence.Unsupported, ...] = ()

    @property
    def unsupported(self) -> tuple[absence.Unsupported, ...]:
        """Features that this machine lacks."""
        return (*self.reader.unsupported, *self._deaf)

    def listen(self, *, wanted: bool) -> None:
        """Begin or cease to hear of processes that start."""
        if not wanted:
            self.close()
            self._deaf = ()
        elif self._events is None and self.reader.host.live:
            from koordlet.host.process import events  # noqa: PLC0415 -- seldom wanted

            try:
                self._events = events.ProcessEvents()
            except OSError as error:
                why = f"no process events ({error.strerror}): CAP_NET_ADMIN is missing"
                self._deaf = (absence.Unsupported("resctrl.processEvents", why),)

    def close(self) -> None:
        """Give everything back."""
        if self._events is not None:
            self._events.close()
            self._events = None

    def refresh(self, machine: topology.Topology) -> None:
        """The slow lane: mounts."""
        self.reader.refresh(machine.vendor, machine.flags)
        self._slow = True

    def look(
        self,
        at: float,
        layout: cgroup.Layout,
        groups: Iterable[str],
        pods: Sequence[pod.Pod],
        *,
        full: bool,
    ) -> resctrl.Resctrl | None:
        """This moment; ``None`` where nothing is mounted."""
        now = self.reader.read()
        if now is None:
            self._usage, self._last = (), None
            return None
        full, self._slow = full or self._slow, False
        if full:
            self._usage = self.monitor.read(now, at)
        wanted = self._files(layout, groups, pods)
        if self._events is not None and self._astray(self._events.hear(), layout):
            self.tasks.due()
        homes = self.tasks.look(now, wanted, full=full)
        if self._memory is None:
            # Where it gets no answer, the next look asks again.
            with contextlib.suppress(OSError):
                self._memory = (memory_speed.read(self.reader.host),)
        fresh = replace(
            now,
            homes=homes,
            threads=wanted,
            usage=self._usage,
            memory_gigabytes=None if self._memory is None else self._memory[0],
        )
        # The same object while nothing changed: then policies have nothing to think about.
        if fresh != self._last:
            self._last = fresh
        return self._last

    def _astray(self, begun: frozenset[int] | None, layout: cgroup.Layout) -> bool:
        """True if one of these processes is in a workload's cgroup but in none of its groups."""
        if begun is None or len(begun) > _MANY:
            return True
        return any(
            (where := tasks.workload_of(self.reader.host, layout, self.tasks.homes, pid))
            is not None
            and not tasks.at_home(self.reader.host, self.tasks.homes[where], pid)
            for pid in begun
        )

    def _files(
        self, layout: cgroup.Layout, groups: Iterable[str], pods: Sequence[pod.Pod]
    ) -> Mapping[str, tuple[str, ...]]:
        """Thread lists of each workload, searched again when cgroups change."""
        asked = (layout, groups, pods)
        if not self._threads[0] or any(
            new is not other for new, other in zip(asked, self._threads[0], strict=True)
        ):
            self._threads = (asked, tasks.thread_files(layout, groups, pods))
        return self._threads[1]
