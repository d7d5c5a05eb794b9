"""A valid configuration with the origin of each value.

Covers: the effective configuration with its origins, a value from the
command line.
Does not cover: reading (``loader``), what a section may say (``schema``).
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import field
from typing import NamedTuple

from koordlet.model.record import dataclass

if typing.TYPE_CHECKING:
    from koordlet.config import schema

BUILT_IN = "built-in"


class Flag(NamedTuple):
    """A value from the command line with the way it was spelled there: ``--observe``."""

    value: object
    spelling: str


@dataclass(frozen=True, slots=True)
class Effective:
    """A valid configuration and where each of its values came from."""

    #: In fact the same as plain records (``plain``), which have the attributes of these models.
    config: schema.Config
    #: Dotted path of every single value that is not built in to its origin: ``FILE:LINE``, a
    #: variable, a flag.
    origins: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    #: The file that was read; ``None`` where there is none.
    path: str | None = None
    #: What it said; the same configuration may be written in two ways.
    text: str | None = field(default=None, compare=False, repr=False)

    def origin(self, path: str) -> str:
        """Origin of the value at a dotted path."""
        return self.origins.get(path, BUILT_IN)
