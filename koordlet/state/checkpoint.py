"""Checkpoints: the state of each policy, one atomic JSON file per stem.

Covers: saving, loading, discarding what is of another boot, machine or schema.
Does not cover: what a state means (each policy's ``revive``).

Nobody waits for the disk: what is saved is written with the next ``flush``, and while the disk has
files of the last one, the newest state of each stem is held back. One that the disk refused is
named by ``refused``, and written with the next ``flush``. A file that somebody removes is written
again when its state changes next, and with all others where the journal was removed, too: whoever
removes one alone means its state, and a look at each file would cost every pass a turn of the disk.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from koordlet.state import disk, ownfiles

FORMAT = 1
MadeT = TypeVar("MadeT")
_ERRAND = "checkpoints"


class Checkpoints:
    """The files below one directory."""

    def __init__(
        self, directory: Path, *, machine_id: str, boot_id: str, on: disk.Disk | None = None
    ) -> None:
        self.directory = directory
        self.disk = disk.Disk(directory) if on is None else on
        self._stamp = {"format": FORMAT, "machine_id": machine_id, "boot_id": boot_id}
        #: The state that was saved last, and what was written of it.
        self._saved: dict[str, tuple[object, bytes]] = {}
        #: What is to be written, by stem, and what the disk refused of what it had.
        self._waiting: dict[str, bytes] = {}
        self._refused: dict[str, OSError] = {}
        #: The disk's last refusal of each stem that it has not written since.
        self._refusals: dict[str, OSError] = {}
        #: Whether the disk is stuck with somebody else's errand, and took none at the last flush.
        self._turned_away = False
        ownfiles.directory(directory)

    def save(
        self,
        stem: str,
        schema: int,
        state: object,
        keep: Callable[[Any], object] = lambda state: state,
    ) -> bool:
        """Take a state if it changed since the last one; ``True`` where that is to be written.

        ``keep`` turns a state that changed into what is written.
        """
        before, written = self._saved.get(stem, (None, b""))
        if before is state:
            return False
        if type(before) is type(state) and before == state:
            # The same object again needs no second comparison.
            self._saved[stem] = (state, written)
            return False
        kept = keep(state)
        body = kept if isinstance(kept, Mapping) else dataclasses.asdict(cast("Any", kept))
        document = {**self._stamp, "schema": schema, "state": body}
        data = (json.dumps(document, sort_keys=True) + "\n").encode()
        self._saved[stem] = (state, data)
        if data != written:
            self._waiting[stem] = data
        return data != written

    def flush(self, patience: float = 0.0) -> bool:
        """Write what was saved; whether the disk did it within so many seconds."""
        if self.disk.wait(_ERRAND, patience) and self._waiting:
            work = functools.partial(self._write, self._waiting)
            self._turned_away = not self.disk.ask(_ERRAND, work)
            if not self._turned_away:
                self._waiting = {}
        return self.disk.wait(_ERRAND, patience) and not self._waiting

    def refused(self) -> Mapping[str, OSError]:
        """Write errors since the last call, by stem; these states wait to be written again."""
        if self.disk.out(_ERRAND):
            return {}
        refused, self._refused = self._refused, {}
        for stem in refused:
            # Not everybody saves again what has not changed.
            self._waiting.setdefault(stem, self._saved[stem][1])
        return refused

    def write_again(self) -> None:
        """Write with the next flush whatever was saved: somebody has removed files."""
        self._waiting = {stem: data for stem, (_, data) in self._saved.items()}

    @property
    def slow(self) -> bool:
        """Whether the disk has not answered yet, or is stuck with somebody else's errand."""
        return self._turned_away or self.disk.out(_ERRAND)

    def unwritten(self, stem: str) -> str:
        """The reason that the newest state of a stem is not on disk; empty where it is."""
        error = self._refusals.get(stem)
        if error is not None and not self.slow:
            return f"{self._path(stem)}: {error.strerror or error}"
        if self.slow or stem in self._waiting:
            return f"the disk of {self.disk.place} does not answer"
        return ""

    def _write(self, files: Mapping[str, bytes]) -> None:
        for stem, data in files.items():
            try:
                write_atomically(self._path(stem), data)
                self._refusals.pop(stem, None)
            except OSError as error:
                self._refusals[stem] = error
                self._refused = {**self._refused, stem: error}

    def load(
        self, stem: str, schema: int, *, any_boot: bool = False
    ) -> tuple[Mapping[str, object] | None, str]:
        """The saved body, or ``None`` and why it was discarded (empty when there is none).

        With ``any_boot`` it may be of an earlier boot: what was learned about workloads stays true.
        """
        try:
            document = ownfiles.load_json(ownfiles.read(self._path(stem)))
        except FileNotFoundError:
            return None, ""
        except (OSError, ValueError) as error:
            return None, f"{self._path(stem)}: not readable ({error})"
        if not isinstance(document, dict) or not isinstance(document.get("state"), dict):
            return None, f"{self._path(stem)}: not a checkpoint"
        for key, wanted in {**self._stamp, "schema": schema}.items():
            if key == "boot_id" and any_boot:
                continue
            if document.get(key) != wanted:
                return None, f"{self._path(stem)}: written for another {key.replace('_id', '')}"
        return document["state"], ""

    def revive(
        self,
        stem: str,
        schema: int,
        make: Callable[[Mapping[str, object]], MadeT],
        *,
        any_boot: bool = False,
    ) -> tuple[MadeT | None, str]:
        """What ``make`` makes of the saved body, or ``None`` and why that was discarded."""
        body, problem = self.load(stem, schema, any_boot=any_boot)
        try:
            return (None if body is None else make(body)), problem
        except Exception as error:  # noqa: BLE001 -- somebody else's state: it costs itself
            return None, f"{self._path(stem)}: {type(error).__name__}: {error}"

    def known(self, stem: str) -> bool:
        """Whether a checkpoint exists."""
        return self._path(stem).exists()

    def _path(self, stem: str) -> Path:
        return self.directory / f"{stem}.json"


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file so that a reader, or a power cut, sees the old or the new one whole."""
    fresh = path.with_name(f".{path.name}.new")
    if not path.parent.exists():
        ownfiles.directory(path.parent)  # somebody removed it
    try:
        with os.fdopen(ownfiles.fresh(fresh), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    ownfiles.sync_directory(path.parent)
