"""Which changes of a claim wake the pods that name it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from koordlet.scheduler.claims.allocation_state import AllocationState
from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.loop.claim_events import ClaimEvents
from koordlet.scheduler.objects import pod_claims, resource_claims
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.objects.requests import Requests
from koordlet.scheduler.objects.resource_claims import Consumer, ResourceClaim
from tests.kit import device_claims as kit

PENDING = resource_claims.decode(kit.claim(kit.request()))
#: At this time.
NOW = 7.0
NAMED, EVERYBODY = ("d/a", NOW), (ActionType.DEVICES, NOW)
ALLOCATED = dataclasses.replace(PENDING, allocation=kit.held("g"))


class Woken:
    """Notes who is tried again."""

    def __init__(self) -> None:
        self.named: list[tuple[str, float]] = []
        self.everybody: list[tuple[ActionType, float]] = []

    def wake(self, event: ClusterEvent, now: float) -> None:
        """Everybody who waits for devices."""
        self.everybody.append((event.what, now))

    def rouse(self, key: str, now: float) -> bool:
        """One pod."""
        self.named.append((key, now))
        return True

    def forget_views(self, concerned: Callable[[PodClass], bool]) -> None:
        """Nothing is remembered here."""


def pod() -> Pod:
    """A pod that uses the claim."""
    shared = PodClass(namespace="d", labels={}, scheduler="s", requests=Requests({}, {}, {}))
    return Pod(
        namespace="d", name="a", uid="u", pod_class=shared, priority=0, created="",
        node="", terminating=False, claims=(pod_claims.PodClaim("x", "c"),),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "named", "everybody"),
    [
        (None, PENDING, [NAMED], []),
        (PENDING, None, [], []),
        (PENDING, ALLOCATED, [NAMED], []),
        (ALLOCATED, PENDING, [NAMED], [EVERYBODY]),
        (ALLOCATED, dataclasses.replace(ALLOCATED, reserved_for=(Consumer("pods", "b", "v"),)),
         [NAMED], []),
        (PENDING, dataclasses.replace(PENDING, finalizers=("x/y",), resource_version="7"), [], []),
        (PENDING, dataclasses.replace(PENDING, name="other"), [], []),
    ],
    ids=["comes", "goes", "gets devices", "gives them back", "is used", "is marked", "is another"],
)  # fmt: skip
def test_a_pod_is_tried_again_when_the_state_of_its_claim_changes(
    old: ResourceClaim | None,
    new: ResourceClaim | None,
    named: list[tuple[str, float]],
    everybody: list[tuple[ActionType, float]],
) -> None:
    """Not when somebody writes a finalizer: a scheduler that allocates does that each time."""
    woken, state = Woken(), AllocationState()
    state.use(pod())
    claim = new or old
    assert claim is not None
    ClaimEvents(woken, state, lambda: NOW).claim((claim.namespace, claim.name), old, new)

    assert (woken.named, woken.everybody) == (named, everybody)
