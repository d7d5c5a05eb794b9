"""Objects from files, as kubectl prints them.

Covers: JSON and YAML, ``List`` and several documents, of when they are.
Does not cover: what an object means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from koordlet.model import documents, errors, moment
from koordlet.scheduler.objects.wire import Body

_MAX_BYTES = 1 << 30


def load(path: str, warnings: list[str] | None = None) -> list[Body]:
    """The objects of a file, Lists unfolded; ``ConfigError`` where it holds none.

    With ``warnings`` an item of a List that is no object costs only itself, and is said there.
    """
    try:
        with Path(path).open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
        raise errors.ConfigError(why, culprit=path, fix=documents.FIX) from error
    return [
        body
        for number, document in enumerate(documents.of_file(raw, path, _MAX_BYTES, unique=True), 1)
        for body in _unfold(document, f"{path}: document {number}", warnings)
    ]


def newest(bodies: Iterable[Body]) -> float | None:
    """The latest moment that the objects tell of: when they were as they are."""
    found = []
    for body in bodies:
        meta, status = body.get("metadata"), body.get("status")
        spelled = [meta.get("creationTimestamp")] if isinstance(meta, Mapping) else []
        if isinstance(status, Mapping):
            spelled += [status.get("startTime"), status.get("updateTime")]
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


def _unfold(document: Any, place: str, warnings: list[str] | None) -> Iterator[Body]:
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
            for index, item in enumerate(items):
                where = f"{place}: items[{index}]"
                if warnings is not None and not isinstance(item, Mapping):
                    warnings.append(f"{where} is ignored: not an object")
                elif isinstance(item, Mapping) and "kind" not in item and kind:
                    yield {"kind": kind, **item}
                else:
                    yield from _unfold(item, where, warnings)
        else:
            yield one
