"""Keeps a running agent at the newest good configuration, and reports why a file is refused.

Covers: taking a changed file, refusing a bad one in words, keeping the last good one on disk.
Does not cover: noticing and validating (``config.reloader``), a start without a good file
(``bootstrap``), when the file is checked (``loop``).

Rules:
1. A failure with a new configuration costs that configuration, not the agent.
2. A configuration is good once an agent is ready with it: then it is kept for the next start.
3. An agent without any good configuration is not ready. The first good one starts the agent again,
   since much is read only at the start.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import cast

from koordlet import log
from koordlet.agent import bootstrap, lifecycle
from koordlet.config import last_answer, parcel, plain, reloader, sourced
from koordlet.model import errors
from koordlet.state import disk, last_config, paths

_ERRAND = "the last good configuration"


class LiveConfig:
    """The configuration of one running agent."""

    def __init__(
        self,
        agent: lifecycle.Agent,
        reload: reloader.Reloader,
        *,
        start: bootstrap.Start | None = None,
        keep: paths.Paths | None = None,
    ) -> None:
        self.agent = agent
        self.publisher = agent.publisher
        self.reload = reload
        #: The configuration in force is a file's, of now or earlier; else the built-in one.
        self.configured = start is None or start.configured
        #: The agent is to start again, with a configuration (rule 3).
        self.again = False
        self._keep_at = keep
        #: Fields that only a start reads, and that differ from what this agent started with.
        self.waiting: list[str] = []
        self._started = cast("plain.Section", agent.tick.effective.config)
        #: A good configuration that is not on disk yet.
        self._unkept: sourced.Effective | None = None
        self._instead = "" if start is None else start.instead
        self._start = start
        self._publish()

    def ready(self) -> None:
        """Keep the configuration that the agent is ready with; wait briefly for the disk."""
        start, effective = self._start, self.agent.tick.effective
        # A reload since the start answers another question.
        unchanged = start is not None and start.config is effective
        self._keep(effective, start.asked if start is not None and unchanged else None)
        self.agent.disks[1].wait(_ERRAND, disk.PATIENCE)

    def look(self, *, forced: bool, reloading: Callable[[], None]) -> bool:
        """Take a changed file, or any if ``forced``; ``True`` where the status has changed."""
        try:
            if forced:
                reloading()
            return self._look(forced=forced)
        except Exception as error:  # noqa: BLE001 -- rule 1
            self._set(repr(error), self.publisher.unready)
            self.publisher.repeats.say(
                self.publisher.log.error, "config.failed", repr(error), exc_info=error
            )
            return False

    def _look(self, *, forced: bool) -> bool:
        before = self.publisher.config_problem
        if self._unkept is not None:
            self._keep(self._unkept)
        loaded = self.reload.force() if forced else self.reload.poll()
        if isinstance(loaded, errors.ConfigError):
            kept = self._instead or bootstrap.AS_BEFORE
            self.publisher.log.error("config.refused", detail=str(loaded), kept=kept)
        elif isinstance(loaded, sourced.Effective):
            if self.configured:
                self._apply(loaded)
                self._keep(loaded)
            else:
                self.again = True
        self._publish()
        return loaded is not None or before != self.publisher.config_problem

    def _publish(self) -> None:
        if self.reload.error is None:
            self._instead = ""
        refused, instead = self.reload.error, self._instead or bootstrap.AS_BEFORE
        self._set(
            f"{refused}; in force: {instead}" if refused else "",
            "" if self.configured else "there is no valid configuration",
        )

    def _set(self, problem: str, unready: str) -> None:
        # Not the tick's: a text that means the same is in force as well.
        text = self.reload.effective.text if self.configured else None
        self.publisher.set_config(text, problem=problem, unready=unready)

    def _apply(self, effective: sourced.Effective) -> None:
        """Take a new configuration, and log which changes wait for a restart."""
        tick = self.agent.tick
        # Both are records, whatever their type says (``sourced.Effective``).
        changed = plain.changes(self._started, cast("plain.Section", effective.config))
        self.waiting = [path for path, at_start in changed if at_start]
        tick.configure(effective)
        log.configure(effective.config.log.level, effective.config.log.format)
        self.publisher.log.info("config.applied", file=effective.path or "built-in")
        for warning in effective.warnings:
            self.publisher.log.warning("config.warning", detail=warning)
        if self.waiting:
            self.publisher.log.warning("config.needs_restart", fields=self.waiting)
        why = bootstrap.why_observe(effective, tick.observer.layout, live=tick.host.live)
        if self.agent.enforce is bool(why):
            try:
                self.agent.switch(enforce=not why)
            except errors.HostError as error:
                self.publisher.log.warning("daemon.mode_refused", detail=str(error))
            self.publisher.log.warning("daemon.mode", mode=self.publisher.mode, why=why)

    def _keep(self, good: sourced.Effective, asked: parcel.Question | None = None) -> None:
        """Keep a good configuration on disk (rule 2), without waiting for the disk."""
        if self._keep_at is None or not self.configured:
            return

        def heard(error: OSError | None) -> None:
            if error is not None:
                self.publisher.log.warning("config.not_kept", detail=str(error))

        work = functools.partial(_on_disk, self._keep_at, good, asked)
        self._unkept = None if self.agent.disks[1].ask(_ERRAND, work, heard) else good


def _on_disk(
    where: paths.Paths, good: sourced.Effective, asked: parcel.Question | None = None
) -> None:
    last_config.keep(where.last_config, good.text or "")
    if asked is not None:
        last_answer.keep(where.last_answer, asked, good)
