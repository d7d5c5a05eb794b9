"""The condition that announces a pod's end."""

from __future__ import annotations

from koordlet.kubeapi import disruption_target


def test_a_condition_says_of_which_specification_it_speaks() -> None:
    """Where the store counts no generations, nothing is said of them."""
    words = {"reason": "EvictionByEvictionAPI", "message": "why", "at": "2026-01-02T03:04:05Z"}
    made = disruption_target.condition(**words, generation=3)
    assert made == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "why",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
        "observedGeneration": 3,
    }
    del made["observedGeneration"]
    assert disruption_target.condition(**words, generation=None) == made
