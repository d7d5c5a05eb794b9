"""Where a value is in a configuration, and how that is spelled: ``workloads[0].match.unit``.

Covers: locations, the text of one, marks in a file.
Does not cover: finding them (``yaml_source``), blaming them (``problems``).
"""

from __future__ import annotations

import re

from koordlet.config import fieldtypes
from koordlet.model.record import dataclass

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
            text += f"[{fieldtypes.show(part)}]"
    return text
