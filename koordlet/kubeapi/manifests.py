"""Objects from files, as kubectl prints them.

Covers: JSON and YAML, ``List`` and several documents, of when they are.
Does not cover: what an object means.

An item of a ``List`` that says no kind has the list's: ``PodList`` lists pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from koordlet.kubeapi import objects
from koordlet.model import documents, errors, moment

Body = Mapping[str, Any]
_MAX_BYTES = 1 << 30


def load(path: str, left_out: list[str] | None = None) -> list[Body]:
    """The objects of a file, Lists unfolded; ``ConfigError`` where it holds none.

    With ``left_out`` an item of a List that is no object costs only itself, and is said there.
    """
    return [body for _, body in unfold(read(path), path, left_out)]


def read(path: str, most: int = _MAX_BYTES) -> list[object]:
    """The documents of a file; ``ConfigError`` where it holds none."""
    try:
        with Path(path).open("rb") as file:
            raw = file.read(most + 1)
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
        raise errors.ConfigError(why, culprit=path, fix=documents.FIX) from error
    return documents.of_file(raw, path, most, unique=True)


def unfold(
    contents: list[object], where: str, left_out: list[str] | None = None
) -> Iterator[tuple[str, Body]]:
    """Every object of these documents with its place."""
    for number, document in enumerate(contents, 1):
        yield from _unfolded(document, f"{where}: document {number}", left_out)


def _unfolded(document: Any, place: str, left_out: list[str] | None) -> Iterator[tuple[str, Body]]:
    for body in document if isinstance(document, list) else [document]:
        if body is None:
            continue
        if not isinstance(body, Mapping):
            why = f"expected an object, found {type(body).__name__}"
            raise errors.ConfigError(why, culprit=place, fix=documents.FIX)
        items = body.get("items")
        if not (str(body.get("kind", "")).endswith("List") and isinstance(items, list)):
            yield place, body
            continue
        kind = str(body["kind"]).removesuffix("List")
        for index, item in enumerate(items):
            inner = f"{place}: items[{index}]"
            if left_out is not None and not isinstance(item, Mapping):
                left_out.append(f"{inner}: not an object; it is ignored")
            elif isinstance(item, Mapping) and "kind" not in item and kind:
                yield inner, {"kind": kind, **item}
            else:
                yield from _unfolded(item, inner, left_out)


def newest(bodies: Iterable[Body]) -> float | None:
    """The latest moment that the objects tell of: when they were as they are."""
    moments = []
    for body in bodies:
        status = objects.part(body, "status")
        spelled = [objects.metadata(body).get("creationTimestamp")]
        spelled += [status.get("startTime"), status.get("updateTime")]
        for condition in objects.parts(status, "conditions"):
            spelled += [condition.get("lastProbeTime"), condition.get("lastTransitionTime")]
        for time in spelled:
            try:
                moments += [moment.parse(time)] if time is not None else []
            except ValueError:
                continue
    return max(moments, default=None)
