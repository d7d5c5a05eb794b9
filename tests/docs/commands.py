"""Every ``koordlet …`` that a document shows, as words.

Covers: blocks of code and code inside of sentences. Does not cover: running them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from koordlet import cli

REPO = Path(__file__).resolve().parents[2]
PAGES = sorted([*(REPO / "docs").glob("*.md"), REPO / "README.md", REPO / "CONTRIBUTING.md"])
#: Words of a document that stand for something: what a reader would put there.
MEANT = {
    "NS/NAME": "default/web",
    "ns/pod": "default/web",
    "shop/train-0": "default/web",
    "PATH": "/sys/fs/cgroup/cpu.max",
    "FILE": "pods.yaml",
    "N": "1",
    "node|workloads": "workloads",
    "STEM": "shared_pools",
}
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
#: In a block only shells hold commands, not the Python and YAML of examples.
_SHELLS = {"", "sh", "bash", "shell", "console"}
_PROGRAM = re.compile(r"^(?:\$ )?(?:\S*/)?koordlet ([a-z].*)$")


def lines(page: Path) -> Iterator[str]:
    """Whatever may be a command, one at a time."""
    yield from lines_of(page.read_text())


def lines_of(text: str) -> Iterator[str]:
    """The same, of a text."""
    for language, body in _BLOCK.findall(text):
        if language in _SHELLS:
            yield from (part.strip() for line in body.splitlines() for part in line.split("&&"))
    yield from _SPAN.findall(_BLOCK.sub("", text))


def words(line: str) -> list[str] | None:
    """The words after the program's name; ``None``: it is no command of ours."""
    match = _PROGRAM.match(line)
    if match is None:
        return None
    # What follows two blanks, or an arrow into a file, is not the command's.
    command = re.split(r"  +|\s\\?[>|#]", match[1])[0]
    if command.split()[0] not in cli.COMMANDS:
        return None
    return [MEANT.get(word, word) for word in shlex.split(command)]


def shown() -> dict[tuple[str, ...], str]:
    """Each command once, with the page that shows it first."""
    first_pages: dict[tuple[str, ...], str] = {}
    for page in PAGES:
        for line in lines(page):
            these = words(line)
            if these:
                first_pages.setdefault(tuple(these), page.name)
    return first_pages
