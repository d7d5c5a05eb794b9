"""The page of the architecture names files that exist, and an invariant for each number."""

from __future__ import annotations

import re

from tests.docs import commands

PAGE = (commands.REPO / "docs" / "architecture.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"^```\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_every_file_of_a_journey_exists() -> None:
    """A path is below ``koordlet/``; a bare name is the name of some module there."""
    home = commands.REPO / "koordlet"
    names = {name for block in _BLOCK.findall(PAGE) for name in re.findall(r"[\w/*]+\.py", block)}
    missing = {
        name for name in names if not [*(home.glob(name) if "/" in name else home.rglob(name))]
    }

    assert len(names) >= 60
    assert missing == set()


def test_each_invariant_has_its_code_and_its_tests() -> None:
    """I1 to I11, each with a place in the code and a test file."""
    rows = dict(re.findall(r"^\| (I\d+) \|(.*)\|$", PAGE, re.MULTILINE))

    assert list(rows) == [f"I{number}" for number in range(1, 12)]
    for number, row in rows.items():
        _claim, code, tests, _kernel = row.split("|")
        assert (number, "`koordlet/" in code, "`tests/" in tests) == (number, True, True)
