"""Objects from files, as kubectl prints them.

Covers: JSON and YAML, ``List`` and several documents, of when they are.
Does not cover: what an object means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from koordlet.model import documents, errors, moment
from koordlet.scheduler.wire import Body

_MAX_BYTES = 1 << 30
_FIX = "give kubectl's JSON or YAML"


def load(path: str) -> list[Body]:
    """The objects of a file, Lists unfolded; ``ConfigError`` where it holds none."""
    try:
        with Path(path).open("rb") as file:
            # A pipe or a device does not tell its size; one byte more is enough to know.
            raw = file.read(_MAX_BYTES + 1)
        if len(raw) > _MAX_BYTES:
            raise errors.ConfigError("larger than 1 GiB", culprit=path, fix="split the file")
        text = raw.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise errors.ConfigError(f"cannot be read: {why}", culprit=path, fix=_FIX) from error
    return [
        body
        for number, document in enumerate(_documents(text, path), 1)
        for body in _unfold(document, f"{path}: document {number}")
    ]


def newest(bodies: Iterable[Body]) -> float | None:
    """The latest moment that the objects tell of: when they were as they are."""
    found = []
    for body in bodies:
        meta, status = body.get("metadata"), body.get("status")
        spelled = [meta.get("creationTimestamp")] if isinstance(meta, Mapping) else []
        if isinstance(status, Mapping):
            spelled.append(status.get("startTime"))
            several = status.get("conditions")
            for one in several if isinstance(several, list) else []:
                if isinstance(one, Mapping):
                    spelled += [one.get("lastProbeTime"), one.get("lastTransitionTime")]
        for one in spelled:
            try:
                found += [moment.parse(one)] if one is not None else []
            except ValueError:
                continue
    return max(found, default=None)


def _documents(text: str, path: str) -> list[Any]:
    try:
        return documents.load(text)
    except ValueError as error:
        raise errors.ConfigError(str(error), culprit=path, fix=_FIX) from error


def _unfold(document: Any, place: str) -> Iterator[Body]:
    if document is None:
        return
    several = document if isinstance(document, list) else [document]
    for one in several:
        if not isinstance(one, Mapping):
            raise errors.ConfigError(
                f"expected an object, found {type(one).__name__}", culprit=place, fix=_FIX
            )
        items = one.get("items")
        if str(one.get("kind", "")).endswith("List") and isinstance(items, list):
            kind = str(one["kind"]).removesuffix("List")
            for item in items:
                if isinstance(item, Mapping) and "kind" not in item and kind:
                    yield {"kind": kind, **item}
                else:
                    yield from _unfold(item, place)
        else:
            yield one
