"""One pass up to its plan: observe, decide, draft. Shared by ``run``, ``plan`` and ``restore``.

Covers: the way from the host's files to a drafted plan, and the memory between passes.
Does not cover: carrying a plan out (``apply.executor``), when a pass runs (``loop``).
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace

from koordlet.agent import (
    announcements,
    guard,
    optional_reads,
    policy_settings,
    pressure_settings,
    strain_monitor,
)
from koordlet.apply import drafting, originals, planner, present, units
from koordlet.history import series
from koordlet.host import machine, observe
from koordlet.host.counters import pressure, usage
from koordlet.host.fs import root
from koordlet.model import (
    absence,
    action,
    counters,
    decision,
    knob,
    plan,
    pod,
    prediction,
    result,
    snapshot,
)
from koordlet.model.pressure import FileSystem, Reading
from koordlet.model.record import dataclass
from koordlet.policy.best_effort import cpu_suppress
from koordlet.policy.framework import admission, chain, registry
from koordlet.state import journal
from koordlet.workloads import declared, unmanaged

#: Seconds that a command with one pass waits for file systems.
_PATIENCE = 2.0

if typing.TYPE_CHECKING:
    from koordlet.config import sourced
    from koordlet.model import observed


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What one pass observed, decided and drafted."""

    snapshot: snapshot.Snapshot
    said: chain.Round
    draft: planner.Draft
    #: The draft has the steps of the last pass, all of which are in place.
    repeated: bool = False
    #: What is in use, as far as it was read.
    used: counters.Usage = field(default_factory=counters.Usage)
    predicted: prediction.Prediction = field(default_factory=prediction.Prediction)
    #: Counter files by what happened to them, and descriptors that are kept for them.
    files: Mapping[str, int] = field(default_factory=dict)
    descriptors: int = 0


class Tick:
    """One host, one configuration, and the memory of the policies.

    ``take`` returns the newest answers of the sources of workloads. ``pods`` run beside those that
    the configuration declares. ``moves``: work goes on here; by default on a live machine only.
    """

    def __init__(
        self,
        host: root.HostRoot,
        effective: sourced.Effective,
        *,
        rows: Sequence[registry.Row] = registry.POLICIES,
        base: str | None = None,
        clock: Callable[[], machine.Now] = machine.now,
        take: Callable[[], observed.Observed | None] | None = None,
        pods: tuple[pod.Pod, ...] = (),
        moves: bool | None = None,
    ) -> None:
        self.host = host
        self.clock = clock
        self.rows = tuple(rows)
        self.history = series.History()
        self.usage = usage.Reader(host)
        #: Takes back steps of optimising policies that hurt.
        self.guard = guard.Guard(self.rows)
        self.pressure = pressure.Reader(host)
        self._disks: Mapping[str, FileSystem] = {}
        #: Finds containers that no source lists.
        self.strangers = unmanaged.Finder(host)
        self._missing: tuple[absence.Unsupported, ...] = ()
        self.units = units.Manager(host, wanted=effective.config.cgroups.systemd == "auto")
        self.states: dict[str, object] = {row.stem: row.state for row in rows}
        self.last: dict[str, decision.Decision[object]] = {}
        self._memory = chain.Memory()
        self._before: Pass | None = None
        self._drafter = drafting.Drafter(host)
        self._originals = originals.Originals()
        #: The workloads of the last pass, and what was known then.
        self._found: tuple[tuple[object, ...], tuple[pod.Pod, ...]] = ((), ())
        #: Settings of policies beside the configuration.
        self.extra_settings: Mapping[str, object] = {}
        self.extra_pods = pods
        self.announcements = announcements.Announcements()
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

    def override(self, settings: Mapping[str, object]) -> None:
        """Use these settings of policies in place of the configured ones, by stem."""
        self.extra_settings = settings

    def look_once(self) -> None:
        """Prepare for a single pass: it reads everything, and waits for file systems."""
        self.usage.read_everything()
        if self.host.live:
            self.watch()
            if (space := self.usage.space) is not None:
                space.settle(self.clock().at, _PATIENCE)

    def watch(self) -> None:
        """Ask file systems in the background from now on."""
        self.usage.watch(dict.fromkeys((*usage.DIRECTORIES, *self.places.directories)))

    def configure(self, effective: sourced.Effective) -> None:
        """Take a new configuration for the next pass. The cgroup root is that of the start."""
        config = effective.config
        self.effective = effective
        self.settings = policy_settings.settings(config)
        #: Which directories and groups stand for what the node may run out of.
        self.places = pressure_settings.places(config, self.observer.base)
        self.guard.switch(on=config.guard.enabled)
        self.usage.count(policy_settings.counting(config))
        self.modes = policy_settings.modes(config)
        self.observer.ask_for(
            kernel_work=config.policies.housekeeping.mode != "off",
            oom_scores=config.policies.oom_score.mode != "off",
        )
        ways = config.policies.resctrl
        self.observer.resctrl.listen(wanted=ways.process_events and ways.mode == "enforce")
        self.node = policy_settings.node(config, machine.hostname(self.host))
        self._unheard = replace(self.node, known=False)
        self.declared = policy_settings.workloads(config)
        self._finder = declared.Declared(self.observer.layout, self.observer.reader)

    def at(self, base: str) -> Tick:
        """The same host and configuration below another cgroup root."""
        return Tick(self.host, self.effective, rows=self.rows, base=base, clock=self.clock)

    def look(
        self, also: Iterable[str] = (), *, slow: bool = True, full: bool = True
    ) -> snapshot.Snapshot:
        """Observe the host, ``also`` these groups.

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
            self.strangers.look(self.observer.layout, pods)
        seen = self.observer.snapshot(
            now,
            self._node(),
            pods,
            also=also,
            full=full,
            sources=self._sources(now),
        )
        if self.observed is not None:
            seen = self.observed.told(seen)
        seen = optional_reads.complete(seen, self.observer, self.settings, self.modes, slow=slow)
        self.strain.follow(seen)
        if self.units.manages(seen.layout):
            seen = replace(seen, through_systemd=True, unit_idle=self.units.idles)
        elif self.units.problem is not None:
            seen = replace(seen, unsupported=(*seen.unsupported, self.units.problem))
        self.usage.configure(seen.layout, seen.topology)
        self.pressure.configure(seen.layout, pressure_settings.proved(self.places, seen.pods))
        readings = self.usage.read(now, self.strangers.beside(seen.counted), seen.pods)
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
            unmanaged=self.strangers.pods,
            unsupported=self._unsupported(seen.unsupported),
            born=self.announcements.created_with,
            unanswered=self.host.silence.so_far(),
            sets=self._originals.sets,
        )

    def strained(self) -> bool:
        """Whether a best-effort limit would be cut now, so that the next pass must not wait."""
        state = self.states.get(cpu_suppress.STEM)
        return isinstance(state, cpu_suppress.State) and self.strain.urgent(state)

    def _pressure(self, at: float) -> Reading:
        """Read the resources that the node may run out of; file systems as they last answered."""
        space = self.usage.space
        if space is not None:
            return self.pressure.read(at, space.found, space.asked_at)
        if not self._disks and not self.host.live:
            self._disks = pressure.recorded(self.host, self.pressure.places)
        return self.pressure.read(at, self._disks, at)

    def _unsupported(
        self, told: tuple[absence.Unsupported, ...]
    ) -> tuple[absence.Unsupported, ...]:
        """List what this host cannot control or count; the same tuple while it is the same."""
        found = (*told, *self.usage.unsupported)
        if found != self._missing:
            self._missing = found
        return self._missing

    def _pods(self, at: float, *, search: bool) -> tuple[pod.Pod, ...]:
        """Find the workloads and their groups; the same tuple while nothing has changed."""
        reader = self.observer.reader
        told = self.observed.pods if self.observed is not None else ()
        announced, started = self.announcements.pods, self.announcements.started
        if announced:
            listed = (*self.declared, *self.extra_pods, *told)
            told = (*told, *announced.unlisted(at, listed))
        known = (self.declared, self.extra_pods, told, reader, reader.generation, started)
        if search or known != self._found[0]:
            # The kernel reported a change; otherwise only the slow lane searches for units.
            search |= reader.watched
            pods = (*self.declared, *self.extra_pods, *told)
            found = self._finder.find(pods, search=search, begun=started)
            # A pod that no source lists any more stays for as long as its cgroup exists.
            found = tuple(pod for pod in found if pod.group is not None or not pod.stale)
            self._found = (known, self._found[1] if found == self._found[1] else found)
        return self._found[1]

    def _node(self) -> snapshot.NodeInfo:
        """Describe the node: the control plane's word, over that of the configuration file."""
        told = self.observed.node if self.observed is not None else None
        if told is None:
            return self.node if self._node_known() else self._unheard
        return replace(
            told,
            name=told.name or self.node.name,
            labels={**self.node.labels, **told.labels},
            annotations={**self.node.annotations, **told.annotations},
        )

    def _node_known(self) -> bool:
        """Whether no source describes the node, or the one that does has answered."""
        sources = self.observed.sources if self.observed is not None else ()
        return all(s.last_good is not None for s in sources if s.name == "cluster node")

    def _sources(self, now: machine.Now) -> tuple[snapshot.Source, ...]:
        told = self.observed.sources if self.observed is not None else ()
        own = snapshot.Source(name="configuration", ok=True, last_good=now.at, local=True)
        return (own, *told)

    def decide(self, seen: snapshot.Snapshot) -> chain.Round:
        """Run the policies; keep their states and last good decisions for the next pass."""
        said = chain.decide(
            self.rows,
            seen,
            self.history,
            settings={**self.settings, **self.extra_settings},
            modes=self.modes,
            states=self.states,
            last=self.last,
            memory=self._memory,
        )
        said = self.guard.allowed(said)
        self._keep(said)
        # While the node is short of something, pods are compared by counters of this moment.
        self.usage.compare(wanted=said.compares)
        return said

    def admit(self, newcomer: pod.Pod, container: str) -> admission.Admission:
        """Decide what a container gets that is about to start, by the last snapshot and its pod.

        It holds that from here on, also while no source lists the pod.
        """
        seen = self._before.snapshot if self._before is not None else self.look()
        # Other pods may have been announced since that snapshot.
        for announced in self.announcements.pods:
            seen = replace(seen, pods=admission.among(seen.pods, announced))
        found = admission.admit(
            self.rows,
            seen,
            self.history,
            newcomer,
            container,
            settings={**self.settings, **self.extra_settings},
            modes=self.modes,
            states=self.states,
            last=self.last,
        )
        self._keep(found.said)
        if newcomer.uid not in self.announcements.pods:
            self.announcements.pods.add(newcomer, self.clock().at)
        return found

    @property
    def pods(self) -> tuple[pod.Pod, ...]:
        """The workloads of the last pass."""
        return self._found[1]

    def decided(self, row: knob.Knob, group: str) -> str | None:
        """Return the value last decided for a file of a group, where it is enforced."""
        for stem, last in self.last.items():
            if self.modes.get(stem) is not plan.Mode.ENFORCE:
                continue
            for did in last.actions:
                if isinstance(did, action.WriteFile) and (did.knob, did.group) == (row.name, group):
                    return did.value
        return None

    def _keep(self, said: chain.Round) -> None:
        for outcome in said.outcomes:
            if outcome.decision is not None:
                self.states[outcome.stem] = outcome.decision.next_state
                self.last[outcome.stem] = outcome.decision

    def run_once(
        self,
        entries: Mapping[str, journal.Entry],
        *,
        groups: Iterable[str] | None = None,
        slow: bool = True,
        acting: bool = True,
    ) -> Pass:
        """Observe, decide, draft. ``acting``: it will be applied; ``groups``: of the entries."""
        also = (entry.group for entry in entries.values()) if groups is None else groups
        self._originals.follow(entries, groups)
        seen = self.look(also, slow=slow, full=slow and not self.observer.reader.watched)
        said = self.decide(seen)
        reader = self.observer.reader
        route: drafting.Route = planner.as_it_is
        if seen.through_systemd:
            route = functools.partial(self.units.route, seen.layout)
        draft, repeated = self._drafter.next(
            (seen, said),
            entries,
            told=(reader, reader.disturbed),
            trusting=reader.watched and not slow,
            acting=acting,
            route=route,
        )
        self._before = Pass(
            snapshot=seen,
            said=said,
            draft=draft,
            repeated=repeated,
            used=self.history.usage(),
            predicted=self.history.predicted,
            files=self.usage.counts,
            descriptors=self.usage.groups.handles,
        )
        return self._before

    def done(self, made: Pass, results: Sequence[result.Result]) -> None:
        """Take the results of a plan: the guard watches what the steps do to others."""
        self.guard.record(made.snapshot, self.history, results)
        self.moved(results)

    def doubt(self) -> None:
        """Invalidate the last draft: a file is not as we left it."""
        self._drafter.doubt()

    def moved(self, results: Iterable[result.Result]) -> None:
        """Have the next pass read what a plan changed."""
        self._drafter.touched(results)
        optional_reads.acted(self.observer, results)

    def restoring(self, entries: Mapping[str, journal.Entry]) -> Pass:
        """Draft the plan that puts everything back."""
        seen = self.look((entry.group for entry in entries.values()), slow=True)
        there = present.read(self.host, seen, (), entries.values())
        nothing = chain.Round(outcomes=(), ledger=seen.ledger)
        return Pass(snapshot=seen, said=nothing, draft=planner.restore(seen, there, entries))

    def close(self) -> None:
        """Give all descriptors back."""
        for reader in (self.usage, self.pressure, self.strain, self.observer):
            reader.close()
