"""The ledger's memory goes to a checkpoint and comes back, or is refused."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.policy.cpu import exclusive_cpus, holdings

POLICY = exclusive_cpus.POLICY

ROW: dict[str, Any] = {
    "uid": "u",
    "holder": "t/a",
    "cpus": "0-1",
    "origin": "named",
    "owner": "LSE",
    "since": 7.0,
}


def test_there_and_back() -> None:
    """What was written is what is read."""
    state = POLICY.revive({"holdings": [ROW]})

    assert POLICY.saved(state) == {"holdings": [ROW]}
    assert state.holdings[0] is state.of("u", holdings.Origin.NAMED)
    assert state.of("u", holdings.Origin.CHOSEN) is None


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"holdings": {}},
        {"holdings": [7]},
        {"holdings": [{**ROW, "cpus": "x"}]},
        {"holdings": [{**ROW, "origin": "nobody"}]},
        {"holdings": [{**ROW, "owner": "LS"}]},
        {"holdings": [{**ROW, "since": "now"}]},
        {"holdings": [{**ROW, "since": True}]},
        {"holdings": [{**ROW, "uid": None}]},
    ],
)
def test_a_checkpoint_that_is_none(body: dict[str, object]) -> None:
    """A checkpoint that does not hold holdings is refused."""
    with pytest.raises(ValueError, match=r"."):
        POLICY.revive(body)
