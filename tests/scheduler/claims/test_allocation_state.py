"""The claims of a pod: which it may use, and what is kept of the pods that wait for some."""

from __future__ import annotations

import re

import pytest

from koordlet.scheduler.claims.allocation_state import AllocationState, ClaimProblemError
from koordlet.scheduler.objects import pod_claims, resource_claims
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.objects.requests import Requests
from tests.kit import device_claims as kit


def pod(name: str) -> Pod:
    """A pod with a claim that was made for it, and one that it shares."""
    shared = PodClass(namespace="d", labels={}, scheduler="s", requests=Requests({}, {}, {}))
    claims = (pod_claims.PodClaim("x", f"{name}-x-1"), pod_claims.PodClaim("y", "shared"))
    return Pod(
        namespace="d", name=name, uid=name, pod_class=shared, priority=0, created="",
        node="", terminating=False, claims=claims,
    )  # fmt: skip


def test_whoever_does_not_wait_any_more_is_forgotten_with_the_claims_of_its_own() -> None:
    """Claims that are made for pods have ever new names."""
    state = AllocationState()
    for name in "abc":
        state.use(pod(name))
    state.tidy({"d/b": True}.get)

    assert state._users == {("d", "shared"): {"d/b"}, ("d", "b-x-1"): {"d/b"}}


def test_a_claim_of_a_template_that_another_pod_owns_is_not_used() -> None:
    """In kube-scheduler's words."""
    state = AllocationState()
    owner = {"kind": "Pod", "name": "a", "uid": "before", "controller": True}
    body = kit.claim(kit.request(), name="a-x-1")
    body["metadata"]["ownerReferences"] = [owner]
    state.claims.put(resource_claims.decode(body))
    mine = pod("a")
    mine.claims = (pod_claims.PodClaim("x", "a-x-1", "template"),)
    message = "ResourceClaim d/a-x-1 was not created for Pod d/a (Pod is not owner)"
    with pytest.raises(ClaimProblemError, match=f"^{re.escape(message)}$"):
        state.claims_of(mine)
