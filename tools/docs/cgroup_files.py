"""The page ``docs/cgroup-files.md``, from the table of files.

Covers: one row for each file. Does not cover: what was tried on which kernel
(docs/kernel-answers.md).

    python -m tools.docs.cgroup_files > docs/cgroup-files.md
"""

from __future__ import annotations

import sys

from koordlet.model import knob

_HEAD = """\
# Cgroup files

What koordlet reads and may write in cgroups, on both versions. *Turn* says when a file is written
among those of all groups of a plan: smaller numbers first, raised from the top down and lowered
from the bottom up (one number: the same both ways). *Usage* names the file that counts what a limit
limits. What several policies want of a file marked *least* is the
smallest; of any other file it is what the earlier policy wants, and a conflict is reported.

Writing a file marked *may block* may sleep in the kernel. What kernels really answered is in
[kernel-answers.md](kernel-answers.md).

This page is generated: `python -m tools.docs.cgroup_files > docs/cgroup-files.md`.

"""
_COLUMNS = ("v1", "v2", "access", "values", "unit", "turn", "notes", "since")


def page() -> str:
    """The whole page."""
    rows = [row for row in knob.TABLE.values() if row.v1 or row.v2]
    rule = "|---" * len(_COLUMNS) + "|\n"
    return _HEAD + f"| {' | '.join(_COLUMNS)} |\n" + rule + "".join(map(_row, rows))


def _row(row: knob.Knob) -> str:
    notes = [row.answers] if row.answers else []
    if row.twin:
        notes.append(f"on the other version `{row.twin}`")
    if row.usage:
        notes.append(f"usage `{row.usage}`")
    notes += [
        word for word, applies in (("least", row.least), ("may block", row.may_block)) if applies
    ]
    cells = (
        f"`{row.v1}`" if row.v1 else "",
        f"`{row.v2}`" if row.v2 else "",
        row.access.value,
        row.form.range if row.access is not knob.Access.READ else "",
        row.unit,
        _turn(row),
        "; ".join(notes),
        row.since,
    )
    return f"| {' | '.join(cells)} |\n"


def _turn(row: knob.Knob) -> str:
    if row.access is not knob.Access.WRITE or row.shape is not knob.Shape.FREE:
        return row.shape.value if row.shape is not knob.Shape.FREE else ""
    turn = row.turn
    return str(turn.rises) if turn.rises == turn.falls else f"{turn.rises}, lowered {turn.falls}"


if __name__ == "__main__":
    sys.stdout.write(page())
