"""Keeps the limits of evictions at what their file says: ReschedulingConfiguration, read again.

Covers: noticing that the file changed, refusing a bad one in words. Does not cover: reading it
(``loop.configuration``), profiles, which are read at the start alone.

Rules:
1. A change is read by the look after the one that noticed it, when it has held still in between: a
   file that is written in pieces is never caught halfway.
2. A bad file is reported once for each content, and what was in force stays; so for one that is
   gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from koordlet import log
from koordlet.kubeapi import manifests
from koordlet.model import errors
from koordlet.scheduler.disruption.settings import DisruptionSettings
from koordlet.scheduler.loop import configuration

#: Seconds between two looks.
PAUSE = 5.0

_Stamp = tuple[int, int, int]


class DisruptionReload:
    """Follows one file."""

    def __init__(
        self, path: Path, known: DisruptionSettings, take: Callable[[DisruptionSettings], None]
    ) -> None:
        self._path, self._known, self._take = path, known, take
        #: Of the content that was read, and that the last look saw.
        self._read = self._seen = self._stamp()

    def _stamp(self) -> _Stamp | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(PAUSE)
            self.look()

    def look(self) -> None:
        """Take in a change that has held still (rule 1)."""
        before, self._seen = self._seen, self._stamp()
        if self._seen == self._read or self._seen != before:
            return
        self._read = self._seen
        try:
            bodies = manifests.load(str(self._path))
            settings = configuration.read_all(bodies, str(self._path)).disruption
        except errors.ConfigError as error:
            log.get().error("disruption.config_refused", detail=str(error))
            return
        if settings != self._known:
            self._known = settings
            self._take(settings)
            log.get().info("disruption.config_taken", config=str(self._path))
