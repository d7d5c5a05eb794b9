"""One pass, from reading the host to publishing: observe, decide, draft, apply, publish.

Covers: the way from the host's files to a drafted plan, which commands go as well; from there to
the view; admission of a container between passes.
Does not cover: when a pass runs (``loop``), what an agent opens and gives back (``lifecycle``).

A pass skips what it has done already. ``docs/architecture.md`` lists each memory, and what makes it
invalid.
"""

from __future__ import annotations

import contextlib
import functools
import time
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from koordlet.agent import (
    guard,
    memory_watch,
    observation,
    policy_settings,
    publisher,
    saved_history,
)
from koordlet.apply import copies, drafting, executor, planner, present, protective
from koordlet.host import machine
from koordlet.host.fs import root
from koordlet.model import action, adjustment, decision, knob, plan, pod, result, snapshot
from koordlet.policy.best_effort import cpu_suppress
from koordlet.policy.eviction import node_pressure
from koordlet.policy.framework import admission, chain, declaration, registry
from koordlet.state import checkpoint, disk, journal

if typing.TYPE_CHECKING:
    from koordlet.agent import claim_driver, container_runtime, node_shutdown
    from koordlet.apply import evictor
    from koordlet.apply import trace as traces
    from koordlet.config import sourced
    from koordlet.model import observed
    from koordlet.workloads import gatherer


class Stations:
    """What a pass goes through after its draft: of one agent, which gives them their values."""

    book: journal.Journal
    executor: executor.Executor
    watch: protective.Watch
    checkpoints: checkpoint.Checkpoints
    saved_history: saved_history.SavedHistory
    memory_watch: memory_watch.MemoryWatch
    publisher: publisher.Publisher
    #: The disks of the originals, which actions wait for, and of everything else.
    disks: tuple[disk.Disk, disk.Disk]
    sources: gatherer.Gatherer | None = None
    runtime: container_runtime.Runtime | None = None
    driver: claim_driver.ClaimDriver | None = None
    shutdown: node_shutdown.NodeShutdown | None = None
    evictor: evictor.Evictor | None = None


class Tick:
    """One host, one configuration, and the memory of the policies.

    ``take``, ``pods`` and ``moves`` are those of ``observation.Observation``.
    """

    def __init__(
        self,
        host: root.HostRoot,
        effective: sourced.Effective,
        *,
        rows: Sequence[declaration.Declared] = registry.POLICIES,
        base: str | None = None,
        clock: Callable[[], machine.Now] = machine.now,
        take: Callable[[], observed.Observed | None] | None = None,
        pods: tuple[pod.Pod, ...] = (),
        moves: bool | None = None,
    ) -> None:
        self.host = host
        self.clock = clock
        self.rows = tuple(rows)
        self.observation = observation.Observation(
            host, effective, base=base, clock=clock, take=take, pods=pods, moves=moves
        )
        self.observer = self.observation.observer
        self.usage = self.observation.usage
        self.history = self.observation.history
        self.announcements = self.observation.announcements
        #: Takes back steps of optimising policies that hurt.
        self.guard = guard.Guard(self.rows)
        self.states: dict[str, object] = {row.stem: row.state for row in rows}
        self.last: dict[str, decision.Decision[object]] = {}
        self._memory = chain.Memory()
        self._before: publisher.Pass | None = None
        self._drafter = drafting.Drafter(host)
        #: Groups changed while the newest pass was under way.
        self.groups_changed = False
        #: Settings of policies beside the configuration.
        self.extra_settings: Mapping[str, object] = {}
        #: Policies that stay in shadow, whatever the configuration says.
        self._held: frozenset[str] = frozenset()
        self._set_policies(effective)

    def override(self, settings: Mapping[str, object]) -> None:
        """Use these settings of policies in place of the configured ones, by stem."""
        self.extra_settings = settings

    def hold(self, stems: Iterable[str]) -> None:
        """Keep these policies in shadow from the next pass on, and no others."""
        self._held = frozenset(stems)
        self._set_policies(self.effective)

    def configure(self, effective: sourced.Effective) -> None:
        """Take a new configuration for the next pass. The cgroup root is that of the start."""
        self._set_policies(effective)
        self.observation.configure(effective)

    def _set_policies(self, effective: sourced.Effective) -> None:
        self.effective = effective
        self.settings = policy_settings.settings(effective.config)
        self.modes = {
            stem: plan.Mode.SHADOW if mode is plan.Mode.ENFORCE and stem in self._held else mode
            for stem, mode in policy_settings.modes(effective.config).items()
        }
        self.guard.switch(on=effective.config.guard.enabled)

    def at(self, base: str) -> Tick:
        """The same host and configuration below another cgroup root."""
        return Tick(self.host, self.effective, rows=self.rows, base=base, clock=self.clock)

    def strained(self) -> bool:
        """Whether a best-effort limit would be cut now, so that the next pass must not wait."""
        state = self.states.get(cpu_suppress.STEM)
        return isinstance(state, cpu_suppress.State) and self.observation.strain.urgent(state)

    def look(
        self, also: Iterable[str] = (), *, slow: bool = True, full: bool = True
    ) -> snapshot.Snapshot:
        """Observe the host, ``also`` these groups, as these policies and modes ask for it."""
        return self.observation.observe(
            also,
            self.settings,
            self.modes,
            sets=self._drafter.originals,
            slow=slow,
            full=full,
        )

    def decide(self, seen: snapshot.Snapshot, inputs: chain.Inputs | None = None) -> chain.Round:
        """Run the policies; keep their states and last good decisions for the next pass."""
        round_ = chain.decide(
            self.rows,
            seen,
            self.history,
            settings={**self.settings, **self.extra_settings},
            modes=self.modes,
            states=self.states,
            last=self.last,
            memory=self._memory,
            inputs=inputs,
        )
        round_ = self.guard.allowed(round_)
        self._keep(round_)
        # While the node is short of something, pods are compared by counters of this moment.
        self.usage.compare(wanted=round_.compares)
        return round_

    def admit(self, newcomer: pod.Pod, container: str) -> admission.Admission:
        """Decide what a container gets that is about to start, by the last snapshot and its pod.

        It holds that from here on, also while no source lists the pod.
        """
        seen = self._before.snapshot if self._before is not None else self.look()
        # Other pods may have been announced since that snapshot.
        for announced in self.announcements.pods:
            seen = replace(seen, pods=admission.among(seen.pods, announced))
        admitted = admission.admit(
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
        self._keep(admitted.round)
        if newcomer.uid not in self.announcements.pods:
            self.announcements.pods.add(newcomer, self.clock().at)
        return admitted

    def decided(self, row: knob.Knob, group: str) -> str | None:
        """Return the value last decided for a file of a group, where it is enforced."""
        for stem, last in self.last.items():
            if self.modes.get(stem) is not plan.Mode.ENFORCE:
                continue
            for did in last.actions:
                if isinstance(did, action.WriteFile) and (did.knob, did.group) == (row.name, group):
                    return did.value
        return None

    def _keep(self, round_: chain.Round) -> None:
        for outcome in round_.outcomes:
            if outcome.decision is not None:
                self.states[outcome.stem] = outcome.decision.next_state
                self.last[outcome.stem] = outcome.decision

    def draft(
        self,
        entries: Mapping[str, journal.Entry],
        *,
        groups: Iterable[str] | None = None,
        slow: bool = True,
        acting: bool = True,
        trace: traces.Trace | None = None,
        kept: present.Kept = present.none_kept,
    ) -> publisher.Pass:
        """Observe, decide, draft. ``acting``: it will be applied; ``groups``: of the entries.

        A ``trace`` is filled by the stations on the way; ``kept`` reads what is open already.
        """
        also = (entry.group for entry in entries.values()) if groups is None else groups
        self._drafter.follow(entries, groups)
        seen = self.look(also, slow=slow, full=slow and not self.observer.reader.watched)
        machine.step_aside()
        round_ = self.decide(seen, None if trace is None else trace.inputs)
        machine.step_aside()
        reader = self.observer.reader
        route: drafting.Route = planner.as_it_is
        if seen.through_systemd:
            route = functools.partial(self.observation.units.route, seen.layout)
        draft = self._drafter.next(
            (seen, round_),
            entries,
            told=(reader, reader.disturbed),
            trusting=reader.watched and not slow,
            acting=acting,
            route=route,
            kept=kept,
        )
        if trace is not None:
            self._drafter.fill(trace)
        self._before = publisher.Pass(
            snapshot=seen,
            round=round_,
            draft=draft,
            used=self.history.usage(),
            predicted=self.history.predicted,
            files=self.usage.counts,
            descriptors=self.usage.groups.handles,
        )
        return self._before

    def run(
        self,
        stations: Stations,
        *,
        slow: bool,
        acting: bool,
        lateness: float | None = None,
        patience: float = executor.SLICE,
    ) -> bool:
        """Observe, decide, plan, apply, publish. ``True`` when something was changed."""
        started = time.process_time()
        book, kept = stations.book, stations.watch.text
        book.collect()
        made = self.draft(book.entries, groups=book.groups, slow=slow, acting=acting, kept=kept)
        machine.step_aside()
        stations.publisher.set_pods(made.snapshot.pods)
        results = self._apply(stations, made, patience) if acting else ()
        machine.step_aside()
        pressure = made.snapshot.pressure
        stations.memory_watch.tick(self.settings.get(node_pressure.STEM), pressure)
        if stations.memory_watch.near:
            # The victim is chosen by what is known when the threshold is crossed.
            self.usage.compare(wanted=True)
        stations.saved_history.tick()
        if slow:
            book.flush()
        machine.step_aside()
        self.flush_checkpoints(stations)
        sources, runtime, driver = stations.sources, stations.runtime, stations.driver
        neighbours = (runtime, driver, stations.shutdown)
        beside = publisher.Beside(
            seconds=time.process_time() - started,
            lateness=lateness,
            stale=stations.executor.stale(),
            disk=disk.hanging(stations.disks),
            unanswered=self.host.silence.so_far(),
            evictions={} if stations.evictor is None else dict(stations.evictor.counts),
            conditions=tuple(
                condition
                for neighbour in neighbours
                if neighbour is not None
                for condition in neighbour.conditions()
            ),
            runtime={} if runtime is None else runtime.counted(),
            driver={} if driver is None else driver.counted(),
            shutdown={} if stations.shutdown is None else stations.shutdown.times(),
            kubelet_seconds={} if sources is None else sources.took(),
        )
        stations.publisher.record_pass(made, results, beside)
        return any(step.verdict is result.Verdict.DONE for step in results)

    def _apply(
        self, stations: Stations, made: publisher.Pass, patience: float
    ) -> tuple[result.Result, ...]:
        """Carry the draft out, and keep what the next pass and a successor must know of it."""
        book, wanted = stations.book, made.draft.wanted
        fresh = wanted is not stations.watch.followed
        adopted = not fresh or self._adopt(book, made)
        with stations.publisher.recording() as record:
            results = stations.executor.run(made.draft, made.snapshot, record, patience=patience)
        self.guard.record(made.snapshot, self.history, results)
        self.moved(results)
        if stations.runtime is not None:
            stations.runtime.on_results(results)
        self._save(stations)
        if fresh:
            stations.watch.follow(wanted, again=not adopted)
            targets = {write.target for write in wanted}
            stations.executor.pauses.keep_only(targets | set(book.entries))
        self.groups_changed = self.observer.reader.hear(step.target for step in results)
        return results

    def _adopt(self, book: journal.Journal, made: publisher.Pass) -> bool:
        """Journal the originals of inherited values; whether all of them are on disk."""
        at = self.clock().wall
        # Where the journal cannot be written, the executor refuses each step and says so.
        with contextlib.suppress(OSError):
            inherited = copies.find(made.draft.wanted, made.snapshot, book.entries)
            known = [
                copies.adopt(self.host, book, write, original, unix_time=at)
                for write, original in inherited
            ]
            return all(known)
        return False

    def _save(self, stations: Stations) -> None:
        for row in self.rows:
            if row.kept is not None:
                stations.checkpoints.save(row.stem, row.schema, self.states[row.stem], row.saved)

    def flush_checkpoints(self, stations: Stations, patience: float = 0.0) -> None:
        """Write what was saved; what the disk refused is tried again in the next pass."""
        stations.disks[1].collect()
        stations.checkpoints.flush(patience)
        log = stations.publisher.log
        for stem, error in stations.checkpoints.refused().items():
            stations.publisher.repeats.say(log.error, "checkpoint.failed", stem, detail=str(error))

    def adjust(
        self, stations: Stations, newcomer: pod.Pod, container: str
    ) -> adjustment.Adjustment:
        """Decide what a container gets before its first instruction; for a runtime that asks.

        Waits briefly for one small checkpoint: a successor must know what the container holds
        before the container runs. A failure raises: the runtime then starts it as it is.
        """
        admitted = self.admit(newcomer, container)
        for stem, failure in admitted.failures.items():
            stations.publisher.repeats.say(
                stations.publisher.log.error,
                "admission.failed",
                stem,
                detail=failure,
                pod=newcomer.key,
            )
        self._save(stations)
        self.flush_checkpoints(stations, disk.PATIENCE)
        return admitted.adjustment

    def protection_broken(self, stations: Stations) -> bool:
        """Whether another program removed a protective limit whose write is not being retried."""
        broken = stations.watch.broken()
        now = self.clock().at if broken else 0.0
        if all(stations.executor.pauses.waiting(target, now) for target in broken):
            return False
        # A file is not as we left it: the last draft does not stand.
        self._drafter.doubt()
        return True

    def moved(self, results: Iterable[result.Result]) -> None:
        """Have the next pass read what a plan changed."""
        self._drafter.touched(results)
        self.observation.on_results(results)

    def restoring(self, entries: Mapping[str, journal.Entry]) -> publisher.Pass:
        """Draft the plan that puts everything back."""
        seen = self.look((entry.group for entry in entries.values()), slow=True)
        there = present.read(self.host, seen, (), entries.values())
        nothing = chain.Round(outcomes=(), ledger=seen.ledger)
        return publisher.Pass(
            snapshot=seen, round=nothing, draft=planner.restore(seen, there, entries)
        )
