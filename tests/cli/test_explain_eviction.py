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
        {
            "type": "CPUStalled",
            "status": "True",
            "reason": "KoordletCPUStalled",
            "message": "cpu.some.avg10 is beyond its limit",
        },
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
                {"pod": "d/s", "keys": {"priority": "0"}, "spared": "critical priority"},
                {"pod": "d/a", "keys": {"priority": "0"}, "spared": ""},
            ],
        }
    ],
}


def test_conditions_of_ours_are_told_too() -> None:
    """What stalls and swap beside the kubelet's three; what is about CPUs is not."""
    document = explain_eviction.document(PLAN, None)
    text = list(explain_eviction.lines(document))

    assert [condition["type"] for condition in document["conditions"]] == [
        "MemoryPressure",
        "CPUStalled",
        "SwapPressure",
    ]
    assert "conditions: MemoryPressure, CPUStalled" in text
    assert "  CPUStalled: cpu.some.avg10 is beyond its limit" in text


def test_every_candidate_with_its_keys() -> None:
    """In order, with the reason why one is passed over; what is not known is said to be."""
    text = "\n".join(explain_eviction.lines(explain_eviction.document(PLAN, None)))

    assert "d/a goes for memory.available (node_pressure)" in text
    assert "  1. d/s  priority 0  passed over: critical priority" in text
    assert "  2. d/a  priority 0" in text
    assert "not read" in text


def test_one_pod() -> None:
    """Its row alone, at its place; a name that nobody has is a mistake of the caller."""
    document = explain_eviction.document(PLAN, "d/a")
    evictions: Any = document["evictions"]

    assert [(row["place"], row["pod"]) for row in evictions[0]["ranking"]] == [(2, "d/a")]
    with pytest.raises(errors.UsageError, match="no candidate"):
        explain_eviction.document(PLAN, "d/nobody")


def test_numbers_are_readable() -> None:
    """Bytes with a unit, a percentage with what it amounts to, counts as they are; since when."""
    plan = {
        "signals": [
            {
                "name": "memory.available",
                "observed": "21916936Ki",
                "threshold": "22748858584",
                "spelled": "90%",
                "met": True,
                "since": 1_790_000_000.25,
            },
            {
                "name": "nodefs.inodesFree",
                "observed": "15616k",
                "threshold": "838860",
                "spelled": "5%",
                "met": False,
            },
        ],
        "evictions": [
            {
                "pod": "d/a",
                "signal": "memory.available",
                "ranking": [{"pod": "d/a", "keys": {"overRequest": "-2147483648"}}],
            }
        ],
        "explanations": {"node_pressure": {"held": "no recent data from kubelet pods"}},
    }
    first, memory, inodes, *rest = explain_eviction.lines(explain_eviction.document(plan, None))

    assert first.split() == ["SIGNAL", "OBSERVED", "THRESHOLD", "MET"]
    assert "20.9 GiB" in memory
    assert "90% (21.2 GiB)" in memory
    assert "since 2026-09-21T" in memory
    assert "15616k" in inodes
    assert "5% (838860)" in inodes
    assert "nobody is evicted: no recent data from kubelet pods" in rest
    assert "    1. d/a  overRequest -2 GiB" in rest
