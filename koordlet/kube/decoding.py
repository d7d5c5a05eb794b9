"""Bytes of an API server as objects: lists item by item, watches line by line.

Covers: msgspec decoding, bounds, what is dropped. Does not cover: reading the bytes (``adapter``).

A list is split without being decoded (one pass in C), then decoded object by object, so that the
loop can breathe in between. An item that is no object costs only itself; a text with half a
character in it costs that character, and the object is named to whoever asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from koordlet import log
from koordlet.kube import answers
from koordlet.kubeapi import kinds, objects, refusals, shapes
from koordlet.model import surrogates

#: A line of a watch: etcd takes objects of 1.5 MiB, JSON may need twice as much.
LINE_BYTES = 8 << 20


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class RawList(msgspec.Struct):
    """A list that has been split."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    #: An empty list may be null, as Go writes it.
    items: list[msgspec.Raw] | None = None


class _Event(msgspec.Struct):
    type: str
    object: dict[str, Any]


_LIST = msgspec.json.Decoder(RawList)
_OBJECT = msgspec.json.Decoder(dict[str, Any])
_EVENT = msgspec.json.Decoder(_Event)


def split(raw: bytes, culprit: str) -> tuple[RawList, Sequence[bytes | msgspec.Raw]]:
    """A list and its items as they came; ``Unavailable`` where it is none."""
    try:
        listing, items = shapes.split(_LIST, raw)
    except ValueError as error:
        raise garbled(culprit, error) from error
    if not listing.metadata.resource_version:
        raise refusals.Unavailable("the list has no resourceVersion", culprit=culprit)
    return listing, items


class RepairLog:
    """Says which objects have a text that had to be mended: once, then at growing intervals."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._repeats = log.Repeats(clock)

    def mended(self, body: objects.Object, kind: str) -> None:
        """One such object."""
        name = "/".join(filter(None, objects.key(body)))
        say = log.get().warning
        self._repeats.say(
            say, "source.mended", (kind, name), kind=kind, object=name, detail=surrogates.SAID
        )


def item(raw: bytes | msgspec.Raw, kind: kinds.Kind, remarks: RepairLog) -> objects.Object | None:
    """One object of a list, which says its kind as if it had been asked for alone."""
    try:
        body, mended = shapes.decode(_OBJECT, raw)
    except ValueError:
        return None
    if not objects.text(body, "name"):
        return None
    if mended:
        remarks.mended(body, kind.name)
    body.setdefault("kind", kind.name)
    body.setdefault("apiVersion", kind.api_version)
    return body


def one(raw: bytes, culprit: str) -> objects.Object:
    """One object; ``Unavailable`` where it is none."""
    try:
        return shapes.decode(_OBJECT, raw)[0]
    except ValueError as error:
        raise garbled(culprit, error) from error


def change(line: bytes, culprit: str, remarks: RepairLog) -> objects.Change:
    """One line of a watch; an ``ERROR`` in it is raised as what it says."""
    try:
        event, mended = shapes.decode(_EVENT, line)
    except ValueError as error:
        raise garbled(culprit, error) from error
    if event.type == "ERROR":
        code = event.object.get("code")
        status: Mapping[str, Any] = event.object
        raise answers.from_status(status, code if isinstance(code, int) else 500, culprit)
    try:
        verb = objects.Verb(event.type)
    except ValueError as error:
        raise garbled(culprit, error) from error
    revision = objects.revision(event.object)
    if not revision:
        raise refusals.Garbled("the watch event has no resourceVersion", culprit=culprit)
    if mended:
        remarks.mended(event.object, str(event.object.get("kind") or culprit))
    return objects.Change(verb, {} if verb is objects.Verb.BOOKMARK else event.object, revision)


def garbled(culprit: str, error: Exception) -> refusals.Garbled:
    """An answer that makes no sense."""
    return refusals.Garbled(
        f"the response is not one of an API server: {str(error)[:200]}",
        culprit=culprit,
        fix="check the server's address, and whether a proxy is in between",
    )


class Lines:
    """Cuts a stream into lines, none of them too long."""

    def __init__(self, culprit: str, most: int = LINE_BYTES) -> None:
        self._buffer = bytearray()
        self._culprit = culprit
        self._most = most

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that are complete now."""
        seen = len(self._buffer)
        self._buffer += data
        start = 0
        while (end := self._buffer.find(b"\n", max(start, seen))) >= 0:
            line = bytes(self._buffer[start:end])
            start = end + 1
            if line.strip():
                yield line
        del self._buffer[:start]
        if len(self._buffer) > self._most:
            raise refusals.Garbled(
                f"a watch event exceeds {self._most >> 20} MiB",
                culprit=self._culprit,
                fix="no API server stores such an object: check its address, and whether a proxy is"
                " in between",
            )
