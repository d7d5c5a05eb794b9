"""Refuses two public classes with one name, unless the allow-list has the name.

Covers: every class at the top of a module of ``koordlet/``, generated code left out.
Does not cover: functions, private classes.

The allow-list has a line for each allowed name: ``NAME`` for the whole tree, ``NAME FOLDER`` or
``* FOLDER`` for one folder. An entry that allows nothing is an error as well.

    python -m tools.checks.class_names
"""

from __future__ import annotations

import collections
import re
import sys
from collections.abc import Iterable
from pathlib import Path

ALLOWED = Path(__file__).with_name("class_names.txt")
_CLASS = re.compile(r"^class ([A-Za-z]\w*)", re.MULTILINE)


def found(root: Path) -> dict[str, list[str]]:
    """The modules of each public class name."""
    modules = collections.defaultdict(list)
    for path in sorted(root.rglob("*.py")):
        module = path.relative_to(root.parent).as_posix()
        if "/gen/" not in module:
            for name in _CLASS.findall(path.read_text()):
                modules[name].append(module)
    return modules


def problems(modules: dict[str, list[str]], allowed: Iterable[str]) -> list[str]:
    """A line for each duplicate that is not allowed, and for each useless entry."""
    wrong, used = [], set()
    entries = [tuple(line.split()) for line in allowed if line.strip() and line[0] != "#"]
    for name, places in sorted(modules.items()):
        if len(places) < 2:
            continue
        left = places
        for entry in entries:
            folder = entry[1] if len(entry) > 1 else ""
            kept = [place for place in left if not place.startswith(folder)]
            if entry[0] in {name, "*"} and kept != left:
                left = kept
                used.add(entry)
        if len(left) > 1:
            wrong.append(f"{name} is in {', '.join(left)}: rename it in all but one")
    wrong += [f"{ALLOWED.name}: remove {' '.join(entry)}" for entry in entries if entry not in used]
    return wrong


if __name__ == "__main__":
    lines = problems(found(Path("koordlet")), ALLOWED.read_text().splitlines())
    sys.stderr.writelines(f"  {line}\n" for line in lines)
    sys.exit(bool(lines))
