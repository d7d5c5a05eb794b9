"""The audit log: one JSON line for every action, with its policy and reason. Bounded on disk.

Covers: appending, rotation. Does not cover: what is needed to put things back (``state.journal``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

#: The log and its one predecessor together stay below twice this.
MAX_BYTES = 8 << 20


class Audit:
    """An append-only log file; the one before it is kept as ``.1``."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self.path = path
        self.max_bytes = max_bytes
        #: Lines that could not be written: a full disk must not stop enforcement.
        self.lost = 0
        path.parent.mkdir(parents=True, exist_ok=True)

    def write(self, record: Mapping[str, object]) -> None:
        """Append one record, as one ``write(2)``, so that lines never mix."""
        data = (json.dumps(record, sort_keys=True, default=str) + "\n").encode()
        try:
            handle = os.open(
                self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640
            )
            try:
                if os.fstat(handle).st_size + len(data) > self.max_bytes:
                    self.path.replace(self.path.with_name(self.path.name + ".1"))
                    os.close(handle)
                    handle = os.open(
                        self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640
                    )
                size = os.fstat(handle).st_size
                if os.write(handle, data) != len(data):
                    # A full disk took half a line: leave nothing for the next one to be glued to.
                    os.ftruncate(handle, size)
                    self.lost += 1
            finally:
                os.close(handle)
        except OSError:
            self.lost += 1
