r"""Names of systemd units as cgroups have them, pure.

Covers: full names, escaping, the nesting of slices. Does not cover: what runs in them
(``grouppath``).

A dash in a slice's name nests it: ``a-b.slice`` lives in ``a.slice``; ``-.slice`` is the root. A
dash that is none of that is written ``\x2d`` (systemd.unit(5), "String Escaping for Inclusion in
Unit Names").
"""

from __future__ import annotations

import re

SUFFIX = ".slice"
#: The root, which is no directory.
ROOT = "-.slice"

_PLAIN = re.compile(rb"[A-Za-z0-9:_.]")
_UNIT = re.compile(r"[A-Za-z0-9:_.\\@-]+\.(service|scope|slice)")
_MAX_UNIT = 255


def is_unit(name: str) -> bool:
    """Whether it is the full name of a unit that has a cgroup."""
    return len(name) <= _MAX_UNIT and _UNIT.fullmatch(name) is not None


def escape(text: str) -> str:
    """A text as one part of a unit's name, as ``systemd-escape`` writes it."""
    parts = []
    for place, byte in enumerate(text.encode("utf-8", "surrogateescape")):
        char = bytes((byte,))
        if char == b"/":
            parts.append("-")
        elif _PLAIN.fullmatch(char) and not (char == b"." and place == 0):
            parts.append(char.decode())
        else:
            parts.append(f"\\x{byte:02x}")
    return "".join(parts)


def stem(name: str) -> str | None:
    """The name without ``.slice``; ``None`` where systemd knows no such slice.

    Empty for the root. Two dashes in a row, or one at an end, would nest a slice without a name.
    """
    if name == ROOT:
        return ""
    short = name.removesuffix(SUFFIX)
    if short == name or "/" in short or not all(short.split("-")):
        return None
    return short


def expand(name: str) -> str | None:
    """The path of a slice below the root group; ``None`` where systemd knows no such slice."""
    short = stem(name)
    if short is None:
        return None
    parts = short.split("-") if short else []
    return "/".join("-".join(parts[: n + 1]) + SUFFIX for n in range(len(parts)))
