"""Everything that the host says, as one snapshot.

Covers: what is read at start, slowly, and with every tick. Does not cover: what it means.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping, Sequence

from koordlet.host import machine
from koordlet.host.cgroup import followed, hierarchies, tree
from koordlet.host.fs import descriptors, root
from koordlet.host.process import oom_scores
from koordlet.host.resctrl import reader as resctrl_reader
from koordlet.host.topology import discovery, kernel_work
from koordlet.model import absence, cgroup, cpuset, knob, pod, snapshot
from koordlet.model import topology as shapes

if typing.TYPE_CHECKING:
    from koordlet.host.devices import queueing as queueing_reader
    from koordlet.host.fs import inotify
    from koordlet.host.process import cookie_reader
    from koordlet.host.process import real_time as real_time_reader
    from koordlet.model import blocks, cookies, queueing, real_time

#: Knobs that the policies of today write: what of them is missing is said at start.
_NEEDED = (knob.CPUSET_CPUS, knob.CPUSET_MEMS)


#: Descriptors of sets that are kept.
_HANDLES = 4096
#: Memory, huge pages, devices and turbo are read at one of so many refreshes: each device is asked.
_RENEWED = 6


class Observer:
    """Reads one host. Slow facts are kept and read again by ``refresh``."""

    def __init__(self, host: root.HostRoot, *, base: str = "") -> None:
        self.host = host
        self._files = descriptors.KeptFiles(host)
        self.base = base
        self.identity = machine.identify(host)
        self.topology: shapes.Topology = discovery.first(host)
        self.layout = cgroup.Layout()
        self.unsupported: tuple[absence.Unsupported, ...] = ()
        self.reader = tree.CgroupReader(host, self.layout)
        self._mounts = b""
        #: Becomes readable when something happened to groups; ``None`` where they are polled.
        self.events: inotify.Inotify | None = None
        self._polled: tuple[absence.Unsupported, ...] = ()
        self.resctrl = resctrl_reader.ResctrlReader(host)
        #: Whether anybody wants to know where the kernel's own work runs.
        self.steers = False
        self._kernel_work: Mapping[str, str] = {}
        self.oom_scores = oom_scores.OomScoreReader(host)
        self._devices: blocks.Blocks | None = None
        self._links: queueing_reader.QueueingReader | None = None
        self._cookies: cookie_reader.CookieReader | None = None
        self._classes: real_time_reader.RealTimeReader | None = None
        self._said: tuple[absence.Unsupported, ...] = ()
        #: The last look at groups, and what it was asked for.
        self._asked: tuple[object, ...] = ()
        self._groups: Mapping[str, cgroup.Group] = {}
        self._met: Mapping[str, cgroup.Group] = {}
        self._follower = followed.Follower()
        #: Whether all of them were there: what is not may come where nobody looks.
        self._complete = False
        self._refreshes = 0
        self._online = b""
        self._online = self._read_online()
        #: CPUs that were offline at some time since the start.
        self._went_offline = self.topology.offline
        #: v1: by group at the top, the online CPUs that it lacked when it was first seen.
        self._lacked: Mapping[str, cpuset.CPUSet] = {}
        self._mount()
        self.resctrl.refresh(self.topology)

    def ask_for(self, *, kernel_work: bool, oom_scores: bool) -> None:
        """Which of the costly facts to read from now on."""
        self.steers = kernel_work
        self.oom_scores.ask(wanted=oom_scores)

    def refresh(self) -> None:
        """The slow lane: CPUs may have come or gone, hierarchies may have been mounted."""
        self._online = self._read_online()
        self._rescan()
        self._refreshes += 1
        if self._refreshes % _RENEWED == 0:
            self.topology = discovery.renew(self.host, self.topology)
        self._mount()
        self.reader.rescan()
        self.resctrl.refresh(self.topology)

    def watch(self) -> None:
        """Subscribe to the kernel's cgroup events."""
        try:
            self.events = self.host.events()
        except OSError as error:
            gap = absence.Unsupported(
                "inotify", f"{error.strerror}; koordlet polls the cgroups instead"
            )
            self._polled = (gap,)
            self.unsupported = (*self.unsupported, gap)
        else:
            self.reader.watch(self.events)

    def close(self) -> None:
        """Give all descriptors back."""
        self._files.close()
        self.reader.close()
        self.resctrl.close()
        if self.events is not None:
            self.events.close()
            self.events = None

    def poll(self) -> bool:
        """True if cgroups or CPUs may have changed since the last call."""
        return self.reader.poll() | (self._read_online() != self._online)

    def children(self, path: str) -> tuple[str, ...]:
        """The groups directly inside one; free where the kernel tells what happens to them."""
        return self.reader.children(path)

    def _rescan(self) -> None:
        self.topology = discovery.rescan(self.host, self.topology)
        if not self.topology.offline <= self._went_offline:
            self._went_offline |= self.topology.offline

    def _hotplugged(self) -> bool:
        """True if CPUs were hot-plugged since the last look: one small file.

        A CPU that is gone must not wait for the slow lane: until then, pools would name it.
        """
        online = self._read_online()
        if online == self._online:
            return False
        self._online = online
        self._rescan()
        return True

    def _read_online(self) -> bytes:
        path = self.host.sys("devices", "system", "cpu", "online")
        return self.host.silence.held(lambda: self._files.read(path), self._online, b"")

    def _mount(self) -> None:
        known = bool(self.layout.hierarchies)
        try:
            mounts = self.host.read(self.host.proc("self", "mountinfo"))
            if mounts == self._mounts and known:
                return
            layout = hierarchies.discover(self.host, self.base)
        except OSError as error:
            if self.host.silence.met(error, known=known):
                if known:
                    return
                raise self.host.silence.problem() from error
            mounts, layout = b"", cgroup.Layout()
        self._mounts = mounts
        self.layout = hierarchies.writable(self.host, layout)
        self.reader.close()
        self.reader = tree.CgroupReader(
            self.host, self.layout, handles=descriptors.share(0.25, _HANDLES)
        )
        self.unsupported = tuple(
            why for row in _NEEDED if (why := self.layout.why_not(row)) is not None
        )
        self.unsupported = (*self.unsupported, *self._polled)
        if self.events is not None:
            self.reader.watch(self.events)

    def snapshot(
        self,
        now: machine.Now,
        node: snapshot.NodeInfo,
        pods: Sequence[pod.Pod],
        *,
        also: Iterable[str] = (),
        full: bool = True,
        sources: tuple[snapshot.Source, ...] = (),
    ) -> snapshot.Snapshot:
        """One moment. ``also`` names more groups than the pods': those in the journal.

        Without ``full``, files that only we and hotplug change are as they were at the last one.
        """
        full |= self._hotplugged()
        groups = self._look(tuple(pods), tuple(also), full=full)
        if full and self._hotplugged():
            # While the groups were read: they have CPUs that the topology has no more, or not yet.
            groups = self._look(tuple(pods), tuple(also), full=True)
        if groups is not self._met and not self.layout.unified("cpuset"):
            self._meet(groups)
        if full or not self.steers:
            last = self._kernel_work
            self._kernel_work = kernel_work.read(self.host, last) if self.steers else {}
        ways = self.resctrl.look(now.at, self.layout, groups, pods, full=full)
        return snapshot.Snapshot(
            at=now.at,
            wall=now.wall,
            boot_id=self.identity.boot_id,
            machine_id=self.identity.machine_id,
            node=node,
            topology=self.topology,
            layout=self.layout,
            groups=groups,
            counted=self._follower.counted(groups),
            crowded=self._follower.crowded,
            pods=tuple(pods),
            sources=sources,
            unsupported=self._missing(),
            resctrl=ways,
            kernel_work=self._kernel_work,
            oom_scores=self.oom_scores.look(now.at, self.layout, groups),
            went_offline=self._went_offline,
            lacked=self._lacked,
        )

    def _meet(self, groups: Mapping[str, cgroup.Group]) -> None:
        self._met = groups
        fresh = {
            path: self.topology.online - cpus
            for path, group in groups.items()
            if "/" not in path and path not in self._lacked and (cpus := group.cpus())
        }
        if fresh:
            self._lacked = {**self._lacked, **fresh}

    def block_devices(self, *, again: bool) -> blocks.Blocks:
        """The block devices; the same object while they say the same."""
        devices = self._devices
        if again or devices is None:
            from koordlet.host.devices import blocks as reader  # noqa: PLC0415 -- most never limit one

            try:
                current = reader.read(self.host, self.layout)
            except OSError as error:
                self.host.silence.met(error, known=devices is not None)
                # Without any before, limits of devices wait; the next look asks again.
                return devices or reader.NOTHING
            self._devices = devices = (
                devices if current == devices and devices is not None else current
            )
        return devices

    def cookies(self, at: float, groups: Iterable[str]) -> cookies.Cookies:
        """Core-scheduling cookies of the cgroups' processes."""
        if self._cookies is None:
            from koordlet.host.process import cookie_reader  # noqa: PLC0415 -- most never ask

            self._cookies = cookie_reader.CookieReader(self.host)
        return self._cookies.look(at, self.layout, groups)

    def scheduling_classes(
        self, at: float, groups: Mapping[str, tuple[str, ...]]
    ) -> real_time.Classes:
        """Scheduling classes of the threads of workloads, by the groups of each."""
        if self._classes is None:
            from koordlet.host.process import real_time as real_time_reader  # noqa: PLC0415 -- most never ask

            self._classes = real_time_reader.RealTimeReader(self.host)
        return self._classes.look(at, self.layout, groups)

    def links(self, at: float, names: Sequence[str]) -> queueing.Links:
        """Queueing of network interfaces."""
        if self._links is None:
            from koordlet.host.devices import queueing as reader  # noqa: PLC0415 -- most never shape

            self._links = reader.QueueingReader(self.host)
        return self._links.look(at, names)

    def changed(self) -> None:
        """Links queue otherwise than at the last look, or processes have other cookies or class."""
        for polled in (self._links, self._cookies, self._classes):
            if polled is not None:
                polled.due()

    def _missing(self) -> tuple[absence.Unsupported, ...]:
        """Features that this machine lacks; the same tuple while nothing changes."""
        missing = (*self.unsupported, *self.resctrl.unsupported)
        if missing != self._said:
            self._said = missing
        return self._said

    def _look(
        self, pods: tuple[pod.Pod, ...], also: tuple[str, ...], *, full: bool
    ) -> Mapping[str, cgroup.Group]:
        """Read the cgroups; the same mapping while nothing changed and no more are requested."""
        asked = (pods, also, self.reader, self.reader.generation)
        if full or asked != self._asked or not self.reader.watched:
            same = not full and self._complete and asked[:-1] == self._asked[:-1]
            groups = self.reader.renewed(self._groups) if same else None
            if groups is None:
                holder = self.layout.holder("cpuset")
                sets = holder is not None and not holder.unified
                names = self._follower.groups(self.reader, pods, also, full=full, sets=sets)
                wanted = dict.fromkeys(names)
                groups = self.reader.read_all(wanted, full=full)
                self._complete = groups.keys() == wanted.keys()
            # Values that are all the same objects leave policies nothing to think about. One that
            # says the same is the same object, so this compares no more than that.
            if groups != self._groups:
                self._groups = groups
            self._asked = (pods, also, self.reader, self.reader.generation)
        return self._groups
