"""Connects the agent and its container runtime through NRI: one plugin, one handler.

Covers: starting and stopping, conditions, counters, state that outlives a restart, noticing that
the runtime no longer reports. Does not cover: answers (``handler``), the connection
(``workloads.nri.plugin``).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import typing
from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
from typing import TypeVar

from koordlet.agent import lifecycle
from koordlet.agent.nri import handler, start_check
from koordlet.model import adjustment, decision, result
from koordlet.workloads.nri import plugin, trust

if typing.TYPE_CHECKING:
    from koordlet.config import cluster_sections

STEM = "nri"
#: Seconds without a connection until a condition says so: runtimes restart.
_PATIENCE = 15.0
#: Seconds that a start waits for the runtime, where no other source knows the pods.
_INTRODUCTION = 3.0
#: Seconds that a container may be listed by its pod's source and not reported by the runtime.
_UNREPORTED = 10.0
#: Seconds between two renewals of the connection for that reason.
_RENEWALS = 60.0
#: Runtimes that speak NRI, by the scheme of their containers' ids.
_SPEAKERS = ("containerd", "cri-o")

_T = TypeVar("_T")


class NriAdapter:
    """Answers the runtime for as long as the agent runs."""

    def __init__(
        self,
        agent: lifecycle.Agent,
        config: cluster_sections.Nri,
        *,
        alone: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._agent = agent
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._run_pass: Callable[[], bool] = lambda: False
        record, problem = agent.checkpoints.revive(STEM, trust.SCHEMA, trust.revive)
        agent.publisher.warn_discarded(STEM, problem)
        self._trust = trust.StartTrust(config.failed_starts, record)
        self._start_check = start_check.StartCheck(agent=agent)
        self.handler = handler.NriHandler(
            agent=agent,
            trust=self._trust,
            alone=alone,
            run_pass=self._pass,
            update=self._update,
            check=self._start_check,
        )
        settings = plugin.NriSettings(
            socket=config.socket or "",
            index=config.index,
            deadline=config.deadline_milliseconds / 1000,
            quiet=float(config.quiet_seconds),
        )
        self.plugin = plugin.NriPlugin(settings, self.handler, self._ask)
        #: When the connection was seen last, and when it was renewed for unreported containers.
        self._seen = self._renewed = clock()
        #: Containers that the runtime has not reported: id to when that was noticed.
        self._unreported: dict[str, float] = {}

    async def start(self, run_pass: Callable[[], bool]) -> None:
        """Connect, and wait for the pods that run already."""
        self._loop = asyncio.get_running_loop()
        self._seen = self._clock()
        self._run_pass = run_pass
        self.plugin.start()
        if self.handler.alone:
            # The first pass must know which pods run here: it would put back any other.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.handler.synchronized.wait(), _INTRODUCTION)

    def open(self) -> None:
        """Begin to answer: the first pass is over."""
        self.handler.answer(on=True)

    def on_pass(self) -> None:
        """Do what is due after each pass."""
        now = self._clock()
        if self.plugin.status.connected:
            self._seen = now
            self._find_unreported(now)
        self.handler.expire()
        self._save()

    def on_results(self, results: Sequence[result.Result]) -> None:
        """Take the results of a plan that was carried out."""
        self.handler.on_results(results)

    def reset(self) -> None:
        """Adjust containers again, as the operator asked."""
        if self._trust.reset():
            self._agent.publisher.log.info("nri.reset")
            self._save()

    def close(self) -> None:
        """Cease to answer: everything is about to be put back."""
        self.handler.answer(on=False)

    async def stop(self) -> None:
        """Disconnect. The event loop goes on: the thread may be waiting for it."""
        try:
            await asyncio.to_thread(self.plugin.stop)
        except RuntimeError:  # no thread can be started: the plugin had none either, or ends soon
            self.plugin.stop()

    def conditions(self) -> tuple[decision.Condition, ...]:
        """Give what an operator should know."""
        status, problems = self.plugin.status, []
        if not status.connected and self._clock() - self._seen > _PATIENCE:
            problems.append(
                ("ContainerRuntimeLost", f"containers start without us: {status.problem}")
            )
        if self._trust.state.ceased:
            failed = ", ".join(sorted(self._trust.state.counted))
            why = f"containers that were adjusted never started ({failed})"
            fix = "does another plugin set the same fields? Send SIGHUP when that is settled"
            problems.append(("ContainerAdjustmentCeased", f"{why}: {fix}"))
        problems += [("ContainerStartFailed", why) for why in self.handler.unstarted.values()]
        problems += [("ContainerBeganWrong", why) for why in self._start_check.complaints.values()]
        return tuple(
            decision.Condition(type=kind, status=True, reason="NRI", message=message)
            for kind, message in problems
        )

    def counted(self) -> Mapping[str, float]:
        """Give the counters, for metrics."""
        status = self.plugin.status
        return {
            "connected": status.connected,
            "adjusting": not self._trust.state.ceased,
            "connections": status.connections,
            "events": status.events,
            "late": status.late,
            "errors": status.failed + status.odd,
            "updates": status.updates,
            "adjusted": self.handler.adjusted,
            "kept": self.handler.kept,
            "failed": self.handler.failed,
            "verified": self._start_check.verified,
            "repaired": self._start_check.repaired,
            "wrong": self._start_check.wrong,
        }

    def _pass(self) -> bool:
        return self._run_pass()

    def _update(self, container: str, wanted: adjustment.Adjustment) -> bool:
        return self.plugin.update(container, wanted)

    def _ask(self, question: Callable[[], _T]) -> futures.Future[_T]:
        """Take a question in the plugin's thread, and answer it in the event loop."""
        answer: futures.Future[_T] = futures.Future()

        def respond() -> None:
            if answer.set_running_or_notify_cancel():
                try:
                    answer.set_result(question())
                except Exception as error:  # noqa: BLE001 -- the plugin handles it
                    answer.set_exception(error)

        try:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(respond)
        except RuntimeError:
            # The event loop has ended, and nothing more is decided.
            answer.cancel()
        return answer

    def _find_unreported(self, now: float) -> None:
        """Renew a connection over which running containers were not reported."""
        running = {
            box.id
            for pod in self._agent.tick.observation.pods
            for box in pod.containers
            if box.running and box.id and box.runtime in _SPEAKERS
        }
        unreported = running - self.handler.known
        self._unreported = {box: self._unreported.get(box, now) for box in unreported}
        late = [box for box, since in self._unreported.items() if now - since > _UNREPORTED]
        if late and now - self._renewed > _RENEWALS:
            self._renewed = now
            self.plugin.renew(f"the runtime did not tell of {len(late)} containers")

    def _save(self) -> None:
        self._agent.checkpoints.save(STEM, trust.SCHEMA, self._trust.state)
        self._agent.checkpoints.flush()
