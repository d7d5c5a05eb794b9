"""``koordlet explain eviction``: what of a plan is about evictions, and how it is said."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.cli import explain_eviction
from koordlet.model import errors

PLAN: dict[str, Any] = {
    "signals": [
        {"name": "memory.available", "observed": "90Mi", "threshold": "100Mi", "met": True},
        {"name": "pid.available", "observed": "", "threshold": "5", "met": None, "why": "not read"},
    ],
    "conditions": [
        {"type": "MemoryPressure", "status": "True"},
        {"type": "CPUStalled", "status": "True"},
        {"type": "SwapPressure", "status": "False"},
        {"type": "ExclusiveCPUsRefused", "status": "True"},
    ],
    "evictions": [
        {
            "pod": "d/a",
            "signal": "memory.available",
            "policy": "node_pressure",
            "message": "The node was low on resource: memory. ",
            "held": "",
            "ranking": [
                {"pod": "d/s", "keys": {"priority": "0"}, "spared": "critical by its priority"},
                {"pod": "d/a", "keys": {"priority": "0"}, "spared": ""},
            ],
        }
    ],
}


def test_conditions_of_ours_are_told_too() -> None:
    """What stalls and swap beside the kubelet's three; what is about CPUs is not."""
    found = explain_eviction.document(PLAN, None)
    text = list(explain_eviction.lines(found))

    assert [one["type"] for one in found["conditions"]] == [  # type: ignore[attr-defined]
        "MemoryPressure",
        "CPUStalled",
        "SwapPressure",
    ]
    assert "conditions: MemoryPressure, CPUStalled" in text


def test_every_candidate_with_its_keys() -> None:
    """In order, with the reason why one is passed over; what is not known is said to be."""
    text = "\n".join(explain_eviction.lines(explain_eviction.document(PLAN, None)))

    assert "d/a goes for memory.available (node_pressure)" in text
    assert "  1. d/s  priority 0  passed over: critical by its priority" in text
    assert "  2. d/a  priority 0" in text
    assert "not read" in text


def test_one_pod() -> None:
    """Its row alone, at its place; a name that nobody has is a mistake of the caller."""
    found = explain_eviction.document(PLAN, "d/a")
    evictions: Any = found["evictions"]

    assert [(row["place"], row["pod"]) for row in evictions[0]["ranking"]] == [(2, "d/a")]
    with pytest.raises(errors.UsageError, match="no candidate"):
        explain_eviction.document(PLAN, "d/nobody")
