"""JSON Patch (RFC 6902), which ``kubectl patch --type=json`` sends."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from koordlet.kubeapi import refusals


def apply(body: Any, operations: Any) -> Any:
    """A body after all operations; ``Malformed`` or ``Invalid`` where one of them cannot be."""
    if not isinstance(operations, Sequence):
        raise refusals.Malformed("a JSON patch is a list")
    for operation in operations:
        try:
            body = _one(copy.deepcopy(body), operation)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise refusals.Invalid(f"the operation {operation} cannot be: {error!r}") from error
    return body


def _one(body: Any, operation: dict[str, Any]) -> Any:
    steps = _steps(operation["path"])
    match operation["op"]:
        case "test":
            if _get(body, steps) != operation["value"]:
                msg = "the test failed"
                raise ValueError(msg)
        case "remove":
            _remove(body, steps)
        case "add":
            _add(body, steps, operation["value"])
        case "replace":
            _remove(body, steps)
            _add(body, steps, operation["value"])
        case "copy":
            _add(body, steps, copy.deepcopy(_get(body, _steps(operation["from"]))))
        case "move":
            moved = _get(body, _steps(operation["from"]))
            _remove(body, _steps(operation["from"]))
            _add(body, steps, moved)
        case other:
            msg = f"unknown operation {other}"
            raise ValueError(msg)
    return body


def _steps(pointer: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _get(body: Any, steps: Sequence[str]) -> Any:
    for step in steps:
        body = body[int(step)] if isinstance(body, list) else body[step]
    return body


def _add(body: Any, steps: Sequence[str], value: Any) -> None:
    place, last = _get(body, steps[:-1]), steps[-1]
    if isinstance(place, list):
        place.insert(len(place) if last == "-" else int(last), value)
    else:
        place[last] = value


def _remove(body: Any, steps: Sequence[str]) -> None:
    place, last = _get(body, steps[:-1]), steps[-1]
    del place[int(last) if isinstance(place, list) else last]
