"""Schedules passes: three lanes, events of the kernel, signals of the service manager.

Covers: when a pass runs, readiness, reloading, stopping.
Does not cover: what a pass does (``tick.Tick.run``).

Rules:
1. One thread, one event loop; a pass is synchronous. Nothing that may block runs in it.
2. A pass that fails costs that pass: the failure is logged once and counted, the next pass comes.
   systemd's watchdog is fed after good passes only.
3. READY comes after the first verified pass; endpoints start after READY.
"""

from __future__ import annotations

import asyncio
import signal
import time
import typing
from collections.abc import Callable

from koordlet.agent import lifecycle, reload, stop_signal
from koordlet.agent import sources as agent_sources
from koordlet.apply import executor
from koordlet.host.systemd import notify
from koordlet.model.record import dataclass
from koordlet.report import view

if typing.TYPE_CHECKING:
    from koordlet.agent import endpoints as agent_endpoints
    from koordlet.agent import scheduler_child
    from koordlet.workloads import gatherer


@dataclass(frozen=True, slots=True)
class Lane:
    """A period at which passes run."""

    name: str
    period: float


#: fast: protective limits, and how long the work waits that they protect. tick: everything but
#: topology, mounts and units. slow: those as well.
FAST = Lane("fast", 0.1)
TICK = Lane("tick", 1.0)
SLOW = Lane("slow", 10.0)

#: The period of the fast lane while memory is near a threshold.
_NEAR_PERIOD = 0.05

#: When groups change, a pass follows: after a pause in which a new group gets its first files, at
#: this distance from the last pass, and ...
_GATHER = 0.003
_APART = 0.02
#: ... while there is credit: a storm of events gets this share of a CPU, after a burst.
_SHARE = 0.1
_BURST = 0.2

#: Passes until a start has nothing more to change: first groups, then controllers, then cpusets.
_SETTLE = 5


class Sleeper:
    """Sleeps until a time or until it is woken: one timer and one future.

    ``asyncio.wait_for`` makes a task of each sleep: six turns of the event loop instead of two, ten
    times a second.
    """

    def __init__(self) -> None:
        self._woken = False
        self._asleep: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """End this sleep, or the next one where nobody sleeps."""
        self._woken = True
        self._end()

    async def sleep(self, seconds: float) -> None:
        """Let the event loop turn, and return at the time at the latest."""
        loop = asyncio.get_running_loop()
        self._asleep = loop.create_future()
        timer = loop.call_later(0.0 if self._woken else max(0.0, seconds), self._end)
        try:
            await self._asleep
        finally:
            timer.cancel()
            self._asleep, self._woken = None, False

    def _end(self) -> None:
        if self._asleep is not None and not self._asleep.done():
            self._asleep.set_result(None)


class Loop:
    """Runs an agent until it is told to stop."""

    def __init__(
        self,
        agent: lifecycle.Agent,
        *,
        config: reload.LiveConfig,
        notifier: notify.Notifier,
        endpoints: agent_endpoints.Endpoints,
        on_ready: Callable[[view.ReportView, tuple[str, ...]], None],
        child: scheduler_child.SchedulerChild | None = None,
    ) -> None:
        self.agent = agent
        self.child = child
        self.sources = agent.sources
        self.runtime = agent.runtime
        self.publisher = agent.publisher
        self.config = config
        self.notifier = notifier
        self.endpoints = endpoints
        self._on_ready = on_ready
        self._sleeper = Sleeper()
        self._reload_asked = False
        self._stopping = False
        #: A valid configuration has come, and the agent starts again with it.
        self.again = False
        #: The kernel reported that groups came, went or were written.
        self._groups_changed = False
        #: The kernel reported that memory grows short.
        self._memory_rang = False

    async def run(self) -> None:
        """Run from the first pass until everything is put back or handed over."""
        loop = asyncio.get_running_loop()
        for number in stop_signal.NUMBERS:
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, self.hup)
        if stop_signal.heard():
            # A signal came during the imports: limits of an earlier agent are not kept any longer.
            self._inherit()
            self._end()
            self.agent.close()
            return
        try:
            if self.child is not None:
                self.child.start()
            if self.sources is not None:
                await self._ask(self.sources)
            if self.runtime is not None:
                await self.runtime.start(self._pass)
            self._begin()
            if self.runtime is not None:
                self.runtime.open()
            try:
                await self._start_endpoints()
                await self._loop()
            finally:
                await self.endpoints.stop(final=self._final)
        finally:
            await self.agent.close_evictor()
            for neighbour in (self.agent.shutdown, self.child, self.agent.driver, self.sources):
                if neighbour is not None:
                    await neighbour.stop()
            self._end()
            if self.runtime is not None:
                await self.runtime.stop()
            self.agent.close()

    async def _ask(self, sources: gatherer.Gatherer) -> None:
        for problem in self.agent.saved_history.follow(sources):
            self.publisher.warn_discarded("strategies", problem)
        # The first pass should know which pods run here, if that can be known soon.
        await sources.start(agent_sources.PATIENCE)

    def stop(self) -> None:
        """End for good after the current pass."""
        self._stopping, self.again = True, False
        self._sleeper.wake()

    def hup(self) -> None:
        """Read the configuration again now."""
        self._reload_asked = True
        self._sleeper.wake()

    def _inherit(self) -> None:
        """Decide about the limits of an earlier agent."""
        if not self.agent.book.entries:
            return
        if not self.config.configured and not self.agent.overdue():
            # Without a configuration it is not known whether they are wanted: they stay meanwhile.
            self.agent.hand_over()
        elif self.agent.overdue() or not self.agent.enforce:
            # They outlived their hand-over, or an observing agent would not look after them.
            self._refuse()

    def _refuse(self) -> None:
        done = self.agent.restore(final=False)
        self.publisher.log.warning("handover.refused", restored=done.restored)

    def _begin(self) -> None:
        self._inherit()
        for _ in range(_SETTLE):
            if not self.agent.one_pass(slow=True, patience=executor.PATIENCE):
                break
        if self.config.configured:
            self.agent.handover.clear()
        self.config.ready()
        self.notifier.ready(self._status())

    async def _start_endpoints(self) -> None:
        if self.agent.driver is not None:
            self.agent.driver.start(self._pass)
        if self.agent.shutdown is not None:
            self.agent.shutdown.start()
        addresses = await self.endpoints.start(lambda: self.publisher.view)
        self.publisher.set_ready(self.endpoints.problems)
        self._listen()
        if self._groups_changed:
            # This pass sets the watches up: a group that comes after "ready" is reported.
            self._pass()
        self.publisher.log.info("daemon.ready", mode=self.publisher.mode, surfaces=list(addresses))
        if self.publisher.view is not None:
            self.endpoints.publish(self.publisher.view)
            self._on_ready(self.publisher.view, addresses)
        self.notifier.status(f"all surfaces up, {self._status()}")

    async def _loop(self) -> None:
        clock = asyncio.get_running_loop().time
        start = clock()
        due = {lane: start + lane.period for lane in (FAST, TICK, SLOW)}
        last, credit = start, _BURST
        while not self._stopping:
            if (not self._groups_changed or credit <= 0) and not self._memory_rang:
                await self._sleeper.sleep(min(due.values()) - clock())
            if self._groups_changed:
                await asyncio.sleep(max(_GATHER, last + _APART - clock()))
            now = clock()
            credit, last = min(_BURST, credit + _SHARE * (now - last)), now
            ready = {lane for lane, at in due.items() if now >= at}
            lateness = now - due[TICK] if TICK in ready else None
            for lane in ready:
                # Monotonic: a late lane keeps its phase and skips the passes it missed.
                due[lane] += lane.period * (1 + (now - due[lane]) // lane.period)
            if self._reload_asked or TICK in ready:
                self._reconfigure()
            watch = self.agent.memory_watch
            if FAST in ready and watch.near:
                due[FAST] = min(due[FAST], now + _NEAR_PERIOD)
            rang, self._memory_rang = self._memory_rang, False
            short = (rang or FAST in ready) and watch.crossed(told=rang)
            tick = self.agent.tick
            broken = short or (FAST in ready and tick.protection_broken(self.agent))
            # Latency-sensitive work waits so much that the next pass must not.
            strained = FAST in ready and self.agent.enforce and tick.strained()
            if TICK in ready or SLOW in ready or broken or strained:
                self._pass(slow=SLOW in ready, lateness=lateness)
            elif self._groups_changed and credit > 0:
                # Time that a pass spends waiting on a busy machine is not charged.
                began = time.thread_time()
                self._pass()
                credit -= time.thread_time() - began

    def _listen(self) -> None:
        """Wake up when the kernel reports something about groups or memory."""
        observer = self.agent.tick.observer
        self.agent.tick.observation.watch()
        observer.watch()
        self.agent.watch.listen()
        alarm = self.agent.memory_watch.listen(self.agent.tick.host)
        if alarm is not None:
            asyncio.get_running_loop().add_reader(alarm, self._ring)
        if observer.events is not None:
            asyncio.get_running_loop().add_reader(observer.events.handle, self._hear)
            self._groups_changed = True

    def _hear(self) -> None:
        if self.agent.tick.observer.reader.hear():
            self._groups_changed = True
            self._sleeper.wake()

    def _ring(self) -> None:
        if self.agent.memory_watch.rings():
            self._memory_rang = True
            self._sleeper.wake()

    def _pass(self, *, slow: bool = False, lateness: float | None = None) -> bool:
        """Run a pass; ``True`` when it changed something. Only a lane's pass can be late."""
        changed = False
        try:
            self._groups_changed = False
            changed = self.agent.one_pass(slow=slow, lateness=lateness)
            self._groups_changed = self.agent.tick.groups_changed
        except Exception as error:  # noqa: BLE001 -- rule 2
            self.publisher.repeats.say(
                self.publisher.log.error, "daemon.pass_failed", repr(error), exc_info=error
            )
        else:
            self.notifier.alive()
            self.endpoints.publish(self.publisher.view)
        if self.runtime is not None:
            self.runtime.on_pass()
        if self.agent.driver is not None:
            self.agent.driver.on_pass()
        return changed

    def _reconfigure(self) -> None:
        if not self.config.configured and self.agent.book.entries and self.agent.overdue():
            self._refuse()
        forced, self._reload_asked = self._reload_asked, False
        if self.config.look(forced=forced, reloading=self._reloading):
            self.notifier.ready(self._status())
        if self.config.again and not self._stopping:
            self._stopping = self.again = True

    def _reloading(self) -> None:
        self.notifier.reloading()
        if self.runtime is not None:
            self.runtime.reset()

    def _status(self) -> str:
        status = f"{self.publisher.mode}, {len(self.agent.book.entries)} files under control"
        wrong = self.publisher.config_problem
        return f"{status}; {' '.join(wrong.split())}" if wrong else status

    @property
    def _final(self) -> bool:
        stays = self.agent.tick.effective.config.state.on_stop != "restore"
        return not stays and not self.again

    def _end(self) -> None:
        """A final stop restores; a stop that expects a successor leaves a deadline."""
        if self.runtime is not None:
            self.runtime.close()
        if self._final and (self.agent.enforce or self.agent.book.entries):
            self.notifier.stopping("restoring")
            done = self.agent.restore()
            self.publisher.log.info(
                "daemon.restored",
                restored=done.restored,
                left=len(done.left),
                failed=len(done.failed),
            )
        elif self.agent.enforce:
            self.notifier.stopping("handing over")
            self.publisher.log.info("daemon.handover", seconds=self.agent.hand_over())
