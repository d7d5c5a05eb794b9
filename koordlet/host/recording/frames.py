"""A recording over time: the first state, then what changed.

Covers: comparing readings, the lines of a frame, the manifest.
Does not cover: which files are read (``contents``), waiting and writing (``cli.record``).

A frame is one JSON object per line: first ``{"frame", "monotonic", "wall"}``, then for each file
that changed ``{"path", "text"}`` or, where it is not UTF-8, ``{"path", "base64"}``; a link is
``{"path", "link"}``, and what vanished ``{"path", "gone": true}``.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator

from koordlet.host import machine
from koordlet.host.fs import root
from koordlet.host.recording import contents, redaction

FORMAT = "koordlet-recording/v1"


class FrameDigests:
    """Digests of recorded files, so that only changes are written."""

    def __init__(self) -> None:
        self._seen: dict[str, bytes] = {}

    @property
    def files(self) -> int:
        """Number of known files and links."""
        return len(self._seen)

    def first(self, items: Iterable[contents.Item]) -> Iterator[contents.Item]:
        """Pass the first state through, remembering it."""
        for item in items:
            self._seen[item.path] = _digest(item)
            yield item

    def changes(self, items: Iterable[contents.Item]) -> Iterator[dict[str, object]]:
        """One object for each difference to the reading before."""
        before = set(self._seen)
        for item in items:
            before.discard(item.path)
            digest = _digest(item)
            if self._seen.get(item.path) != digest:
                self._seen[item.path] = digest
                yield _object(item)
        for path in sorted(before):
            del self._seen[path]
            yield {"path": path, "gone": True}


def frame(number: int, now: machine.Now, changes: Iterable[dict[str, object]]) -> bytes:
    """The content of ``frames/N.jsonl``."""
    head: dict[str, object] = {"frame": number, "monotonic": now.at, "wall": now.wall}
    return b"".join(json.dumps(record).encode() + b"\n" for record in (head, *changes))


def manifest(host: root.HostRoot, *, frames: int, files: int) -> bytes:
    """The content of ``manifest.json``: enough to know what this is without reading it."""
    document = {
        "format": FORMAT,
        "host": {
            "kernel": _line(host, "osrelease"),
            "arch": _line(host, "arch"),
            "cpus_online": _text(host, host.sys("devices", "system", "cpu", "online")),
        },
        "files": files,
        "frames": frames,
        "redactions": list(redaction.RULES),
    }
    return (json.dumps(document, indent=2) + "\n").encode()


def _digest(item: contents.Item) -> bytes:
    content = item.data if item.link is None else b"\0link " + item.link.encode()
    return hashlib.blake2b(content, digest_size=16).digest()


def _object(item: contents.Item) -> dict[str, object]:
    if item.link is not None:
        return {"path": item.path, "link": item.link}
    try:
        return {"path": item.path, "text": item.data.decode()}
    except UnicodeDecodeError:
        return {"path": item.path, "base64": base64.b64encode(item.data).decode()}


def _line(host: root.HostRoot, name: str) -> str | None:
    return _text(host, host.proc("sys", "kernel", name))


def _text(host: root.HostRoot, path: root.HostPath) -> str | None:
    try:
        return host.text(path).strip()[:256]
    except OSError:
        return None
