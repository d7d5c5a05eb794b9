"""Observes one host: everything that a pass may know, as one snapshot.

Covers: which readers are asked for what and when, the workloads that run here, the node.
Does not cover: reading files (``host``), sources of workloads (``workloads``), deciding (``tick``).
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import cast

from koordlet.agent import policy_settings, strain_monitor
from koordlet.apply import units
from koordlet.history import series
from koordlet.host import machine, observe
from koordlet.host.counters import pressure, usage
from koordlet.host.fs import root
from koordlet.model import absence, action, cpuset, node_ratios, plan, pod, result, snapshot
from koordlet.model.pressure import FileSystem, Reading
from koordlet.policy.cpu import core_scheduling, real_time
from koordlet.policy.memory_io import blkio_qos, network_qos
from koordlet.workloads import announced, declared, unmanaged

if typing.TYPE_CHECKING:
    from koordlet.config import sourced
    from koordlet.model import observed, prepared_claim

#: Seconds that a command with one pass waits for file systems.
_PATIENCE = 2.0


class Announcements:
    """Everything that is known from the runtime alone. Each change makes a new mapping."""

    def __init__(self) -> None:
        self.pods = announced.Announced()
        #: Containers that have started: pod UID and container name to container id.
        self.started: declared.Begun = {}
        #: Groups that were created with a cpuset of ours: to the cpuset that the runtime asked for.
        self.created_with: dict[str, cpuset.CPUSet] = {}

    def on_synchronize(self, started: declared.Begun) -> None:
        """Take the containers that run as a new connection begins."""
        self.started = started

    def on_start(self, uid: str, name: str, container: str) -> None:
        """Take a container that is about to run."""
        self.started = {**self.started, (uid, name): container}

    def on_adopt(self, group: str, cpus: cpuset.CPUSet) -> None:
        """Take the cpuset that a new group would have had."""
        self.created_with = {**self.created_with, group: cpus}

    def on_end(self, container: str, group: str | None) -> None:
        """Forget a container that has ended, and its group."""
        if container in self.started.values():
            self.started = {who: known for who, known in self.started.items() if known != container}
        if group is not None:
            below = f"{group}/"
            gone = {p for p in self.created_with if p == group or p.startswith(below)}
            if gone:
                kept = {p: cpus for p, cpus in self.created_with.items() if p not in gone}
                self.created_with = kept


class Observation:
    """Observes one host with one configuration.

    ``take`` returns the newest answers of the sources of workloads. ``pods`` run beside those that
    the configuration declares. ``moves``: work goes on here; by default on a live machine only.
    """

    def __init__(
        self,
        host: root.HostRoot,
        effective: sourced.Effective,
        *,
        base: str | None = None,
        clock: Callable[[], machine.Now] = machine.now,
        take: Callable[[], observed.Observed | None] | None = None,
        pods: tuple[pod.Pod, ...] = (),
        moves: bool | None = None,
    ) -> None:
        self.host = host
        self.clock = clock
        self.history = series.History()
        self.usage = usage.UsageReader(host)
        self.pressure = pressure.PressureReader(host)
        self.units = units.Manager(host)
        #: Finds containers that no source lists.
        self._unmanaged = unmanaged.Finder(host)
        self._disks: Mapping[str, FileSystem] = {}
        self._missing: tuple[absence.Unsupported, ...] = ()
        #: The workloads of the last pass, and what was known then.
        self._placed: tuple[tuple[object, ...], tuple[pod.Pod, ...]] = ((), ())
        self.extra_pods = pods
        self.announcements = Announcements()
        #: Resource claims that are prepared here.
        self.claims: tuple[prepared_claim.PreparedClaim, ...] = ()
        #: The last answers of the sources of workloads.
        self.observed: observed.Observed | None = None
        self.take = take
        self.observer = observe.Observer(
            host, base=effective.config.cgroups.root or "" if base is None else base
        )
        self.strain = strain_monitor.StrainMonitor(
            host, clock, self.observer.children, moves=host.live if moves is None else moves
        )
        self.configure(effective)

    def configure(self, effective: sourced.Effective) -> None:
        """Take a new configuration for the next pass. The cgroup root is that of the start."""
        config = effective.config
        #: Which directories and groups stand for what the node may run out of.
        self.places = policy_settings.pressure_paths(config, self.observer.base)
        self.units.use(wanted=config.cgroups.systemd == "auto")
        self.usage.count(policy_settings.counting(config))
        self.observer.ask_for(
            kernel_work=config.policies.housekeeping.mode != "off",
            oom_scores=config.policies.oom_score.mode != "off",
        )
        resctrl = config.policies.resctrl
        self.observer.resctrl.listen(wanted=resctrl.process_events and resctrl.mode == "enforce")
        self.node = policy_settings.node(config, machine.hostname(self.host))
        self._node_unheard = replace(self.node, known=False)
        self._ratio_table = policy_settings.ratio_table(config)
        self.declared = policy_settings.workloads(config)
        self._finder = declared.Declared(self.observer.layout, self.observer.reader)

    def hold_claims(self, claims: Iterable[prepared_claim.PreparedClaim]) -> None:
        """Take the prepared resource claims, for the next pass."""
        self.claims = tuple(sorted(claims, key=lambda claim: (claim.since, claim.uid)))

    def prepare_single_pass(self) -> None:
        """Prepare for a single pass: it reads everything, and waits for file systems."""
        self.usage.read_everything()
        if self.host.live:
            self.watch()
            if (space := self.usage.space) is not None:
                space.settle(self.clock().at, _PATIENCE)

    def watch(self) -> None:
        """Ask file systems in the background from now on."""
        self.usage.watch(dict.fromkeys((*usage.DIRECTORIES, *self.places.directories)))

    def observe(
        self,
        also: Iterable[str],
        settings: Mapping[str, object],
        modes: Mapping[str, plan.Mode],
        *,
        sets: Mapping[str, cpuset.CPUSet],
        slow: bool,
        full: bool,
    ) -> snapshot.Snapshot:
        """Observe the host, ``also`` these groups; ``sets`` are the original cpusets of groups.

        ``slow``: also what seldom changes; ``full``: read every group again.
        """
        self.host.silence.begin()
        if slow:
            self.observer.refresh()
            if self._finder.reader is not self.observer.reader:
                self._finder = declared.Declared(self.observer.layout, self.observer.reader)
            self._finder.doubt()
        self.observer.poll()
        now = self.clock()
        if self.take is not None:
            self.observed = self.take()
        pods = self._pods(now.at, search=slow)
        if slow:
            self._unmanaged.look(self.observer.layout, pods)
        seen = self.observer.snapshot(
            now,
            self._node(),
            pods,
            also=also,
            full=full,
            sources=self._sources(now),
        )
        machine.step_aside()
        if self.observed is not None:
            seen = self.observed.told(seen)
        seen = read_optional(seen, self.observer, settings, modes, slow=slow)
        self.strain.follow(seen)
        if self.units.manages(seen.layout):
            seen = replace(seen, through_systemd=True, unit_idle=self.units.idles)
        elif self.units.problem is not None:
            seen = replace(seen, unsupported=(*seen.unsupported, self.units.problem))
        self.usage.configure(seen.layout, seen.topology)
        self.pressure.configure(seen.layout, policy_settings.proved(self.places, seen.pods))
        machine.step_aside()
        readings = self.usage.read(now, self._unmanaged.beside(seen.counted), seen.pods)
        machine.step_aside()
        complete = self.usage.thorough or self.usage.comparing
        self.history.take(readings, complete=complete)
        if readings:
            self.history.share(readings["groups"], seen.pods)
            self.history.learn(readings["groups"], seen)
        return replace(
            seen,
            strain=self.strain.taken(now.at),
            pressure=self._pressure(now.at),
            sources=(*seen.sources, self.usage.source),
            unmanaged=self._unmanaged.pods,
            unsupported=self._unsupported(seen.unsupported),
            claims=self.claims,
            born=self.announcements.created_with,
            unanswered=self.host.silence.so_far(),
            sets=sets,
        )

    def _pressure(self, at: float) -> Reading:
        """Read the resources that the node may run out of; file systems as they last answered."""
        space = self.usage.space
        if space is not None:
            return self.pressure.read(at, space.found, space.asked_at)
        if not self._disks and not self.host.live:
            self._disks = pressure.recorded(self.host, self.pressure.places)
        return self.pressure.read(at, self._disks, at)

    def _unsupported(
        self, seen: tuple[absence.Unsupported, ...]
    ) -> tuple[absence.Unsupported, ...]:
        """List what this host cannot control or count; the same tuple while it is the same."""
        gaps = (*seen, *self.usage.unsupported)
        if gaps != self._missing:
            self._missing = gaps
        return self._missing

    def _pods(self, at: float, *, search: bool) -> tuple[pod.Pod, ...]:
        """Find the workloads and their groups; the same tuple while nothing has changed."""
        reader = self.observer.reader
        listed = self.observed.pods if self.observed is not None else ()
        unlisted, started = self.announcements.pods, self.announcements.started
        if unlisted:
            listed = (*listed, *unlisted.unlisted(at, (*self.declared, *self.extra_pods, *listed)))
        known = (self.declared, self.extra_pods, listed, reader, reader.generation, started)
        if search or known != self._placed[0]:
            # The kernel reported a change; otherwise only the slow lane searches for units.
            search |= reader.watched
            pods = (*self.declared, *self.extra_pods, *listed)
            placed = self._finder.find(pods, search=search, begun=started)
            # A pod that no source lists any more stays for as long as its cgroup exists.
            placed = tuple(pod for pod in placed if pod.group is not None or not pod.stale)
            self._placed = (known, self._placed[1] if placed == self._placed[1] else placed)
        return self._placed[1]

    def _node(self) -> snapshot.NodeInfo:
        """Describe the node: the control plane's word, over that of the configuration file.

        Without a Node object the ratios of the table count as its annotations.
        """
        observed = self.observed.node if self.observed is not None else None
        if observed is None and not self._node_known():
            return self._node_unheard
        labels = {**self.node.labels, **observed.labels} if observed else self.node.labels
        ratios = node_ratios.computed(self.observer.topology, labels, self._ratio_table)
        own = self.node.annotations
        if observed is None:
            if ratios is None:
                return self.node
            return replace(self.node, ratios=ratios, annotations={**ratios.annotations(own), **own})
        return replace(
            observed,
            name=observed.name or self.node.name,
            labels=labels,
            annotations={**own, **observed.annotations},
            ratios=ratios,
        )

    def _node_known(self) -> bool:
        """Whether no source describes the node, or the one that does has answered."""
        sources = self.observed.sources if self.observed is not None else ()
        return all(s.last_good is not None for s in sources if s.name == "cluster node")

    def _sources(self, now: machine.Now) -> tuple[snapshot.Source, ...]:
        others = self.observed.sources if self.observed is not None else ()
        own = snapshot.Source(name="configuration", ok=True, last_good=now.at, local=True)
        return (own, *others)

    def on_results(self, results: Iterable[result.Result]) -> None:
        """Have the next pass read what a plan changed: moved threads, shaped links, cookies."""
        did = [outcome.step.action for outcome in results if outcome.step is not None]
        if any(isinstance(done, action.MoveTasks) and done.taken_from for done in did):
            self.observer.resctrl.tasks.due()
        if any(
            isinstance(done, action.SetQdisc | action.ShareCore | action.SetRealTime)
            for done in did
        ):
            self.observer.changed()

    @property
    def pods(self) -> tuple[pod.Pod, ...]:
        """The workloads of the last pass."""
        return self._placed[1]

    def close(self) -> None:
        """Give all descriptors back."""
        for reader in (self.usage, self.pressure, self.strain, self.observer):
            reader.close()


def read_optional(
    seen: snapshot.Snapshot,
    observer: observe.Observer,
    settings: Mapping[str, object],
    modes: Mapping[str, plan.Mode],
    *,
    slow: bool,
) -> snapshot.Snapshot:
    """Read devices, links, cookies and scheduling classes where a policy asks for them."""
    if blkio_qos.asked(seen, settings[blkio_qos.STEM]):
        seen = replace(seen, blocks=observer.block_devices(again=slow))
    if modes.get(network_qos.STEM, plan.Mode.OFF) is not plan.Mode.OFF:
        names = cast("network_qos.Settings", settings[network_qos.STEM]).interfaces
        seen = replace(seen, links=observer.links(seen.at, names))
    if modes.get(core_scheduling.STEM, plan.Mode.OFF) is not plan.Mode.OFF:
        seen = replace(seen, cookies=observer.cookies(seen.at, seen.groups))
    if modes.get(real_time.STEM, plan.Mode.OFF) is not plan.Mode.OFF:
        seen = replace(seen, classes=observer.scheduling_classes(seen.at, real_time.groups(seen)))
    return seen
