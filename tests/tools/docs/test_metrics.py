"""The page of metrics."""

from __future__ import annotations

from pathlib import Path

from koordlet.report import metrics
from tools.docs import metrics as metrics_page

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"


def test_up_to_date() -> None:
    """The page in the tree is the one that the table makes."""
    assert metrics_page.page() == PAGE.read_text(encoding="utf-8")


def test_complete() -> None:
    """Each family has one row."""
    rows = [row for row in metrics_page.page().splitlines() if row.startswith("| `koordlet_")]

    assert len(rows) == len(metrics.table())
