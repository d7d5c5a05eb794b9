"""Objects of a configuration, key by key: every mistake names its path.

Covers: values of the expected form, keys that nobody knows. Does not cover: which keys there are.

Rules:
1. The first mistake is an error: a limit that is misspelled would not limit.
2. Keys match without regard to case, as the peers' own documents spell them in both ways.
3. ``null`` is "not said".
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from koordlet.kubeapi import selectors, shapes
from koordlet.model import errors, moment

_TYPE = ("apiVersion", "kind")


def nearest(name: str, known: Iterable[str]) -> str:
    """What somebody may have meant, as a fix."""
    several = list(known)
    close = difflib.get_close_matches(name, several, 1, 0.4)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(several)}"


class Fields:
    """One object of a configuration, and where it stands."""

    def __init__(self, body: object, where: str, path: str = "") -> None:
        self.where, self.path = where, path
        if body is not None and not isinstance(body, Mapping):
            self.fail("", f"expected an object, found {shapes.shown(body)}")
        self.body: Mapping[str, Any] = body if isinstance(body, Mapping) else {}
        self._spelled = {str(key).casefold(): str(key) for key in self.body}
        self._known: list[str] = []

    def at(self, key: str) -> str:
        """The path of a key."""
        return f"{self.path}.{key}" if self.path and key else f"{self.path}{key}"

    def fail(self, key: str, message: str, fix: str = "") -> NoReturn:
        """Refuse the configuration."""
        path = self.at(key)
        raise errors.ConfigError(
            message, culprit=f"{self.where}: {path}" if path else self.where, fix=fix
        )

    def get(self, key: str) -> Any:
        """What stands there as it is; ``None`` where nothing does."""
        self._known.append(key)
        spelled = self._spelled.get(key.casefold())
        return None if spelled is None else self.body[spelled]

    def done(self, *ignored: str) -> None:
        """Refuse a key that nobody has asked for."""
        known = {key.casefold() for key in (*self._known, *ignored, *_TYPE)}
        for folded, spelled in self._spelled.items():
            if folded not in known:
                self.fail(spelled, "is not known", nearest(spelled, self._known))

    def read(self, key: str, reader: shapes.Reader, default: Any = None) -> Any:
        """A value of some form."""
        value = self.get(key)
        if value is None:
            return default
        problems: list[str] = []
        try:
            result = reader(value, problems)
        except ValueError as error:
            self.fail(key, str(error))
        if problems:
            self.fail(key, problems[0])
        return result

    def text(self, key: str, default: str = "") -> str:
        """A text."""
        return str(self.read(key, shapes.text, default))

    def word(self, key: str, words: tuple[str, ...], default: str) -> str:
        """One of these words."""
        return str(self.read(key, shapes.choice(*words), default))

    def flag(self, key: str, *, default: bool = False) -> bool:
        """True or false."""
        return bool(self.read(key, shapes.boolean, default))

    def whole(self, key: str, default: int | None = None, low: int = 0) -> int | None:
        """A whole number from some number on."""
        value = self.read(key, shapes.integer(low, 2**31 - 1), default)
        return None if value is None else int(value)

    def count(self, key: str, default: int = 0, low: int = 0) -> int:
        """The same where there is a default."""
        value = self.whole(key, default, low)
        return default if value is None else value

    def texts(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(self.read(key, shapes.listing(shapes.text), default))

    def seconds(self, key: str, default: float | None = None) -> float | None:
        """A duration as Go spells it, or a number of seconds."""
        value = self.get(key)
        if value is None:
            return default
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            return float(value)
        try:
            seconds = moment.duration(value)
        except ValueError as error:
            self.fail(key, str(error))
        if seconds < 0:
            self.fail(key, f"{value} is below 0")
        return seconds

    def child(self, key: str) -> Fields:
        """The object below a key; empty where there is none."""
        return Fields(self.get(key), self.where, self.at(key))

    def children(self, key: str) -> list[Fields]:
        """The objects of a list."""
        value = self.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self.fail(key, f"expected a list, found {shapes.shown(value)}")
        return [
            Fields(item, self.where, f"{self.at(key)}[{place}]") for place, item in enumerate(value)
        ]

    def percentages(self, key: str) -> dict[str, float]:
        """Thresholds: percentages by resource."""
        return dict(self.read(key, shapes.table(shapes.number(0, 100)), {}))

    def selector(self, key: str) -> selectors.Compiled | None:
        """A selector of labels as an object, or as one text; ``None``: there is none."""
        value = self.get(key)
        try:
            if isinstance(value, str):
                return selectors.Compiled(selectors.parse_labels(value)) if value else None
            return selectors.from_object(value)
        except ValueError as error:
            self.fail(key, str(error))
