"""The agent of one host: the line with its hands, its book and its locks.

Covers: opening and closing, one pass, restoring, handing over.
Does not cover: when to pass (``loop``), what is shown (``report``).
"""

from __future__ import annotations

import contextlib
import functools
import time
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from koordlet.agent import memory_watch, publisher, saved_history, tick
from koordlet.agent import restore as agent_restore
from koordlet.apply import copies, executor, intents, kinds, places, planner, protective
from koordlet.host import machine
from koordlet.host.cgroup import claim
from koordlet.host.process import identity as process_identity
from koordlet.model import action, adjustment, errors, plan, pod, result
from koordlet.policy.eviction import node_pressure
from koordlet.state import audit, checkpoint, disk, handover, journal, lock, ownfiles, paths

if typing.TYPE_CHECKING:
    from koordlet.apply import evictor
    from koordlet.kubeapi import objects


_FIX = "make the place writable, or name another with --state-dir"


class Sources(Protocol):
    """Who may know a store of objects."""

    store: objects.Objects | None
    #: No kubelet and no control plane says who runs here.
    alone: bool


class Agent:
    """Holds everything that must be given back."""

    def __init__(self, run: tick.Tick, where: paths.Paths, *, enforce: bool) -> None:
        self.tick = run
        self.enforce = enforce
        #: Hears of everything that was done, after it was done.
        self.done: Callable[[Sequence[result.Result]], None] = lambda _: None
        #: Something happened to groups while the newest pass was under way.
        self.told = False
        #: The disks of the originals, which actions wait for, and of everything else. In memory
        #: nothing blocks.
        inline = not run.host.live
        self.disks = disk.Disk(where.lib, inline=inline), disk.Disk(where.lib, inline=inline)
        self.lock = lock.Lock(where.lock, process_identity.describe)
        self.disks[1].do("its lock file", self.lock.acquire)
        try:
            self._claim = claim.take(run.host, run.observer.layout) if enforce else ()
        except errors.HostError:
            # Whoever tries again must not meet its own lock.
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
        self.hands = executor.Executor(self.tick.host, self.book, self.tick.units)
        self.checkpoints = checkpoint.Checkpoints(where.checkpoints, **ids, on=other)
        self.memory = saved_history.SavedHistory(self.tick.history, self.checkpoints, self.tick.clock)
        self.handover = handover.Handover(where.handover, identity.boot_id, other)
        self.watch = protective.Watch(self.tick.host)
        self._followed: planner.Draft | None = None
        #: The state of each policy that is in its checkpoint.
        self._saved: dict[str, object] = {}
        #: Somebody's original is yet to be written down.
        self._unadopted = False
        #: The groups and the wishes that the last pass was about.
        self._asked: list[object] = [None]
        self.memory_watch = memory_watch.MemoryWatch(self.tick.pressure)
        self._evictor: evictor.Evictor | None = None
        self.publisher = publisher.Publisher(
            audit.Audit(where.audit, self.tick.effective.config.state.audit_bytes, other),
            mode="enforce" if self.enforce else "observe",
        )

    def _revive(self) -> None:
        """Policies remember what their checkpoints say; a bad one costs that policy's memory."""
        for row in self.tick.rows:
            if row.revive is None:
                continue
            state, problem = self.checkpoints.revive(row.stem, row.schema, row.revive)
            if state is not None:
                self.tick.states[row.stem] = state
            if problem:
                self.publisher.log.warning("checkpoint.discarded", policy=row.stem, detail=problem)
        for problem in self.memory.revive():
            self.publisher.log.warning("checkpoint.discarded", policy="prediction", detail=problem)

    def overdue(self) -> bool:
        """Whether limits outlived their hand-over: then they go before anything else is done."""
        deadline = self.handover.read()
        return deadline is not None and deadline.boottime < machine.boottime()

    def elsewhere(self) -> bool:
        """Whether the journal is of another cgroup root: it goes before anything is done here."""
        return bool(self.book.entries) and self.book.root != self._base

    def one_pass(
        self,
        *,
        slow: bool,
        lateness: float | None = None,
        late: bool = False,
        patience: float = executor.SLICE,
    ) -> bool:
        """Look, decide, do, tell. ``True`` when something was changed."""
        started = time.process_time()
        # Also where nothing is done: what was put back last is still on its way to the disk.
        self.book.collect()
        made = self.tick.run_once(
            self.book.entries, groups=self.book.groups, slow=slow, acting=self.enforce
        )
        results: tuple[result.Result, ...] = ()
        moved = 0
        self.publisher.concern(made.snapshot.pods)
        if self.enforce and self.elsewhere():
            moved = self.restore(final=False).restored
        elif self.enforce:
            wanted = self._wanted(made, again=slow)
            with self.publisher.carrying_out() as heard:
                results = self.hands.run(made.draft, made.snapshot, heard, patience=patience)
            self.tick.done(made, results)
            self.done(results)
            self._save()
            if wanted is not None:
                self._follow(made.draft, wanted)
            # What we wrote ourselves is nothing to wake up for; what others did meanwhile is.
            self.told = self.tick.observer.reader.hear(one.target for one in results)
        self.memory_watch.tick(self.tick.settings.get(node_pressure.STEM), made.snapshot.pressure)
        # Who goes is decided when the threshold is crossed, by what is known then.
        self.tick.usage.comparing |= self.memory_watch.near
        self.memory.tick()
        if slow:
            self.book.flush()
        self._put_down()
        self.publisher.stale = self.hands.stale()
        self.publisher.disk = disk.hanging(self.disks)
        self.publisher.passed(
            made,
            results,
            seconds=time.process_time() - started,
            lateness=lateness,
            late=late,
            unanswered=self.tick.host.silence.so_far(),
        )
        return moved > 0 or any(one.verdict is result.Verdict.DONE for one in results)

    def evict_with(self, sources: Sources | None) -> None:
        """From now on evictions are carried out: by the store of the sources, or here."""
        from koordlet.agent import eviction_backend  # noqa: PLC0415 -- commands that run once evict nobody

        store = None if sources is None else sources.store
        self.hands.evictor = self._evictor = eviction_backend.make(
            self.tick,
            store,
            self.publisher.heard_alone,
            alone=sources is None or sources.alone,
        )
        self.publisher.evictions = self._evictor.counts

    async def cease_evicting(self) -> None:
        """What was begun goes on without us."""
        self.hands.evictor = None
        if self._evictor is not None:
            await self._evictor.close()

    def _wanted(self, made: tick.Pass, *, again: bool) -> tuple[action.Action, ...] | None:
        """What this pass wants, where that is not what the last one wanted; ``again``: anyway."""
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
        # Where the journal cannot be written the run says so, for each of its steps.
        with contextlib.suppress(OSError):
            found = copies.find(wanted, made.snapshot, self.book.entries)
            known = [self.adopt(*each) for each in found]
            self._unadopted = not all(known)
        return wanted

    def _follow(self, draft: planner.Draft, wanted: Sequence[action.Action]) -> None:
        """Keep an eye on what this pass wants, and on nothing else."""
        complete = self.watch.follow(wanted)
        self.hands.pauses.keep_only({one.target for one in wanted} | set(self.book.entries))
        self._followed = draft if complete else None

    def switch(self, *, enforce: bool) -> None:
        """Begin or cease to act, as a new configuration wants it. Ceasing puts everything back."""
        if self.enforce and not enforce:
            self.restore()
            self.watch.follow(())
            self._followed = None
            self._unclaim()
        elif enforce and not self.enforce:
            self._claim = claim.take(self.tick.host, self.tick.observer.layout)
        self.enforce = enforce
        self.publisher.mode = "enforce" if enforce else "observe"

    def _unclaim(self) -> None:
        claim.release(self.tick.host, self._claim)
        self._claim = ()

    def _save(self) -> None:
        for row in self.tick.rows:
            state = self.tick.states[row.stem]
            if row.revive is None or self._saved.get(row.stem) is state:
                continue
            self.checkpoints.save(row.stem, row.schema, row.keep(state))
            self._saved[row.stem] = state

    def _put_down(self, patience: float = 0.0) -> None:
        """Have the disk write what was saved; what it refused is saved again in the next pass."""
        self.disks[1].collect()
        self.checkpoints.flush(patience)
        for stem, error in self.checkpoints.refused().items():
            self._saved.pop(stem, None)
            self.publisher.repeats.say(
                self.publisher.log.error, "checkpoint.failed", stem, detail=str(error)
            )

    def protection_broken(self) -> bool:
        """Whether somebody removed a limit that protects others, and it is not waiting."""
        broken = self.watch.broken()
        if not broken:
            return False
        now = self.tick.clock().at
        if all(self.hands.pauses.waiting(one, now) for one in broken):
            return False
        self.tick.doubt()
        return True

    def admit(self, newcomer: pod.Pod, container: str) -> adjustment.Adjustment:
        """What a container gets before its first instruction; for a runtime that asks.

        Synchronous, and waits for one small checkpoint only, not for long. An agent that only
        observes says nothing. A failure is an exception: the asker starts the container as it is.
        """
        found = self.tick.admit(newcomer, container)
        for stem, failure in found.failures.items():
            self.publisher.repeats.say(
                self.publisher.log.error, "admission.failed", stem, detail=failure, pod=newcomer.key
            )
        if not self.enforce:
            return adjustment.Adjustment()
        # What is held must be known to a successor before the container runs.
        self._save()
        self._put_down(disk.PATIENCE)
        return found.adjustment

    def listen_for_memory(self) -> int | None:
        """A descriptor on which the kernel tells that memory grows short, where it can."""
        if not self.tick.host.live:
            return None
        from koordlet.host.cgroup import memory_alarms  # noqa: PLC0415 -- the first pass is over by then

        self.memory_watch.alarms = memory_alarms.Alarms(self.tick.host)
        return self.memory_watch.alarms.handle

    def memory_rings(self) -> bool:
        """Whether the kernel told something about memory."""
        found = self.memory_watch.alarms
        return found is not None and found.heard()

    def strained(self) -> bool:
        """Whether latency-sensitive work waits so much that a pass should not."""
        return self.enforce and self.tick.strained()

    def adopt(self, one: action.WriteFile, original: str, *, stays: bool = False) -> bool:
        """A file was born with this value by our doing: the original is put back like any other.

        ``False`` while the disk does not say that it has it. What ``stays`` as it was born is known
        all the same: nothing is written over it.
        """
        if one.target in self.book.entries:
            return True
        value = self.tick.host.text(self.tick.host.at(one.target)).strip()
        entry = journal.Entry(
            kind=action.kind(one),
            target=one.target,
            policy=one.policy,
            original=original,
            values=(one.value, value),
            knob=one.knob,
            group=one.group,
            inode=intents.inode_of(self.tick.host, kinds.directory(one)),
            unix_time=self.tick.clock().wall,
        )
        if not self.book.intend([entry], disk.PATIENCE):
            return True
        if stays:
            self.book.note(entry)
        return stays

    def restore(self, *, final: bool = True) -> agent_restore.Summary:
        """Put everything back. An agent that is yet to prove itself keeps its deadline.

        Below the cgroup root that the journal is of, which may be that of an agent before us.
        """

        def report(one: result.Result) -> None:
            self.publisher.heard(one)
            self.done((one,))

        if not self.elsewhere():
            with self.publisher.carrying_out():
                done = agent_restore.restore(self.tick, self.hands, report)
        else:
            self._unclaim()
            there = self.tick.at(self.book.root)
            held = claim.take(there.host, there.observer.layout)
            try:
                with self.publisher.carrying_out():
                    done = agent_restore.restore(there, self.hands, report)
            finally:
                there.close()
                claim.release(there.host, held)
            if self.enforce:
                self._claim = claim.take(self.tick.host, self.tick.observer.layout)
        if not self.book.entries:
            self.book.move(self._base)
            if final:
                self.handover.clear()
        return done

    def hand_over(self) -> float:
        """Leave everything to a successor until the deadline; the seconds for a new one.

        A deadline that nobody could read holds nobody to it: then everything is put back.
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
        if self.memory_watch.alarms is not None:
            self.memory_watch.alarms.close()
        self.watch.close()
        self.hands.close()
        self.book.close()
        self._close_files()
        self._unclaim()
        self.tick.close()
        self.lock.release()

    def _close_files(self) -> None:
        """Write what is held back, if the disk answers; in a time that ends."""
        self.disks[1].settle(disk.LONG)
        self.publisher.audit.flush()
        self.memory.close()
        self._put_down()
        self.disks[1].close(disk.LONG)
