"""What resctrl says at one moment: groups with every tick, threads and counters more seldom.

Covers: putting the readers together. Does not cover: what each reads (``host.resctrl``,
``host.resctrl_tasks``, ``host.resctrl_monitor``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from koordlet.host import resctrl as files
from koordlet.host import resctrl_monitor, resctrl_tasks, root
from koordlet.model import absence, cgroup, pod, resctrl, topology


class Look:
    """All of it, for one host. Without resctrl nothing is read."""

    def __init__(self, host: root.HostRoot) -> None:
        self.reader = files.Reader(host)
        self.tasks = resctrl_tasks.Scanner(host)
        self.monitor = resctrl_monitor.Monitor(host)
        self._usage: tuple[resctrl.Usage, ...] = ()
        self._last: resctrl.Resctrl | None = None
        self._threads: tuple[tuple[object, ...], Mapping[str, tuple[str, ...]]] = ((), {})
        self._slow = True

    @property
    def unsupported(self) -> tuple[absence.Unsupported, ...]:
        """What this machine has not."""
        return self.reader.unsupported

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
        homes = self.tasks.look(now, wanted, full=full)
        fresh = replace(now, homes=homes, threads=wanted, usage=self._usage)
        # The same object while nothing changed: then policies have nothing to think about.
        if fresh != self._last:
            self._last = fresh
        return self._last

    def _files(
        self, layout: cgroup.Layout, groups: Iterable[str], pods: Sequence[pod.Pod]
    ) -> Mapping[str, tuple[str, ...]]:
        """Where each workload's threads are listed; found anew when cgroups came or went."""
        asked = (layout, groups, pods)
        if not self._threads[0] or any(
            one is not other for one, other in zip(asked, self._threads[0], strict=True)
        ):
            self._threads = (asked, resctrl_tasks.thread_files(layout, groups, pods))
        return self._threads[1]
