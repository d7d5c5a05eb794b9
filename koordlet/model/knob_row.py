"""Row type of the table of cgroup files.

Covers: the row, and the three ways to spell one. Does not cover: the rows (``model.knob``).
"""

from __future__ import annotations

import enum
from dataclasses import field
from typing import Any

from koordlet.model import forms
from koordlet.model.record import dataclass


class Shape(enum.Enum):
    """Constraint of a file by its parents and children, for ordering."""

    #: A set: a child lives inside its parent (refused on v1, intersected on v2).
    SUBSET = "subset"
    #: A list of words switched on from the top down and off from the bottom up.
    SWITCHES = "switches"
    #: Written in turns: raised from the top down, lowered from the bottom up.
    FREE = "free"


class Access(enum.Enum):
    """Access that the kernel allows to a file."""

    READ = "read"
    WRITE = "read, write"
    #: It does something, once.
    TRIGGER = "write"


@dataclass(frozen=True, slots=True)
class Turn:
    """When a file is written among those of all groups: smaller numbers first."""

    rises: int = 50
    falls: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """One row of the table."""

    name: str
    #: Empty for the files that every group has.
    controller: str
    v1: str | None
    v2: str | None
    form: forms.Form = field(default_factory=forms.Plain)
    access: Access = Access.WRITE
    shape: Shape = Shape.FREE
    turn: Turn = field(default_factory=Turn)
    unit: str = ""
    #: The row that says the same thing on the other version.
    twin: str = ""
    #: The row that counts what this one limits.
    usage: str = ""
    #: Of two policies, the one that asks for less gets it; otherwise the earlier one.
    least: bool = False
    #: True where the write may sleep in the kernel, so it must not run in the loop.
    may_block: bool = False
    #: The first kernel that has it, where that is younger than 4.18.
    since: str = ""
    #: What a value that it does not take is answered with, and what else is worth knowing.
    answers: str = ""

    def file(self, *, unified: bool) -> str | None:
        """The file name on that version, ``None`` where it does not exist."""
        return self.v2 if unified else self.v1

    def same(self, wanted: str, other: str) -> bool:
        """Whether two texts mean the same value (``other`` is there)."""
        return wanted == other or self.form.same(wanted, other)


def on_both(name: str, **more: Any) -> Knob:
    """A row whose file has its name on both versions, and that of its controller before the dot."""
    same = {"name": name, "controller": name.partition(".")[0], "v1": name, "v2": name}
    return Knob(**{**same, **more})


def on_v1(name: str, **more: Any) -> Knob:
    """As ``on_both``, of v1 alone."""
    return on_both(name, v2=None, **more)


def on_v2(name: str, **more: Any) -> Knob:
    """As ``on_both``, of v2 alone."""
    return on_both(name, v1=None, **more)
