"""What is kept of the pods that wait for claims is bounded by who waits."""

from __future__ import annotations

from koordlet.scheduler.claims.allocation_state import AllocationState
from koordlet.scheduler.objects import pod_claims
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.objects.requests import Requests


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
