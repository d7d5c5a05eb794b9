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


def load(path: str) -> list[Body]:
    """The objects of a file, Lists unfolded; ``ConfigError`` where it holds none."""
    try:
        with Path(path).open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
        raise errors.ConfigError(why, culprit=path, fix=documents.FIX) from error
    return [
        body
        for number, document in enumerate(documents.of_file(raw, path, _MAX_BYTES), 1)
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


def _unfold(document: Any, place: str) -> Iterator[Body]:
    if document is None:
        return
    several = document if isinstance(document, list) else [document]
    for one in several:
        if not isinstance(one, Mapping):
            why = f"expected an object, found {type(one).__name__}"
            raise errors.ConfigError(why, culprit=place, fix=documents.FIX)
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
