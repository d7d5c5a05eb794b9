"""The line, once: look, decide, draft. Shared by ``run``, ``plan`` and ``restore``.

Covers: one pass from the host's files to a drafted plan, and the memory between passes.
Does not cover: doing the plan (``apply.executor``), when to pass (``loop``).
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace

from koordlet.agent import guard, optional_reads, policy_settings, pressure_settings, strain_monitor
from koordlet.apply import drafting, originals, planner, present, units
from koordlet.history import series
from koordlet.host import machine, observe
from koordlet.host.counters import pressure, usage
from koordlet.host.fs import root
from koordlet.model import (
    absence,
    action,
    counters,
    cpuset,
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
from koordlet.workloads import announced, declared, unmanaged

#: Seconds that a command which looks once waits for file systems.
_PATIENCE = 2.0

if typing.TYPE_CHECKING:
    from koordlet.config import sourced
    from koordlet.model import observed


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One pass of the line."""

    snapshot: snapshot.Snapshot
    said: chain.Round
    draft: planner.Draft
    #: The draft has the steps of the last pass: nothing to do, again.
    repeated: bool = False
    #: What is in use, as far as it was read.
    used: counters.Usage = field(default_factory=counters.Usage)
    predicted: prediction.Prediction = field(default_factory=prediction.Prediction)
    #: Counter files by what happened to them, and descriptors that are kept for them.
    files: Mapping[str, int] = field(default_factory=dict)
    descriptors: int = 0


class Line:
    """One host, one configuration, and what the policies remember."""

    def __init__(
        self,
        host: root.HostRoot,
        effective: sourced.Effective,
        *,
        rows: Sequence[registry.Row] = registry.POLICIES,
        base: str | None = None,
        clock: Callable[[], machine.Now] = machine.now,
    ) -> None:
        self.host = host
        self.clock = clock
        self.rows = tuple(rows)
        self.history = series.History()
        self.usage = usage.UsageReader(host)
        #: Watches what only optimises.
        self.guard = guard.Guard(self.rows)
        self.pressure = pressure.PressureReader(host)
        self._disks: Mapping[str, FileSystem] = {}
        #: Containers that nobody declared.
        self.strangers = unmanaged.Finder(host)
        self._missing: tuple[absence.Unsupported, ...] = ()
        self.units = units.Manager(host, wanted=effective.config.cgroups.systemd == "auto")
        self.states: dict[str, object] = {row.stem: row.state for row in rows}
        self.last: dict[str, decision.Decision[object]] = {}
        self._memory = chain.Memory()
        self._before: Pass | None = None
        self._drafter = drafting.Drafter(host)
        self._originals = originals.Originals()
        #: The workloads as they were found last, and what was known then.
        self._found: tuple[tuple[object, ...], tuple[pod.Pod, ...]] = ((), ())
        #: Settings and pods beyond the configuration file: the demo's, those of ``--pods``.
        self.extra_settings: Mapping[str, object] = {}
        self.extra_pods: tuple[pod.Pod, ...] = ()
        #: Pods that a runtime announced before their sources did.
        self.newcomers = announced.Announced()
        #: Containers that began with a set of ours: group to the set that they would have had.
        self.born: dict[str, cpuset.CPUSet] = {}
        #: Containers that the runtime has begun: sources list them with their ids a while later.
        self.begun: declared.Begun = {}
        #: What the sources of workloads said last; ``take`` brings the newest.
        self.observed: observed.Observed | None = None
        self.take: Callable[[], observed.Observed] | None = None
        self.observer = observe.Observer(
            host, base=effective.config.cgroups.root or "" if base is None else base
        )
        #: What latency-sensitive work feels.
        self.feeling = strain_monitor.Feeling(host, clock, self.observer.children)
        self.configure(effective)

    def look_once(self) -> None:
        """There will be one look only: it reads everything, and waits for file systems."""
        self.usage.thorough = True
        if self.host.live:
            self.watch()
            if (space := self.usage.space) is not None:
                space.settle(self.clock().at, _PATIENCE)

    def watch(self) -> None:
        """From now on, have file systems asked in the background."""
        self.usage.watch(dict.fromkeys((*usage.DIRECTORIES, *self.places.directories)))

    def configure(self, effective: sourced.Effective) -> None:
        """Take a new configuration for the next pass. The cgroup root is that of the start."""
        config = effective.config
        self.effective = effective
        self.settings = policy_settings.settings(config)
        #: Which directories and groups stand for what the node may run out of.
        self.places = pressure_settings.places(config, self.observer.base)
        self.guard.on = config.guard.enabled
        self.usage.count(policy_settings.counting(config))
        self.modes = policy_settings.modes(config)
        self.observer.steers = config.policies.housekeeping.mode != "off"
        self.observer.oom_scores.asked = config.policies.oom_score.mode != "off"
        ways = config.policies.resctrl
        self.observer.resctrl.listen(wanted=ways.process_events and ways.mode == "enforce")
        self.node = policy_settings.node(config, machine.hostname(self.host))
        self._unheard = replace(self.node, known=False)
        self.declared = policy_settings.workloads(config)
        self._finder = declared.Declared(self.observer.layout, self.observer.reader)

    def at(self, base: str) -> Line:
        """The same host and configuration below another cgroup root."""
        return Line(self.host, self.effective, rows=self.rows, base=base, clock=self.clock)

    def look(
        self, also: Iterable[str] = (), *, slow: bool = True, full: bool = True
    ) -> snapshot.Snapshot:
        """Read the host, ``also`` these groups; ``slow``: what seldom changes; ``full``: anew."""
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
        self.feeling.follow(seen)
        if self.units.manages(seen.layout):
            seen = replace(seen, through_systemd=True, unit_idle=self.units.idles)
        elif self.units.problem is not None:
            seen = replace(seen, unsupported=(*seen.unsupported, self.units.problem))
        self.usage.configure(seen.layout, seen.topology)
        self.pressure.configure(seen.layout, pressure_settings.proved(self.places, seen.pods))
        readings = self.usage.read(now, self.strangers.beside(seen.counted), seen.pods)
        self.history.take(readings)
        if readings:
            self.history.complete = self.usage.thorough or self.usage.comparing
            self.history.share(readings["groups"], seen.pods)
            self.history.learn(readings["groups"], seen)
        return replace(
            seen,
            strain=self.feeling.taken(now.at),
            pressure=self._pressure(now.at),
            sources=(*seen.sources, self.usage.source),
            unmanaged=self.strangers.pods,
            unsupported=self._unsupported(seen.unsupported),
            born=self.born,
            unanswered=self.host.silence.so_far(),
            sets=self._originals.sets,
        )

    def strained(self) -> bool:
        """Whether a limit of best-effort work would be cut now: a pass shall not wait."""
        state = self.states.get(cpu_suppress.STEM)
        return isinstance(state, cpu_suppress.State) and self.feeling.urgent(state)

    def _pressure(self, at: float) -> Reading:
        """What the node may run out of, with what file systems said last."""
        space = self.usage.space
        if space is not None:
            return self.pressure.read(at, space.found, space.asked_at)
        if not self._disks and not self.host.live:
            self._disks = pressure.recorded(self.host, self.pressure.places)
        return self.pressure.read(at, self._disks, at)

    def _unsupported(
        self, told: tuple[absence.Unsupported, ...]
    ) -> tuple[absence.Unsupported, ...]:
        """What is not there to be controlled or counted; the same tuple while that is the same."""
        found = (*told, *self.usage.unsupported)
        if found != self._missing:
            self._missing = found
        return self._missing

    def _pods(self, at: float, *, search: bool) -> tuple[pod.Pod, ...]:
        """The workloads with their groups; the same tuple while nothing happened."""
        reader = self.observer.reader
        told = self.observed.pods if self.observed is not None else ()
        if self.newcomers:
            listed = (*self.declared, *self.extra_pods, *told)
            told = (*told, *self.newcomers.unlisted(at, listed))
        known = (self.declared, self.extra_pods, told, reader, reader.generation, self.begun)
        if search or known != self._found[0]:
            # What the kernel told has changed; else looking for units is for the slow lane.
            search |= reader.watched
            pods = (*self.declared, *self.extra_pods, *told)
            found = self._finder.find(pods, search=search, begun=self.begun)
            # What nobody vouches for any more goes with its cgroup, which the kernel vouches for.
            found = tuple(one for one in found if one.group is not None or not one.stale)
            self._found = (known, self._found[1] if found == self._found[1] else found)
        return self._found[1]

    def _node(self) -> snapshot.NodeInfo:
        """The node as the control plane knows it, over the configuration file."""
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
        """Whether nobody is asked for the node, or whoever is asked has answered."""
        sources = self.observed.sources if self.observed is not None else ()
        return all(one.last_good is not None for one in sources if one.name == "cluster node")

    def _sources(self, now: machine.Now) -> tuple[snapshot.Source, ...]:
        told = self.observed.sources if self.observed is not None else ()
        own = snapshot.Source(name="configuration", ok=True, last_good=now.at, local=True)
        return (own, *told)

    def decide(self, seen: snapshot.Snapshot) -> chain.Round:
        """Ask the policies; their states and last good decisions are kept for the next pass."""
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
        # While the node lacks something, its pods are compared: by counters of this moment.
        self.usage.comparing = said.compares
        return said

    def admit(self, newcomer: pod.Pod, container: str) -> admission.Admission:
        """What a container gets that is about to start: last snapshot + newcomer, decided now.

        What it is given is held from here on, also while no source lists the pod yet.
        """
        seen = self._before.snapshot if self._before is not None else self.look()
        # Others may have been announced since that snapshot was taken.
        for one in self.newcomers:
            seen = replace(seen, pods=admission.among(seen.pods, one))
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
        if newcomer.uid not in self.newcomers:
            self.newcomers.add(newcomer, self.clock().at)
        return found

    @property
    def pods(self) -> tuple[pod.Pod, ...]:
        """The workloads as they were found last."""
        return self._found[1]

    def decided(self, row: knob.Knob, group: str) -> str | None:
        """What a file of a group shall hold, as it was decided last and is enforced."""
        for stem, last in self.last.items():
            if self.modes.get(stem) is not plan.Mode.ENFORCE:
                continue
            for one in last.actions:
                if isinstance(one, action.WriteFile) and (one.knob, one.group) == (row.name, group):
                    return one.value
        return None

    def _keep(self, said: chain.Round) -> None:
        for outcome in said.outcomes:
            if outcome.decision is not None:
                self.states[outcome.stem] = outcome.decision.next_state
                self.last[outcome.stem] = outcome.decision

    def _route(self, seen: snapshot.Snapshot) -> drafting.Route:
        """Which way an action takes on this machine."""
        if not seen.through_systemd:
            return planner.as_it_is
        return lambda one: self.units.route(seen.layout, one)

    def run_once(
        self,
        entries: Mapping[str, journal.Entry],
        *,
        groups: Iterable[str] | None = None,
        slow: bool = True,
        acting: bool = True,
    ) -> Pass:
        """Look, decide and draft; ``acting``: it will be done; ``groups``: of the entries."""
        also = (one.group for one in entries.values()) if groups is None else groups
        self._originals.follow(entries, groups)
        seen = self.look(also, slow=slow, full=slow and not self.observer.reader.watched)
        said = self.decide(seen)
        reader = self.observer.reader
        draft, repeated = self._drafter.next(
            (seen, said),
            entries,
            told=(reader, reader.disturbed),
            trusting=reader.watched and not slow,
            acting=acting,
            route=self._route(seen),
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
        """A plan was carried out: who acted is watched."""
        self.guard.passed(made.snapshot, self.history, results)
        self.moved(results)

    def doubt(self) -> None:
        """A file is not as it was left: the next draft reads them all."""
        self._drafter.doubt()

    def moved(self, results: Iterable[result.Result]) -> None:
        """What a plan changed has to be seen."""
        self._drafter.touched(results)
        optional_reads.acted(self.observer, results)

    def restoring(self, entries: Mapping[str, journal.Entry]) -> Pass:
        """The draft that puts everything back."""
        seen = self.look((one.group for one in entries.values()), slow=True)
        there = present.read(self.host, seen, (), entries.values())
        nothing = chain.Round(outcomes=(), ledger=seen.ledger)
        return Pass(snapshot=seen, said=nothing, draft=planner.restore(seen, there, entries))

    def close(self) -> None:
        """Give all descriptors back."""
        for one in (self.usage, self.pressure, self.feeling, self.observer):
            one.close()
