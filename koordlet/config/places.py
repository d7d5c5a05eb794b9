"""Location of a value in a configuration and its spelling: ``workloads[0].match.unit``.

Covers: where files usually are, locations, the text of one and of a value in an error, marks in
a file.
Does not cover: finding them (``yaml_source``), blaming them (``problems``).
"""

from __future__ import annotations

import re

from koordlet.model import printable
from koordlet.model.record import dataclass

DEFAULT_PATH = "/etc/koordlet/config.yaml"
#: Followed where it is there when the agent starts.
MANIFESTS = "/etc/koordlet/manifests"

#: The keys and list positions that lead to a value from the top.
Loc = tuple[str | int, ...]

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A place in a file, both counted from one."""

    line: int
    column: int


def dotted(loc: Loc) -> str:
    """``("workloads", 0, "match")`` as ``workloads[0].match``; unusual keys are quoted."""
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.match(part):
            text += f".{part}" if text else part
        else:
            text += f"[{show(part)}]"
    return text


def show(value: object, limit: int = 60) -> str:
    """A value in an error message: short, printable, quoted where it is text."""
    if isinstance(value, str):
        text = value if len(value) <= limit else value[:limit] + "…"
        return f'"{printable.escaped(text)}"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value)[:limit]
