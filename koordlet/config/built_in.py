"""The answer to a start without a file: it was validated before koordlet was packed.

Covers: the built-in values, with the options of ``koordlet run`` on top.
Does not cover: making the file that has them (``tools.docs.built_in``), any other question
(``examiner``).

Pydantic and the models of all sections take half of the CPU time until the first verified pass.

Rules:
1. The file beside this module holds what the models say (``tests/config/test_built_in.py``).
2. An option counts with the values that the models accept; another one is asked about.
3. So is a question with a file, with a variable that is configuration, or after a file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, cast

from koordlet.config import address, parcel, plain, sourced

FILE = os.path.join(os.path.dirname(__file__), "built_in.json")

#: Which values of an option are valid whatever else is said.
_VALID: Mapping[str, Callable[[object], bool]] = {
    "mode": lambda value: value == "observe",
    "scheduler.run": lambda value: value is True,
    "report.http.address": lambda value: isinstance(value, str) and address.is_one(value),
}


def answer(question: parcel.Question) -> sourced.Effective | None:
    """The configuration; ``None`` where it has to be asked for."""
    if question.text is not None or question.kept or any(map(parcel.is_variable, question.env)):
        return None
    flags = {path: flag for path, flag in question.flags.items() if isinstance(flag, sourced.Flag)}
    known = all(path in _VALID and _VALID[path](flag.value) for path, flag in flags.items())
    if not known or len(flags) < len(question.flags):
        return None
    try:
        with open(FILE, "rb") as file:
            config = plain.unpacked(json.loads(file.read()))
    except (OSError, ValueError, LookupError, TypeError):
        return None
    for path, flag in flags.items():
        config = plain.changed(config, path.split("."), flag.value)
    origins = {path: flag.spelling for path, flag in flags.items()}
    return sourced.Effective(cast("Any", config), origins)
