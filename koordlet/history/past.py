"""Saved samples: history of use, to and from a checkpoint. Pure.

Covers: which meters, their form, damage. Does not cover: when it is saved
(``agent.saved_history``).

Without it a node whose agent was just replaced would have no use to report for minutes. What is
kept is what reports and offers are made of, sample by sample, so that windows are what they would
have been; the time between two agents is missing in them. Groups live no longer than a boot, and so
does this: it is of one monotonic clock.
"""

from __future__ import annotations

import base64
import binascii
import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from koordlet.history import series, space
from koordlet.model import meter
from koordlet.model.record import dataclass

#: Version of ``Past``: a checkpoint of another one is discarded.
SCHEMA = 1
_METERS = {
    which.name: which
    for which in (
        *(meter.CPU, meter.MEMORY, meter.WORKING_SET, meter.MEMORY_ANON),
        *(meter.CPU_SHARE, meter.MEMORY_SHARE),
    )
}
#: Clocks are read one after the other, so their difference wavers.
_WAVER = 0.1
_SPACES = ("groups", "node", "numa", "shares")


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """Everything that is kept, by space and meter."""

    #: Seconds that the machine was suspended since boot: samples age by what is added.
    suspended: float
    spaces: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def keep(known: series.History, suspended: float) -> Past:
    """The samples for a checkpoint."""
    spaces = {
        name: {
            which.name: _spelled(samples)
            for which in _METERS.values()
            if (samples := known.spaces()[name].samples(which)) is not None
        }
        for name in _SPACES
    }
    return Past(suspended=suspended, spaces=spaces)


def revive(known: series.History, body: Mapping[str, Any], suspended: float, at: float) -> None:
    """Give the spaces back what was kept; ``ValueError`` where it cannot be that."""
    before, spaces = body.get("suspended"), body.get("spaces")
    if not isinstance(before, int | float) or not isinstance(spaces, Mapping):
        raise ValueError("suspended or spaces is missing")
    if not suspended - before >= -_WAVER:
        raise ValueError("it is of another clock")
    slept = max(0.0, suspended - before)
    by_space = {
        name: {_METERS[key]: _read(saved, slept, at) for key, saved in several.items()}
        for name, several in spaces.items()
        if name in _SPACES and isinstance(several, Mapping) and several.keys() <= _METERS.keys()
    }
    for name, several in by_space.items():
        known.spaces()[name].recall(several)


def _spelled(samples: space.Samples) -> dict[str, Any]:
    joined = b"".join(column.tobytes() for column in samples.columns.values())
    return {
        "at": list(samples.at),
        "span": list(samples.span),
        "subjects": list(samples.columns),
        "cells": base64.b64encode(joined).decode(),
    }


def _read(body: object, slept: float, now: float) -> space.Samples:
    if not isinstance(body, Mapping):
        raise ValueError("a meter is no object")
    at, span = _numbers(body.get("at")), _numbers(body.get("span"))
    names = body.get("subjects")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("subjects are no texts")
    if len(at) != len(span) or list(at) != sorted(at) or (at and at[-1] > now):
        raise ValueError("its times are not in order")
    cells = array("f")
    try:
        cells.frombytes(base64.b64decode(str(body.get("cells")), validate=True))
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"its samples are damaged: {error}") from error
    if len(cells) != len(at) * len(names):
        raise ValueError("samples are missing")
    columns = {
        name: cells[number * len(at) : (number + 1) * len(at)] for number, name in enumerate(names)
    }
    return space.Samples(tuple(moment - slept for moment in at), span, columns)


def _numbers(numbers: object) -> Sequence[float]:
    good = isinstance(numbers, list) and all(
        isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)
        for number in numbers
    )
    if not good or not isinstance(numbers, list):
        raise ValueError("times are no numbers")
    return tuple(map(float, numbers))
