"""Metrics of the container runtime."""

from __future__ import annotations

from dataclasses import replace

from koordlet.report import nri_families
from tests.kit import views


def test_rows() -> None:
    """What is counted is shown; without a runtime there is nothing to show."""
    now = replace(views.view(), runtime={"connected": True, "late": 2, "verified": 7})
    rows = {one.name: list(one.rows(now)) for one in nri_families.FAMILIES if list(one.rows(now))}

    assert rows == {
        "koordlet_nri_connected": [((), True)],
        "koordlet_nri_late": [((), 2)],
        "koordlet_nri_checked": [(("verified",), 7)],
    }
    assert [row for one in nri_families.FAMILIES for row in one.rows(views.view())] == []
