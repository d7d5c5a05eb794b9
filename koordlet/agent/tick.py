"""One pass up to its plan: observe, decide, draft. Shared by ``run``, ``plan`` and ``restore``.

Covers: the way from the host's files to a drafted plan, and the memory between passes.
Does not cover: carrying a plan out (``apply.executor``), when a pass runs (``loop``).
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace

from koordlet.agent import guard, observation, policy_settings
from koordlet.apply import drafting, originals, planner, present
from koordlet.host import machine
from koordlet.host.fs import root
from koordlet.model import action, counters, decision, knob, plan, pod, prediction, result, snapshot
from koordlet.model.record import dataclass
from koordlet.policy.best_effort import cpu_suppress
from koordlet.policy.framework import admission, chain, declaration, registry
from koordlet.state import journal

if typing.TYPE_CHECKING:
    from koordlet.apply import trace as traces
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
        self._before: Pass | None = None
        self._drafter = drafting.Drafter(host)
        self._originals = originals.Originals()
        #: Settings of policies beside the configuration.
        self.extra_settings: Mapping[str, object] = {}
        self._set_policies(effective)

    def override(self, settings: Mapping[str, object]) -> None:
        """Use these settings of policies in place of the configured ones, by stem."""
        self.extra_settings = settings

    def configure(self, effective: sourced.Effective) -> None:
        """Take a new configuration for the next pass. The cgroup root is that of the start."""
        self._set_policies(effective)
        self.observation.configure(effective)

    def _set_policies(self, effective: sourced.Effective) -> None:
        self.effective = effective
        self.settings = policy_settings.settings(effective.config)
        self.modes = policy_settings.modes(effective.config)
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
        sets = self._originals.sets
        return self.observation.observe(
            also, self.settings, self.modes, sets=sets, slow=slow, full=full
        )

    def decide(self, seen: snapshot.Snapshot, inputs: chain.Inputs | None = None) -> chain.Round:
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
            inputs=inputs,
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
        trace: traces.Trace | None = None,
    ) -> Pass:
        """Observe, decide, draft. ``acting``: it will be applied; ``groups``: of the entries.

        A ``trace`` is filled by the stations on the way.
        """
        also = (entry.group for entry in entries.values()) if groups is None else groups
        self._originals.follow(entries, groups)
        seen = self.look(also, slow=slow, full=slow and not self.observer.reader.watched)
        machine.step_aside()
        said = self.decide(seen, None if trace is None else trace.inputs)
        machine.step_aside()
        reader = self.observer.reader
        route: drafting.Route = planner.as_it_is
        if seen.through_systemd:
            route = functools.partial(self.observation.units.route, seen.layout)
        draft, repeated = self._drafter.next(
            (seen, said),
            entries,
            told=(reader, reader.disturbed),
            trusting=reader.watched and not slow,
            acting=acting,
            route=route,
        )
        if trace is not None:
            self._drafter.fill(trace)
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
        self.observation.on_results(results)

    def restoring(self, entries: Mapping[str, journal.Entry]) -> Pass:
        """Draft the plan that puts everything back."""
        seen = self.look((entry.group for entry in entries.values()), slow=True)
        there = present.read(self.host, seen, (), entries.values())
        nothing = chain.Round(outcomes=(), ledger=seen.ledger)
        return Pass(snapshot=seen, said=nothing, draft=planner.restore(seen, there, entries))
