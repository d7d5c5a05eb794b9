"""The agent of one host: what it opens, holds and gives back.

Covers: opening and closing, enforcing or not, restoring, handing over.
Does not cover: what a pass does (``tick``), when it runs (``loop``).
"""

from __future__ import annotations

import contextlib
import functools
import typing
from collections.abc import Callable
from pathlib import Path

from koordlet.agent import memory_watch, publisher, saved_history
from koordlet.agent import restore as agent_restore
from koordlet.agent import tick as ticks
from koordlet.apply import executor, places, protective
from koordlet.host import machine
from koordlet.host.cgroup import claim
from koordlet.host.process import identity as process_identity
from koordlet.model import result
from koordlet.model.record import dataclass
from koordlet.state import audit, checkpoint, disk, handover, journal, lock, ownfiles, paths

if typing.TYPE_CHECKING:
    from koordlet.agent import claim_driver, container_runtime, node_shutdown
    from koordlet.apply import evictor
    from koordlet.workloads import gatherer

_FIX = "it needs a directory to write to, on a disk that works and has room: see --state-dir"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """What one agent is connected to. A command that runs once is connected to nothing.

    A neighbour that needs the agent is made by a function of the agent: no code assigns to an
    attribute of another object (``make wiring``).
    """

    sources: gatherer.Gatherer | None = None
    runtime: Callable[[Agent], container_runtime.Runtime] | None = None
    #: Makes the driver of resource claims.
    driver: Callable[[Agent], claim_driver.ClaimDriver] | None = None
    #: Makes what delays shutdowns; nothing delays them without.
    shutdown: Callable[[Agent], node_shutdown.NodeShutdown | None] | None = None
    #: Makes the evictor; without one, evictions wait.
    evictor: Callable[[ticks.Tick, evictor.Report], evictor.Evictor] | None = None


class Agent(ticks.Stations):
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
        self.paths = where
        self.enforce = enforce
        self.wired = Wiring() if wired is None else wired
        # In memory nothing blocks.
        inline = not tick.host.live
        self.disks = disk.Disk(where.lib, inline=inline), disk.Disk(where.lib, inline=inline)
        self.lock = lock.Lock(where.lock, process_identity.describe)
        self.disks[1].do("its lock file", self.lock.acquire)
        with contextlib.ExitStack() as given_back:
            # The next attempt of this process must not meet its own lock.
            given_back.callback(self.lock.release)
            self._claim = claim.take(tick.host, tick.observer.layout) if enforce else ()
            given_back.callback(self._unclaim)
            try:
                self.disks[1].do("what was there before", functools.partial(self._open, where))
            except OSError as error:
                what = "cannot open the agent's own files"
                culprit = Path(error.filename or where.lib)
                raise ownfiles.explained(error, what, culprit=culprit, fix=_FIX) from error
            given_back.pop_all()
        for damage in self.book.damage:
            self.publisher.log.warning("journal.damaged", detail=damage)
        #: How often the journal was removed by somebody, as far as that was told.
        self._removals = 0
        self._revive()
        self.sources = self.wired.sources
        if self.wired.evictor is not None:
            self.evictor = self.wired.evictor(tick, self.publisher.record_alone)
        self.executor = executor.Executor(
            tick.host, self.book, tick.observation.units, evictor=self.evictor
        )
        self.runtime = None if self.wired.runtime is None else self.wired.runtime(self)
        self.driver = None if self.wired.driver is None else self.wired.driver(self)
        self.shutdown = None if self.wired.shutdown is None else self.wired.shutdown(self)

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
        self.memory_watch = memory_watch.MemoryWatch(self.tick.observation.pressure)

    def _revive(self) -> None:
        """Give each policy the state of its checkpoint; a damaged checkpoint costs that state."""
        for row in self.tick.rows:
            if row.kept is None:
                continue
            state, problem = self.checkpoints.revive(row.stem, row.schema, row.revive)
            if state is not None:
                self.tick.states[row.stem] = state
            self.publisher.warn_discarded(row.stem, problem)
        for problem in self.saved_history.revive():
            self.publisher.warn_discarded("prediction", problem)

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
        patience: float = executor.SLICE,
    ) -> bool:
        """Run a pass, once everything below an earlier cgroup root is put back.

        ``True`` when something was changed.
        """
        restored = 0
        if self.enforce and self.elsewhere():
            restored = self.restore(final=False).restored
        changed = self.tick.run(
            self,
            slow=slow,
            acting=self.enforce and not self.elsewhere(),
            lateness=lateness,
            patience=patience,
        )
        if self.book.removed > self._removals:
            self._removals = self.book.removed
            self.checkpoints.write_again()
            detail = f"{self.book.path}: written anew"
            self.publisher.log.error("journal.removed", detail=detail)
        return changed or restored > 0

    async def close_evictor(self) -> None:
        """Leave the evictions under way to the kubelet or the kernel."""
        if self.evictor is not None:
            await self.evictor.close()

    def switch(self, *, enforce: bool) -> None:
        """Start or stop enforcing, as a new configuration says; stopping restores everything."""
        if self.enforce and not enforce:
            self.restore()
            self.watch.follow(())
            self._unclaim()
        elif enforce and not self.enforce:
            self._claim = claim.take(self.tick.host, self.tick.observer.layout)
        self.enforce = enforce
        self.publisher.set_mode("enforce" if enforce else "observe")
        if self.shutdown is not None:
            self.shutdown.follow_mode()

    def _unclaim(self) -> None:
        claim.release(self.tick.host, self._claim)
        self._claim = ()

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
        self.tick.flush_checkpoints(self)
        self.disks[1].close(disk.LONG)
        self._unclaim()
        self.tick.observation.close()
        self.lock.release()
