"""The whole line on one screen: look, decide, do, publish, again and again.

Covers: the lanes, readiness, reloading, stopping.
Does not cover: any station's work; one pass is ``lifecycle.one_pass``.

Rules:
1. One thread, one event loop; a pass is synchronous. Nothing that may block runs in it.
2. A pass that fails costs that pass: it is said once and counted, the next one comes. systemd's
   watchdog hears of good passes only.
3. READY comes after the first verified pass; surfaces come after READY.
"""

from __future__ import annotations

import asyncio
import signal
import time
import typing
from collections.abc import Callable, Mapping
from typing import Protocol

from koordlet.agent import lifecycle, reload, stop_signal
from koordlet.agent import sources as agent_sources
from koordlet.apply import executor
from koordlet.host.systemd import notify
from koordlet.model.record import dataclass
from koordlet.report import view

if typing.TYPE_CHECKING:
    from koordlet.kubeapi import objects
    from koordlet.model import observed, spread


@dataclass(frozen=True, slots=True)
class Lane:
    """One clock of the loop."""

    name: str
    period: float


#: fast: limits that protect others, and what those feel. tick: everything. slow: topology, mounts,
#: units as well.
FAST = Lane("fast", 0.1)
TICK = Lane("tick", 1.0)
SLOW = Lane("slow", 10.0)

#: The fast lane's while memory is near a threshold.
_NEAR_PERIOD = 0.05

#: Something happened to groups: a pass follows, once what belongs together (a group and its first
#: files) has happened, but not too soon after the last one, and ...
_GATHER = 0.003
_APART = 0.02
#: ... while there is credit: a storm of events gets this share of a CPU, after a burst.
_SHARE = 0.1
_BURST = 0.2

#: Passes until a fresh start is quiet: groups are made, then controllers, then sets.
_SETTLE = 5


class Surfaces(Protocol):
    """What others look at: started late, stopped first."""

    #: Surface to why it could not start.
    problems: Mapping[str, str]

    async def start(self, current: Callable[[], view.ReportView | None]) -> tuple[str, ...]:
        """Come up; the addresses, for people."""

    def publish(self, now: view.ReportView | None) -> None:
        """There is a new view."""

    async def stop(self, *, final: bool) -> None:
        """Go away; ``final``: for good."""


class Runtime(Protocol):
    """The container runtime, which asks about containers before they begin."""

    async def start(self, pass_now: Callable[[], bool]) -> None:
        """Connect; ``pass_now`` does a pass, and says whether it changed anything."""

    def opens(self) -> None:
        """The first pass is over: answer."""

    def tick(self) -> None:
        """A pass is over."""

    def reset(self) -> None:
        """The operator wants to begin anew."""

    def closes(self) -> None:
        """Answer no more: everything is put back."""

    async def stop(self) -> None:
        """Go away."""


class Sources(Protocol):
    """Who runs here, asked in the background."""

    #: Where objects are, where somebody stores them.
    store: objects.Objects | None
    #: No kubelet and no control plane says who runs here.
    alone: bool

    async def start(self, patience: float) -> None:
        """Begin to ask, and wait so long for first answers."""

    def take(self) -> observed.Observed:
        """The newest of what they said."""

    def hold(self, words: Mapping[str, object] | None) -> None:
        """The strategies that an agent before us held where newer ones cannot be read."""

    def held(self) -> Mapping[str, object] | None:
        """The strategies that hold so; ``None``: there are none."""

    def took(self) -> Mapping[tuple[str, str], spread.Spread]:
        """How long the kubelet's answers took, by path and status."""

    async def stop(self) -> None:
        """Cease to ask."""


class Child(Protocol):
    """A process that runs beside the agent for as long as it does."""

    def start(self) -> None:
        """Begin."""

    async def stop(self) -> None:
        """End."""


class Daemon:
    """Runs an agent until it is told to stop."""

    def __init__(
        self,
        who: lifecycle.Agent,
        *,
        config: reload.Configuring,
        notifier: notify.Notifier,
        surfaces: Surfaces,
        on_ready: Callable[[view.ReportView, tuple[str, ...]], None],
        sources: Sources | None = None,
        runtime: Runtime | None = None,
        child: Child | None = None,
    ) -> None:
        self.agent = who
        self.child = child
        self.sources = sources
        self.runtime = runtime
        self.teller = who.teller
        self.config = config
        self.notifier = notifier
        self.surfaces = surfaces
        self._on_ready = on_ready
        self._wake = asyncio.Event()
        self._hup = False
        self._stopping = False
        #: Another life is to come, with a configuration at last; not where it is told to stop.
        self.again = False
        #: The kernel told that groups came, went or were written.
        self._told = False
        #: … or that memory grows short.
        self._rung = False

    async def run(self) -> None:
        """From the first pass to the restored machine."""
        loop = asyncio.get_running_loop()
        for number in stop_signal.NUMBERS:
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, self.hup)
        if stop_signal.heard():
            # Told while the modules were imported: what an agent before us left is not kept longer.
            self._inherit()
            self._end()
            self.agent.close()
            return
        try:
            if self.child is not None:
                self.child.start()
            if self.sources is not None:
                await self._ask(self.sources)
            self.agent.evict_with(self.sources)
            if self.runtime is not None:
                await self.runtime.start(self._pass_now)
            self._begin()
            if self.runtime is not None:
                self.runtime.opens()
            try:
                await self._show()
                await self._loop()
            finally:
                await self.surfaces.stop(final=self._final)
        finally:
            await self.agent.cease_evicting()
            if self.child is not None:
                await self.child.stop()
            if self.sources is not None:
                await self.sources.stop()
            self._end()
            if self.runtime is not None:
                await self.runtime.stop()
            self.agent.close()

    async def _ask(self, sources: Sources) -> None:
        for problem in self.agent.memory.follow(sources):
            self.teller.log.warning("checkpoint.discarded", policy="strategies", detail=problem)
        # The first pass shall know who runs here, if that can be known soon.
        await sources.start(agent_sources.PATIENCE)
        self.agent.line.take = sources.take
        self.teller.took = sources.took

    def stop(self) -> None:
        """End after the current pass, for good."""
        self._stopping, self.again = True, False
        self._wake.set()

    def hup(self) -> None:
        """Read the configuration again now."""
        self._hup = True
        self._wake.set()

    def _inherit(self) -> None:
        """What an agent before us left."""
        if not self.agent.book.entries:
            return
        if not self.config.configured and not self.agent.overdue():
            # Whether they are wanted nobody can say: until then they stay as without an agent.
            self.agent.hand_over()
        elif self.agent.overdue() or not self.agent.enforce:
            # Limits that outlived their hand-over, or that an observing agent would not look after.
            self._refuse()

    def _refuse(self) -> None:
        done = self.agent.restore(final=False)
        self.teller.log.warning("handover.refused", restored=done.restored)

    def _begin(self) -> None:
        self._inherit()
        for _ in range(_SETTLE):
            if not self.agent.one_pass(slow=True, patience=executor.PATIENCE):
                break
        if self.config.configured:
            self.agent.handover.clear()
        self.config.ready()
        self.notifier.ready(self._status())

    async def _show(self) -> None:
        addresses = await self.surfaces.start(lambda: self.teller.view)
        self.teller.surface_problems = self.surfaces.problems
        self.teller.became_ready()
        self._listen()
        if self._told:
            # This look sets the watches up: who comes after we say that we are there is heard.
            self._pass(slow=False, lateness=None)
        self.teller.log.info("daemon.ready", mode=self.teller.mode, surfaces=list(addresses))
        if self.teller.view is not None:
            self.surfaces.publish(self.teller.view)
            self._on_ready(self.teller.view, addresses)
        self.notifier.status(f"all surfaces up, {self._status()}")

    async def _loop(self) -> None:
        clock = asyncio.get_running_loop().time
        start = clock()
        due = {lane: start + lane.period for lane in (FAST, TICK, SLOW)}
        last, credit = start, _BURST
        while not self._stopping:
            if (not self._told or credit <= 0) and not self._rung:
                await self._sleep(min(due.values()) - clock())
            if self._told:
                await asyncio.sleep(max(_GATHER, last + _APART - clock()))
            now = clock()
            credit, last = min(_BURST, credit + _SHARE * (now - last)), now
            ready = {lane for lane, at in due.items() if now >= at}
            lateness = now - due[TICK] if TICK in ready else None
            for lane in ready:
                # Monotonic: a late lane keeps its phase and skips what it missed.
                due[lane] += lane.period * (1 + (now - due[lane]) // lane.period)
            if self._hup or TICK in ready:
                self._reconfigure()
            watch = self.agent.memory_watch
            if FAST in ready and watch.near:
                due[FAST] = min(due[FAST], now + _NEAR_PERIOD)
            rung, self._rung = self._rung, False
            short = (rung or FAST in ready) and watch.crossed(told=rung)
            broken = short or (FAST in ready and self.agent.protection_broken())
            strained = FAST in ready and self.agent.strained()
            if TICK in ready or SLOW in ready or broken or strained:
                self._pass(slow=SLOW in ready, lateness=lateness)
            elif self._told and credit > 0:
                # What a pass waits for on a busy machine costs nobody anything.
                began = time.thread_time()
                self._pass(slow=False, lateness=None)
                credit -= time.thread_time() - began

    def _listen(self) -> None:
        """Wake up when the kernel tells something about groups."""
        observer = self.agent.line.observer
        self.agent.line.watch()
        observer.watch()
        self.agent.watch.listen()
        alarm = self.agent.listen_for_memory()
        if alarm is not None:
            asyncio.get_running_loop().add_reader(alarm, self._ring)
        if observer.events is not None:
            asyncio.get_running_loop().add_reader(observer.events.handle, self._hear)
            self._told = True

    def _hear(self) -> None:
        if self.agent.line.observer.reader.hear():
            self._told = True
            self._wake.set()

    def _ring(self) -> None:
        if self.agent.memory_rings():
            self._rung = True
            self._wake.set()

    async def _sleep(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._wake.wait(), max(0.0, seconds))
            self._wake.clear()
        except TimeoutError:
            return

    def _pass_now(self) -> bool:
        return self._pass(slow=False, lateness=None)

    def _pass(self, *, slow: bool, lateness: float | None) -> bool:
        """``True`` when something was changed. Only what the clock called for can be late."""
        changed = False
        try:
            late = lateness is not None and lateness > TICK.period / 2
            self._told = False
            changed = self.agent.one_pass(slow=slow, lateness=lateness, late=late)
            self._told = self.agent.told
        except Exception as error:  # noqa: BLE001 -- rule 2
            self.teller.repeats.say(
                self.teller.log.error, "daemon.pass_failed", repr(error), exc_info=error
            )
        else:
            self.notifier.alive()
            self.surfaces.publish(self.teller.view)
        if self.runtime is not None:
            self.runtime.tick()
        return changed

    def _reconfigure(self) -> None:
        if not self.config.configured and self.agent.book.entries and self.agent.overdue():
            self._refuse()
        forced, self._hup = self._hup, False
        if self.config.look(forced=forced, reloading=self._reloading):
            self.notifier.ready(self._status())
        if self.config.again and not self._stopping:
            self._stopping = self.again = True

    def _reloading(self) -> None:
        self.notifier.reloading()
        if self.runtime is not None:
            self.runtime.reset()

    def _status(self) -> str:
        said = f"{self.teller.mode}, {len(self.agent.book.entries)} files under control"
        wrong = self.teller.config_problem
        return f"{said}; {' '.join(wrong.split())}" if wrong else said

    @property
    def _final(self) -> bool:
        stays = self.agent.line.effective.config.state.on_stop != "restore"
        return not stays and not self.again

    def _end(self) -> None:
        """A final stop restores; a stop that expects a successor leaves a deadline."""
        if self.runtime is not None:
            self.runtime.closes()
        if self._final and (self.agent.enforce or self.agent.book.entries):
            self.notifier.stopping("restoring")
            done = self.agent.restore()
            self.teller.log.info(
                "daemon.restored",
                restored=done.restored,
                left=len(done.left),
                failed=len(done.failed),
            )
        elif self.agent.enforce:
            self.notifier.stopping("handing over")
            self.teller.log.info("daemon.handover", seconds=self.agent.hand_over())
