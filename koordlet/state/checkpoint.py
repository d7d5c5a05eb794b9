"""Checkpoints: the state of each policy, one atomic JSON file per stem.

Covers: saving, loading, discarding what is of another boot, machine or schema.
Does not cover: what a state means (each policy's ``revive``).
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from koordlet.state import journal

FORMAT = 1


class Checkpoints:
    """The files below one directory."""

    def __init__(self, directory: Path, *, machine_id: str, boot_id: str) -> None:
        self.directory = directory
        self._stamp = {"format": FORMAT, "machine_id": machine_id, "boot_id": boot_id}
        #: The state that was saved last, and what was written of it.
        self._saved: dict[str, tuple[object, bytes]] = {}
        directory.mkdir(parents=True, exist_ok=True)

    def save(self, stem: str, schema: int, state: object) -> bool:
        """Write a state if it changed since the last save; ``True`` when something was written."""
        before, written = self._saved.get(stem, (None, b""))
        if before is state or (type(before) is type(state) and before == state):
            return False
        body = dataclasses.asdict(cast("Any", state))
        document = {**self._stamp, "schema": schema, "state": body}
        data = (json.dumps(document, sort_keys=True) + "\n").encode()
        if data != written:
            write_atomically(self._path(stem), data)
        self._saved[stem] = (state, data)
        return data != written

    def load(
        self, stem: str, schema: int, *, any_boot: bool = False
    ) -> tuple[Mapping[str, object] | None, str]:
        """The saved body, or ``None`` and why it was discarded (empty when there is none).

        With ``any_boot`` it may be of an earlier boot: what was learned about workloads stays true.
        """
        try:
            document = json.loads(self._path(stem).read_bytes())
        except FileNotFoundError:
            return None, ""
        except (OSError, ValueError, RecursionError) as error:
            return None, f"{self._path(stem)}: not readable ({error})"
        if not isinstance(document, dict) or not isinstance(document.get("state"), dict):
            return None, f"{self._path(stem)}: not a checkpoint"
        for key, wanted in {**self._stamp, "schema": schema}.items():
            if key == "boot_id" and any_boot:
                continue
            if document.get(key) != wanted:
                return None, f"{self._path(stem)}: of another {key.replace('_id', '')}"
        return document["state"], ""

    def known(self, stem: str) -> bool:
        """Whether there is a file."""
        return self._path(stem).exists()

    def _path(self, stem: str) -> Path:
        return self.directory / f"{stem}.json"


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file so that a reader, or a power cut, sees the old or the new one whole."""
    fresh = path.with_name(f".{path.name}.new")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    journal.sync_directory(path.parent)
