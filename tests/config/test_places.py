"""Locations are spelled the way an operator reads them."""

from __future__ import annotations

import pytest

from koordlet.config import places


@pytest.mark.parametrize(
    ("loc", "text"),
    [
        ((), ""),
        (("state", "handoverSeconds"), "state.handoverSeconds"),
        (("workloads", 0, "match", "unit"), "workloads[0].match.unit"),
        (("node", "labels", "a.b/c"), 'node.labels["a.b/c"]'),
        (("node", "labels", "a\nb"), r'node.labels["a\nb"]'),
        (("policies", "shared_pools"), "policies.shared_pools"),
    ],
)
def test_dotted(loc: places.Loc, text: str) -> None:
    """Keys are joined by dots, positions are in brackets, unusual keys are quoted."""
    assert text == places.dotted(loc)
