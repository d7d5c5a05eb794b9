"""The agent of one host: what it opens, holds and gives back.

Covers: opening and closing, one pass, restoring, handing over.
Does not cover: when a pass runs (``loop``), what is shown (``report``).
"""

from __future__ import annotations

import contextlib
import functools
import time
import typing
from collections.abc import Callable, Sequence
from pathlib import Path

from koordlet.agent import memory_watch, neighbours, publisher, saved_history
from koordlet.agent import restore as agent_restore
from koordlet.agent import tick as ticks
from koordlet.apply import copies, executor, intents, kinds, places, planner, protective
from koordlet.host import machine
from koordlet.host.cgroup import claim
from koordlet.host.process import identity as process_identity
from koordlet.model import action, adjustment, errors, plan, pod, result
from koordlet.model.record import dataclass
from koordlet.policy.eviction import node_pressure
from koordlet.state import audit, checkpoint, disk, handover, journal, lock, ownfiles, paths

if typing.TYPE_CHECKING:
    from koordlet.apply import evictor

_FIX = "make the directory writable, or name another with --state-dir"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """What one agent is connected to. A command that runs once is connected to nothing.

    A neighbour that needs the agent is made by a function of the agent: no code assigns to an
    attribute of another object (``make wiring``).
    """

    sources: neighbours.Sources | None = None
    runtime: Callable[[Agent], neighbours.Runtime] | None = None
    #: Makes the evictor; without one, evictions wait.
    evictor: Callable[[ticks.Tick, evictor.Report], evictor.Evictor] | None = None


class Agent:
    """Holds everything that must be given back."""

    def __init__(
        self,
        tick: ticks.Tick,
        where: paths.Paths,
        *,
        enforce: bool,
        wired: Wiring | None = None,
    ) -> None:
        self.tick = tick
        self.enforce = enforce
        self.wired = Wiring() if wired is None else wired
        #: Groups changed while the newest pass was under way.
        self.groups_changed = False
        #: The disks of the originals, which actions wait for, and of everything else. In memory
        #: nothing blocks.
        inline = not tick.host.live
        self.disks = disk.Disk(where.lib, inline=inline), disk.Disk(where.lib, inline=inline)
        self.lock = lock.Lock(where.lock, process_identity.describe)
        self.disks[1].do("its lock file", self.lock.acquire)
        try:
            self._claim = claim.take(tick.host, tick.observer.layout) if enforce else ()
        except errors.HostError:
            # The next attempt of this process must not meet its own lock.
            self.lock.release()
            raise
        try:
            self.disks[1].do("what was there before", functools.partial(self._open, where))
        except errors.HostError:
            self._unclaim()
            self.lock.release()
            raise
        except OSError as error:
            self._unclaim()
            self.lock.release()
            what = "cannot open the agent's own files"
            culprit = Path(error.filename or where.lib)
            raise ownfiles.explained(error, what, culprit=culprit, fix=_FIX) from error
        for damage in self.book.damage:
            self.publisher.log.warning("journal.damaged", detail=damage)
        self._revive()
        self._evictor: evictor.Evictor | None = None
        if self.wired.evictor is not None:
            self._evictor = self.wired.evictor(tick, self.publisher.record_alone)
        self.executor = executor.Executor(
            tick.host, self.book, tick.observation.units, evictor=self._evictor
        )
        self.runtime = None if self.wired.runtime is None else self.wired.runtime(self)

    @property
    def _base(self) -> str:
        return self.tick.observer.base.strip("/")

    def _open(self, where: paths.Paths) -> None:
        identity = self.tick.observer.identity
        ids = {"machine_id": identity.machine_id, "boot_id": identity.boot_id}
        first, other = self.disks
        may = places.of(self.tick.host, self.tick.observer.layout)
        self.book = journal.Journal(
            where.journal, **ids, root=self._base, on=first, refusal=may.refusal
        )
        log = audit.Audit(
            where.audit, lambda: self.tick.effective.config.state.audit_bytes, on=other
        )
        self.publisher = publisher.Publisher(log, mode="enforce" if self.enforce else "observe")
        self.checkpoints = checkpoint.Checkpoints(where.checkpoints, **ids, on=other)
        self.saved_history = saved_history.SavedHistory(
            self.tick.history, self.checkpoints, self.tick.clock
        )
        self.handover = handover.Handover(where.handover, identity.boot_id, other)
        self.watch = protective.Watch(self.tick.host)
        self._followed: planner.Draft | None = None
        #: The state of each policy that is in its checkpoint.
        self._saved: dict[str, object] = {}
        #: The original of some file is not in the journal yet.
        self._unadopted = False
        #: The groups and the actions that the last pass was about.
        self._asked: list[object] = [None]
        self.memory_watch = memory_watch.MemoryWatch(self.tick.observation.pressure)

    def _revive(self) -> None:
        """Give each policy the state of its checkpoint; a damaged checkpoint costs that state."""
        for row in self.tick.rows:
            if row.kept is None:
                continue
            state, problem = self.checkpoints.revive(row.stem, row.schema, row.revive)
            if state is not None:
                self.tick.states[row.stem] = state
            if problem:
                self.publisher.log.warning("checkpoint.discarded", policy=row.stem, detail=problem)
        for problem in self.saved_history.revive():
            self.publisher.log.warning("checkpoint.discarded", policy="prediction", detail=problem)

    def overdue(self) -> bool:
        """Whether limits outlived their hand-over: they are put back before anything else."""
        deadline = self.handover.read()
        return deadline is not None and deadline.boottime < machine.boottime()

    def elsewhere(self) -> bool:
        """Whether the journal is of another cgroup root: it is restored before anything else."""
        return bool(self.book.entries) and self.book.root != self._base

    def one_pass(
        self,
        *,
        slow: bool,
        lateness: float | None = None,
        late: bool = False,
        patience: float = executor.SLICE,
    ) -> bool:
        """Observe, decide, plan, apply, publish. ``True`` when something was changed."""
        started = time.process_time()
        self.book.collect()
        made = self.tick.run_once(
            self.book.entries, groups=self.book.groups, slow=slow, acting=self.enforce
        )
        machine.step_aside()
        results: tuple[result.Result, ...] = ()
        moved = 0
        self.publisher.set_pods(made.snapshot.pods)
        if self.enforce and self.elsewhere():
            moved = self.restore(final=False).restored
        elif self.enforce:
            wanted = self._wanted(made, again=slow)
            with self.publisher.recording() as record:
                results = self.executor.run(made.draft, made.snapshot, record, patience=patience)
            self.tick.done(made, results)
            if self.runtime is not None:
                self.runtime.on_results(results)
            self._save()
            if wanted is not None:
                # Watch the files that this pass wants, and no others.
                complete = self.watch.follow(wanted)
                self.executor.pauses.keep_only({w.target for w in wanted} | set(self.book.entries))
                self._followed = made.draft if complete else None
            self.groups_changed = self.tick.observer.reader.hear(step.target for step in results)
        machine.step_aside()
        self.memory_watch.tick(self.tick.settings.get(node_pressure.STEM), made.snapshot.pressure)
        if self.memory_watch.near:
            # The victim is chosen by what is known when the threshold is crossed.
            self.tick.usage.compare(wanted=True)
        self.saved_history.tick()
        if slow:
            self.book.flush()
        machine.step_aside()
        self._flush_checkpoints()
        self._publish(
            made,
            results,
            publisher.Timing(seconds=time.process_time() - started, lateness=lateness, late=late),
        )
        return moved > 0 or any(step.verdict is result.Verdict.DONE for step in results)

    def _publish(
        self, made: ticks.Pass, results: Sequence[result.Result], timing: publisher.Timing
    ) -> None:
        sources, runtime = self.wired.sources, self.runtime
        beside = publisher.Beside(
            stale=self.executor.stale(),
            disk=disk.hanging(self.disks),
            unanswered=self.tick.host.silence.so_far(),
            evictions={} if self._evictor is None else dict(self._evictor.counts),
            conditions=() if runtime is None else runtime.conditions(),
            runtime={} if runtime is None else runtime.counted(),
            kubelet_seconds={} if sources is None else sources.took(),
        )
        self.publisher.record_pass(made, results, timing, beside)

    async def close_evictor(self) -> None:
        """Leave the evictions under way to the kubelet or the kernel."""
        if self._evictor is not None:
            await self._evictor.close()

    def _wanted(self, made: ticks.Pass, *, again: bool) -> tuple[action.Action, ...] | None:
        """What this pass wants; ``None`` where the last one wanted the same, unless ``again``."""
        if made.repeated and self._followed is not None and not self._unadopted:
            return None
        enforced = [o for o in made.said.outcomes if o.mode is plan.Mode.ENFORCE]
        asked: list[object] = [made.snapshot.groups]
        asked += [o.decision and o.decision.actions for o in enforced]
        same = asked[0] is self._asked[0] and asked[1:] == self._asked[1:]
        if same and self._followed is not None and not (again or self._unadopted):
            return None
        self._asked = asked
        self._unadopted = True
        wanted = tuple(planner.desired(enforced).actions.values())
        # Where the journal cannot be written, the executor refuses each step and says so.
        with contextlib.suppress(OSError):
            unadopted = copies.find(wanted, made.snapshot, self.book.entries)
            known = [self.adopt(*each) for each in unadopted]
            self._unadopted = not all(known)
        return wanted

    def switch(self, *, enforce: bool) -> None:
        """Start or stop enforcing, as a new configuration says; stopping restores everything."""
        if self.enforce and not enforce:
            self.restore()
            self.watch.follow(())
            self._followed = None
            self._unclaim()
        elif enforce and not self.enforce:
            self._claim = claim.take(self.tick.host, self.tick.observer.layout)
        self.enforce = enforce
        self.publisher.set_mode("enforce" if enforce else "observe")

    def _unclaim(self) -> None:
        claim.release(self.tick.host, self._claim)
        self._claim = ()

    def _save(self) -> None:
        for row in self.tick.rows:
            state = self.tick.states[row.stem]
            if row.kept is None or self._saved.get(row.stem) is state:
                continue
            self.checkpoints.save(row.stem, row.schema, row.saved(state))
            self._saved[row.stem] = state

    def _flush_checkpoints(self, patience: float = 0.0) -> None:
        """Write what was saved; what the disk refused is saved again in the next pass."""
        self.disks[1].collect()
        self.checkpoints.flush(patience)
        for stem, error in self.checkpoints.refused().items():
            self._saved.pop(stem, None)
            self.publisher.repeats.say(
                self.publisher.log.error, "checkpoint.failed", stem, detail=str(error)
            )

    def protection_broken(self) -> bool:
        """Whether another program removed a protective limit whose write is not being retried."""
        broken = self.watch.broken()
        if not broken:
            return False
        now = self.tick.clock().at
        if all(self.executor.pauses.waiting(target, now) for target in broken):
            return False
        self.tick.doubt()
        return True

    def admit(self, newcomer: pod.Pod, container: str) -> adjustment.Adjustment:
        """Decide what a container gets before its first instruction; for a runtime that asks.

        Waits briefly for one small checkpoint. An observing agent changes nothing. A failure
        raises: the runtime then starts the container as it is.
        """
        admitted = self.tick.admit(newcomer, container)
        for stem, failure in admitted.failures.items():
            self.publisher.repeats.say(
                self.publisher.log.error, "admission.failed", stem, detail=failure, pod=newcomer.key
            )
        if not self.enforce:
            return adjustment.Adjustment()
        # A successor must know what the container holds before the container runs.
        self._save()
        self._flush_checkpoints(disk.PATIENCE)
        return admitted.adjustment

    def listen_for_memory(self) -> int | None:
        """Open the descriptor on which the kernel reports memory pressure, where it can."""
        return self.memory_watch.listen(self.tick.host) if self.tick.host.live else None

    def strained(self) -> bool:
        """Whether latency-sensitive work waits so much that the next pass must not."""
        return self.enforce and self.tick.strained()

    def adopt(self, write: action.WriteFile, original: str, *, stays: bool = False) -> bool:
        """Journal the original of a file that was created with this value by our doing.

        ``False`` while the disk has not confirmed it. A file that ``stays`` as it was created is
        recorded all the same: nothing is written over it.
        """
        if write.target in self.book.entries:
            return True
        value = self.tick.host.text(self.tick.host.at(write.target)).strip()
        entry = journal.Entry(
            kind=action.kind(write),
            target=write.target,
            policy=write.policy,
            original=original,
            values=(write.value, value),
            knob=write.knob,
            group=write.group,
            inode=intents.inode_of(self.tick.host, kinds.directory(write)),
            unix_time=self.tick.clock().wall,
        )
        if not self.book.intend([entry], disk.PATIENCE):
            return True
        if stays:
            self.book.note(entry)
        return stays

    def restore(self, *, final: bool = True) -> agent_restore.Summary:
        """Put everything back, below the cgroup root that the journal is of.

        That root may be an earlier agent's. Unless ``final``, the hand-over deadline stays.
        """

        def report(step: result.Result) -> None:
            self.publisher.record_step(step)
            if self.runtime is not None:
                self.runtime.on_results((step,))

        if not self.elsewhere():
            with self.publisher.recording():
                done = agent_restore.restore(self.tick, self.executor, report)
        else:
            self._unclaim()
            there = self.tick.at(self.book.root)
            held = claim.take(there.host, there.observer.layout)
            try:
                with self.publisher.recording():
                    done = agent_restore.restore(there, self.executor, report)
            finally:
                there.observation.close()
                claim.release(there.host, held)
            if self.enforce:
                self._claim = claim.take(self.tick.host, self.tick.observer.layout)
        if not self.book.entries:
            self.book.move(self._base)
            if final:
                self.handover.clear()
        return done

    def hand_over(self) -> float:
        """Leave everything to a successor until a deadline; return the seconds until then.

        A deadline that cannot be written binds nobody: then everything is put back.
        """
        seconds = float(self.tick.effective.config.state.handover_seconds)
        if self.book.entries:
            try:
                self.handover.record(machine.boottime() + seconds)
            except OSError as error:
                self.publisher.log.warning("handover.not_recorded", detail=str(error))
                self.restore()
        return seconds

    def close(self) -> None:
        """Give back descriptors and locks."""
        self.memory_watch.close()
        self.watch.close()
        self.executor.close()
        self.book.close()
        # Write what is held back, if the disk answers, within a bounded time.
        self.disks[1].settle(disk.LONG)
        self.publisher.audit.flush()
        self.saved_history.close()
        self._flush_checkpoints()
        self.disks[1].close(disk.LONG)
        self._unclaim()
        self.tick.observation.close()
        self.lock.release()
