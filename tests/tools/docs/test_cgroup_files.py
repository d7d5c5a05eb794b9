"""The page of files is what the table says, and the table holds together."""

from __future__ import annotations

from pathlib import Path

from koordlet.model import knob
from tools.docs import cgroup_files

PAGE = Path(__file__).parents[3] / "docs" / "cgroup-files.md"


def test_the_page_is_not_stale() -> None:
    """Generated anew it is the same."""
    assert PAGE.read_text() == cgroup_files.page()


def test_rows_refer_to_rows() -> None:
    """A usage is a row that is read; a twin has a file where this one has none."""
    for row in knob.TABLE.values():
        if row.usage:
            assert knob.TABLE[row.usage].access is knob.Access.READ
        twins = [twin for name, twin in knob.TABLE.items() if name.startswith(row.twin.rstrip("*"))]
        assert not row.twin or all((twin.v1 is None) is (row.v2 is None) for twin in twins)
