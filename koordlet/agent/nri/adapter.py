"""The agent and its container runtime: one plugin, one desk, and what is said of them.

Covers: starting and stopping, conditions, counters, what a restart must not forget, noticing that
the runtime no longer tells. Does not cover: answers (``handler``), the connection
(``workloads.nri.plugin``).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import typing
from collections.abc import Callable, Mapping
from concurrent import futures
from typing import TypeVar

from koordlet.agent import lifecycle
from koordlet.agent.nri import handler, start_check
from koordlet.model import decision
from koordlet.workloads.nri import plugin, trust

if typing.TYPE_CHECKING:
    from koordlet.config import cluster_sections

STEM = "nri"
#: Seconds without a connection that are nobody's business: runtimes restart.
_PATIENCE = 15.0
#: Seconds that a start waits for the runtime, where nobody else knows who runs here.
_INTRODUCTION = 3.0
#: Seconds that a container may be known to its pod's source and not to us.
_UNTOLD = 10.0
#: Seconds between two connections that are renewed for that.
_RENEWALS = 60.0
#: Runtimes that speak NRI, by the scheme of their containers' ids.
_SPEAKERS = ("containerd", "cri-o")

_T = TypeVar("_T")


class Attending:
    """Answers the runtime as long as the daemon runs."""

    def __init__(
        self,
        who: lifecycle.Agent,
        said: cluster_sections.Nri,
        *,
        alone: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._who = who
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._trust = trust.StartTrust(said.failed_starts, self._revived())
        self._births = start_check.Births(who=who)
        self.desk = handler.Desk(who=who, trust=self._trust, alone=alone, newborn=self._births)
        settings = plugin.NriSettings(
            socket=said.socket or "",
            index=said.index,
            deadline=said.deadline_milliseconds / 1000,
            quiet=float(said.quiet_seconds),
        )
        self.plugin = plugin.NriPlugin(settings, self.desk, self._ask)
        self.desk.tell = self.plugin.update
        #: When the connection was seen last, and when it was renewed for containers untold.
        self._seen = self._renewed = clock()
        #: Containers that the runtime did not tell of: id to when that was noticed.
        self._untold: dict[str, float] = {}

    async def start(self, pass_now: Callable[[], bool]) -> None:
        """Connect, and hear what is there."""
        self._loop = asyncio.get_running_loop()
        self._seen = self._clock()
        self.desk.pass_now = pass_now
        self._who.done = self.desk.done
        self._who.teller.standing = self.conditions
        self._who.teller.runtime = self.counted
        self.plugin.start()
        if self.desk.alone:
            # The first pass shall know who runs here: what it does not know it would put back.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.desk.heard_of.wait(), _INTRODUCTION)

    def opens(self) -> None:
        """The first pass is over: answer."""
        self.desk.open = True

    def tick(self) -> None:
        """See to what takes no event to happen."""
        now = self._clock()
        if self.plugin.status.connected:
            self._seen = now
            self._look_for_untold(now)
        self.desk.failed += self._trust.overdue(self.desk.clock())
        self._save()

    def reset(self) -> None:
        """The operator has seen to it."""
        if self._trust.reset():
            self._who.teller.log.info("nri.reset")
            self._save()

    def closes(self) -> None:
        """Answer no more: everything is put back."""
        self.desk.open = False

    async def stop(self) -> None:
        """Disconnect. The loop goes on: the thread may be waiting for it."""
        try:
            await asyncio.to_thread(self.plugin.stop)
        except RuntimeError:  # no thread to be had: then the plugin had none either, or ends soon
            self.plugin.stop()

    # What is said ---------------------------------------------------------------------------------

    def conditions(self) -> tuple[decision.Condition, ...]:
        """What an operator should know."""
        return tuple(
            decision.Condition(type=kind, status=True, reason="NRI", message=message)
            for kind, message in self._troubles()
        )

    def _troubles(self) -> list[tuple[str, str]]:
        status, found = self.plugin.status, []
        if not status.connected and self._clock() - self._seen > _PATIENCE:
            found.append(("ContainerRuntimeLost", f"containers start without us: {status.problem}"))
        if self._trust.state.ceased:
            failed = ", ".join(sorted(self._trust.state.counted))
            why = f"containers that were adjusted never started ({failed})"
            fix = "does another plugin set the same fields? Send SIGHUP when that is settled"
            found.append(("ContainerAdjustmentCeased", f"{why}: {fix}"))
        found += [("ContainerStartFailed", why) for why in self.desk.unstarted.values()]
        found += [
            ("ContainerBeganWrong", sentence) for sentence in self._births.complaints.values()
        ]
        return found

    def counted(self) -> Mapping[str, float]:
        """For metrics."""
        status = self.plugin.status
        return {
            "connected": status.connected,
            "adjusting": not self._trust.state.ceased,
            "connections": status.connections,
            "events": status.events,
            "late": status.late,
            "errors": status.failed + status.odd,
            "updates": status.updates,
            "adjusted": self.desk.adjusted,
            "kept": self.desk.kept,
            "failed": self.desk.failed,
            "verified": self._births.verified,
            "repaired": self._births.repaired,
            "wrong": self._births.wrong,
        }

    # Inside ---------------------------------------------------------------------------------------

    def _ask(self, question: Callable[[], _T]) -> futures.Future[_T]:
        """Called in the plugin's thread, answered in the loop."""
        answer: futures.Future[_T] = futures.Future()

        def respond() -> None:
            if answer.set_running_or_notify_cancel():
                try:
                    answer.set_result(question())
                except Exception as error:  # noqa: BLE001 -- it is the asker's
                    answer.set_exception(error)

        try:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(respond)
        except RuntimeError:
            # The loop has ended, and with it everything that could be decided.
            answer.cancel()
        return answer

    def _look_for_untold(self, now: float) -> None:
        """Containers that run and that we were not told of: the connection is dead."""
        running = {
            box.id
            for one in self._who.line.pods
            for box in one.containers
            if box.running and box.id and box.runtime in _SPEAKERS
        }
        untold = running - self.desk.known
        self._untold = {box: self._untold.get(box, now) for box in untold}
        late = [box for box, since in self._untold.items() if now - since > _UNTOLD]
        if late and now - self._renewed > _RENEWALS:
            self._renewed = now
            self.plugin.renew(f"the runtime did not tell of {len(late)} containers")

    def _revived(self) -> trust.StartRecord | None:
        state, problem = self._who.checkpoints.revive(STEM, trust.SCHEMA, trust.revive)
        if problem:
            self._who.teller.log.warning("checkpoint.discarded", policy=STEM, detail=problem)
        return state

    def _save(self) -> None:
        self._who.checkpoints.save(STEM, trust.SCHEMA, self._trust.state)
        self._who.checkpoints.flush()
