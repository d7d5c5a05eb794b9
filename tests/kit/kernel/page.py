"""The page ``docs/kernel-answers.md``, from what kernels answered.

Covers: one table for each script, a column for each kernel. Does not cover: asking (``script``).

    python -m tests.kit.kernel.page > docs/kernel-answers.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from tests.kit.kernel import conformance, script

_HEAD = """\
# What kernels answered

Each operation was done on real kernels, one after the other, in the order of the tables: *ok* or
the error of the call, and behind it what the files named after `|` read then. `^` is the group that
a script ran in. The tests do the same on the kernel of the machine that they run on, and on the one
in memory that everyday tests use, and every answer must be the same.

This page is generated from `fixtures/kernel`: `python -m tests.kit.kernel.page >
docs/kernel-answers.md`.
"""


def page() -> str:
    """The whole page."""
    by_script: dict[str, list[script.Recording]] = {}
    for recording in conformance.recordings():
        by_script.setdefault(recording.script, []).append(recording)
    return _HEAD + "".join(_section(name, every) for name, every in sorted(by_script.items()))


def _section(name: str, every: list[script.Recording]) -> str:
    """One script: its operations and what each kernel said."""
    heads = [f"{recording.facts.kernel}, CPUs {recording.facts.cpus}" for recording in every]
    rows = [
        [
            _cell(every[0].answers[number].op),
            *(_answer_text(recording.answers[number]) for recording in every),
        ]
        for number in range(min(len(recording.answers) for recording in every))
    ]
    table = [["operation", *heads], ["---"] * (1 + len(every)), *rows]
    return f"\n## {name}\n\n{_purpose(name)}\n\n" + "".join(map(_line, table))


def _purpose(name: str) -> str:
    """What the script says of itself: the first remark that is no need."""
    lines = (conformance.FOLDER / f"{name}.script").read_text(encoding="utf-8").splitlines()
    remarks = (line.lstrip("# ") for line in lines if line.startswith("#"))
    return next((line for line in remarks if not line.startswith("needs:")), "")


def _answer_text(answer: script.Answer) -> str:
    reads = " · ".join(answer.reads)
    return _cell(f"{answer.answer}" + (f": {reads}" if reads else ""))


def _cell(text: str) -> str:
    """A pipe or a line end would end the cell."""
    return f"`{text.replace('|', '¦').replace(chr(10), '⏎')}`"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
