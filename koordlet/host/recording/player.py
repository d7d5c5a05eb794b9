"""A recording played again: the machine as it was at each of its frames.

Covers: the frames of an archive, applied one by one to the tree in memory.
Does not cover: the archive's tree (``tarindex``), what a frame is (``frames``), policies.

Rules:
1. A frame that cannot be read is refused with its name: half a moment is none.
2. Paths are the machine's own and never lead out of the tree: ``..`` is refused.
3. A handle reads what its file holds now, as a kernel's does; ``ENODEV`` once it is gone.
"""

from __future__ import annotations

import base64
import binascii
import errno
import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from koordlet.host import machine
from koordlet.host.fs import root
from koordlet.host.recording import archive, roots, tarindex
from koordlet.model import errors, moment

_FIX = "record it again with 'koordlet record'"


class PlayedHost(archive.ArchiveHost):
    """A recorded machine whose files change from frame to frame."""

    def __init__(self, top: tarindex.ArchiveEntry) -> None:
        super().__init__(top)
        self._gone: set[int] = set()
        self._inode = 1 << 40

    def pread(self, handle: int, size: int) -> bytes:
        if handle in self._open and self._open[handle].inode in self._gone:
            raise root.fail(errno.ENODEV, str(handle))
        return super().pread(handle, size)

    def change(self, path: str, *, data: bytes = b"", link: str | None = None) -> None:
        """Change a file or link."""
        *folders, last = _parts(path)
        here = self._top
        for name in folders:
            here = here.children.setdefault(name, self._entry(root.FileKind.DIRECTORY))
            if here.kind is not root.FileKind.DIRECTORY:
                raise ValueError(f"{path}: {name} is not a directory")
        entry = here.children.get(last)
        kind = root.FileKind.FILE if link is None else root.FileKind.LINK
        if entry is None or entry.kind is not kind:
            entry = here.children[last] = self._entry(kind)
        entry.data, entry.link = data, link or ""

    def remove(self, path: str) -> None:
        """The file is gone; with the last one of a directory, the directory is."""
        trail = [self._top]
        parts = _parts(path)
        for name in parts:
            below = trail[-1].children.get(name)
            if below is None:
                return
            trail.append(below)
        for folder, name in zip(reversed(trail[:-1]), reversed(parts), strict=True):
            self._gone.add(folder.children.pop(name).inode)
            if folder.children:
                return

    def _entry(self, kind: root.FileKind) -> tarindex.ArchiveEntry:
        self._inode += 1
        return tarindex.ArchiveEntry(kind, inode=self._inode)


class Recording:
    """One archive of ``koordlet record``."""

    def __init__(self, name: str) -> None:
        self.name = name
        top = tarindex.load(name)
        folder = top.children.get("frames")
        self._frames = dict(folder.children) if folder is not None else {}
        #: The machine; ``play`` moves it on.
        self.host = PlayedHost(roots.inside(name, top))
        self._now = machine.Now(at=0.0, wall=0.0)

    @property
    def has_frames(self) -> bool:
        """Whether this is a recording, and not a machine without a course of time."""
        return "0.jsonl" in self._frames

    def clock(self) -> machine.Now:
        """The time of the frame that is played."""
        return self._now

    def play(self) -> Iterator[machine.Now]:
        """Each moment, once the machine is as it was then."""
        if not self.has_frames:
            why = "has no frames: it is a machine, and not a recording of one"
            raise errors.ConfigError(why, culprit=self.name, fix=_FIX)
        for number in range(len(self._frames)):
            entry = self._frames.get(f"{number}.jsonl")
            if entry is None:
                raise self._refuse(number, "is missing")
            self._now = self._apply(number, entry.data)
            yield self._now

    def _apply(self, number: int, data: bytes) -> machine.Now:
        try:
            head, *changes = [_object(line) for line in data.splitlines()] or [{}]
            now = machine.Now(at=_seconds(head, "monotonic"), wall=_seconds(head, "wall"))
            for change in changes:
                path = str(change["path"])
                if change.get("gone"):
                    self.host.remove(path)
                elif "link" in change:
                    self.host.change(path, link=str(change["link"]))
                elif "base64" in change:
                    self.host.change(path, data=base64.b64decode(change["base64"], validate=True))
                else:
                    self.host.change(path, data=str(change["text"]).encode())
        except (ValueError, TypeError, KeyError, RecursionError, binascii.Error) as error:
            raise self._refuse(number, f"cannot be read: {error}") from None
        return now

    def _refuse(self, number: int, why: str) -> errors.ConfigError:
        return errors.ConfigError(f"frame {number} {why}", culprit=self.name, fix=_FIX)


def _seconds(head: Mapping[str, Any], name: str) -> float:
    """A time of the first line. One that no clock shows would be drawn and computed with."""
    value: Any = head.get(name)
    if type(value) not in (int, float) or not 0 <= value <= moment.LAST:
        problem = "is missing" if value is None else f"is {str(value)[:40]!r}"
        raise ValueError(f"the time {name!r} {problem}, expected seconds")
    return float(value)


def _object(line: bytes) -> Mapping[str, Any]:
    value = json.loads(line)
    if not isinstance(value, dict):
        raise ValueError("a line is not a JSON object")
    return cast("Mapping[str, Any]", value)


def _parts(path: str) -> list[str]:
    parts = path.split("/")[1:]
    if not path.startswith("/") or not all(parts) or not {".", ".."}.isdisjoint(parts):
        raise ValueError(f"not a path of a machine: {path[:120]!r}")
    return parts
