"""Taints of devices: who bears them."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.claims import allocator
from tests.kit import claim_search as search
from tests.kit import device_claims as kit

Body = dict[str, Any]
TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("taint", "tolerations", "is_usable"),
    [
        (TAINT, [], False),
        ({**TAINT, "effect": "None"}, [], True),
        (TAINT, [{"key": "k", "operator": "Exists"}], True),
        (TAINT, [{"operator": "Exists"}], True),
        (TAINT, [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}], True),
        (TAINT, [{"key": "k", "value": "w"}], False),
        (TAINT, [{"key": "k", "operator": "Exists", "effect": "NoExecute"}], False),
        (TAINT, [{"key": "k", "operator": "Gt", "value": "v"}], False),
    ],
)
def test_a_tainted_device_is_for_requests_that_bear_the_taint(
    taint: Body, tolerations: list[Body], is_usable: bool
) -> None:
    """As with nodes; a taint of effect None informs."""
    claim = kit.claim(kit.request("r", tolerations=tolerations))
    made = search.chosen(search.gpus(1, taints=[taint]), claim)
    assert made == ([["r:g0"]] if is_usable else allocator.NO_SOLUTION)
