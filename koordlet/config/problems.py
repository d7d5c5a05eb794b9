"""Messages of configuration errors: problem, location and fix.

Covers: turning a failed validation into errors with file, line, column and field path; putting
several errors into one.
Does not cover: the rules themselves (``schema``, ``fieldtypes``), YAML syntax (``yaml_source``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from koordlet.config import catalog, fieldtypes, places
from koordlet.model import errors, printable

#: More than this at once helps nobody.
MAX_SHOWN = 20

#: Where a value came from: ``FILE:LINE:COLUMN``, a variable, a flag. The second argument asks for
#: the place of the key instead of the value.
Locate = Callable[[places.Loc, bool], str]

_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "string_type": "text",
    "tuple_type": "a list",
    "model_type": "a section with keys",
    "dict_type": "a map of keys and values",
    "mapping_type": "a map of keys and values",
}
_BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}


class ConfigErrors(errors.ConfigError):
    """Several problems of one source, shown together."""

    def __init__(self, refused: Sequence[errors.ConfigError], source: str) -> None:
        self.problems = tuple(refused)
        shown = [printable.escaped(str(problem)) for problem in self.problems[:MAX_SHOWN]]
        more = len(self.problems) - len(shown)
        if more:
            shown.append(f"… and {more} more")
        lines = "".join(f"\n  {line}" for line in shown)
        super().__init__(f"{len(self.problems)} problems:{lines}", culprit=source)


def raise_any(refused: Iterable[errors.ConfigError], source: str) -> None:
    """Raise one error for all problems of a source, in the order of its lines."""
    ordered = sorted(refused, key=lambda problem: _line_order(problem.culprit))
    if len(ordered) == 1:
        raise ordered[0]
    if ordered:
        raise ConfigErrors(ordered, source)


def from_validation(details: Iterable[Any], locate: Locate) -> list[errors.ConfigError]:
    """One error for each detail of a pydantic ``ValidationError``."""
    return [_one(detail, locate) for detail in details]


def _one(detail: Any, locate: Locate) -> errors.ConfigError:
    kind = str(detail["type"])
    context = detail.get("ctx", {})
    loc: places.Loc = tuple(detail["loc"])
    of_key = kind == "extra_forbidden"
    if loc and loc[-1] == "[key]":
        loc, of_key = loc[:-1], True
    loc += tuple(context.get("at", ()))
    message, fix = _words(kind, detail, context, loc)
    where = locate(loc, of_key)
    return errors.ConfigError(message, culprit=_culprit(where, loc), fix=fix)


def _words(kind: str, detail: Any, context: Any, loc: places.Loc) -> tuple[str, str]:
    value = detail.get("input")
    match kind:
        case fieldtypes.REFUSED:
            words = str(context["message"]), str(context["fix"])
        case "extra_forbidden":
            words = _unknown_key(loc)
        case "missing":
            words = f"the key {places.show(str(loc[-1]))} is missing", "add it"
        case "literal_error":
            # pydantic spells the choices as 'a', 'b' or 'c'.
            words = _wrong_word(value, re.findall(r"'([^']*)'", str(context["expected"])))
        case _ if kind in _BOUNDS:
            key, bound = _BOUNDS[kind]
            words = f"{bound} {context[key]} is needed, found {noun(value)}", ""
        case _ if kind in _EXPECTED:
            quote = kind == "string_type" and isinstance(value, int | float)
            fix = "put it in quotes" if quote else ""
            words = f"expected {_EXPECTED[kind]}, found {noun(value)}", fix
        case _:
            words = str(detail["msg"]), ""
    return words


def _unknown_key(loc: places.Loc) -> tuple[str, str]:
    key = str(loc[-1])
    known = catalog.known_keys(loc[:-1])
    return f"unknown key {places.show(key)}", errors.suggest(key, known, "known here")


def _wrong_word(value: object, choices: list[str]) -> tuple[str, str]:
    listed = " or ".join(", ".join(choices).rsplit(", ", 1))
    if len(choices) == 1:
        return f"expected {choices[0]}, found {noun(value)}", f'write "{choices[0]}"'
    close = errors.nearest(value, choices) if isinstance(value, str) else None
    message = f"expected {listed}, found {noun(value)}"
    return message, f'did you mean "{close}"?' if close else ""


def noun(value: object) -> str:
    """A found value in the words of an error."""
    if isinstance(value, dict):
        return "a section with keys"
    if isinstance(value, list | tuple):
        return "a list"
    return places.show(value)


def _culprit(where: str, loc: places.Loc) -> str:
    path = places.dotted(loc)
    return f"{where}: {path}" if path else where


def _line_order(culprit: str) -> tuple[int, int]:
    match = re.search(r":(\d+)(?::(\d+))?(?:: |$)", culprit)
    return (int(match[1]), int(match[2] or 0)) if match else (0, 0)
