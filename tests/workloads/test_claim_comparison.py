"""Which prepared claims are asked about, and which stay, by pods and by the server's word."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from koordlet.model import pod
from koordlet.workloads import claim_comparison
from tests.kit.prepared_claims import claim, cpus, result, status, using

CLAIM = claim("a", cpus("0-3", 2))
HELD = {CLAIM.uid: CLAIM}
RUNS = using("p", {"main": ("a/cpus",)}, phase=pod.Phase.RUNNING)
ENDED = replace(RUNS, phase=pod.Phase.SUCCEEDED)
USED = status("a", result("numa-0", cpu="2"))
FREE = status("a", result("numa-0", cpu="2"), pods=())
NOT_ALLOCATED: dict[str, Any] = {**USED, "status": {}}
ANEW = {**USED, "metadata": {**USED["metadata"], "uid": "another"}}
KEY = ("t", "a")


def test_at_a_start_claims_that_are_held_or_whose_pods_run_are_in_doubt() -> None:
    """Not those of a pod that waits, ends or is being deleted: nobody may have prepared them."""
    others = [
        replace(using(name, {"main": (name,)}), phase=phase, deleting=deleting)
        for name, phase, deleting in (
            ("runs", pod.Phase.RUNNING, None),
            ("waits", pod.Phase.PENDING, None),
            ("goes", pod.Phase.RUNNING, 5.0),
            ("ended", pod.Phase.FAILED, None),
        )
    ]
    assert claim_comparison.at_start(HELD.values(), others) == {KEY, ("t", "runs")}


@pytest.mark.parametrize(("pods", "asked"), [((RUNS,), set()), ((ENDED,), {KEY}), ((), {KEY})])
def test_a_claim_is_in_doubt_while_no_pod_uses_it(
    pods: tuple[pod.Pod, ...], asked: set[claim_comparison.Key]
) -> None:
    """An ended pod uses none."""
    assert claim_comparison.unused(HELD.values(), pods) == asked


@pytest.mark.parametrize(
    ("body", "pods", "stays"),
    [
        (USED, (), True),
        (FREE, (), False),
        (FREE, (ENDED,), False),
        (FREE, (RUNS,), True),
        (NOT_ALLOCATED, (), False),
        (None, (), False),
        (None, (RUNS,), True),
        (ANEW, (), False),
        (ANEW, (RUNS,), False),
    ],
)
def test_a_claim_stays_while_server_or_a_pod_of_this_node_has_it(
    body: dict[str, Any] | None, pods: tuple[pod.Pod, ...], *, stays: bool
) -> None:
    """A pod that was deleted by force still runs; a claim made anew is another."""
    assert claim_comparison.kept(HELD, KEY, body, pods) == (HELD if stays else {})
    other = {**HELD, "other": claim("b")}
    assert "other" in claim_comparison.kept(other, KEY, body, pods)
