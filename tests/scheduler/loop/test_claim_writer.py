"""The writer of claims goes on, whatever others have written into one."""

from __future__ import annotations

import asyncio
import dataclasses
import typing
from pathlib import Path

import pytest

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.claims.allocation_state import AllocationState
from koordlet.scheduler.framework import RefusedError
from koordlet.scheduler.loop.claim_writer import ClaimWriter
from koordlet.scheduler.objects import pod_claims, resource_claims
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.objects.requests import Requests
from koordlet.scheduler.objects.resource_claims import ResourceClaim
from koordlet.scheduler.plugins.dynamic_resources import DynamicResources
from tests.kit import deadline, schedulers
from tests.kit import device_claims as kit

NOW = 1_800_000_000.0
LATER = NOW + 3600


def pod() -> Pod:
    """A pod that uses the claim."""
    shared = PodClass(namespace="d", labels={}, scheduler="s", requests=Requests({}, {}, {}))
    claims = (pod_claims.PodClaim("x", "c"),)
    return Pod(
        namespace="d", name="a", uid="u", pod_class=shared, priority=0, created="",
        node="", terminating=False, claims=claims,
    )  # fmt: skip


def allocated(timestamp: str | None, *users: str, true: str = "") -> ResourceClaim:
    """A claim whose device has to be attached first; who uses it, a condition that is true."""
    device = {"driver": kit.DRIVER, "pool": "n", "device": "g"}
    demanded = {"bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
    results = [{"request": "r", **device, **demanded}]
    allocation = {"devices": {"results": results}, "allocationTimestamp": timestamp}
    status = {
        "allocation": allocation,
        "reservedFor": [{"resource": "pods", "name": user, "uid": user} for user in users],
        "devices": [{**device, "conditions": [{"type": true, "status": "True"}]}],
    }
    return resource_claims.decode({**kit.claim(kit.request(), name="c"), "status": status})


class Deallocated(ClaimWriter):
    """A writer that only notes whose devices it would take."""

    def __init__(self, state: AllocationState) -> None:
        unasked = typing.cast("objects.Objects", None)
        super().__init__(unasked, state, lambda: LATER, lambda _: False, lambda _: None)
        self.taken: list[str] = []

    def deallocate(self, claim: ResourceClaim) -> None:
        self.taken.append(claim.key)


@pytest.mark.parametrize(("users", "taken"), [(("u",), ["d/c"]), (("u", "other"), [])])
@pytest.mark.parametrize(
    ("timestamp", "true"), [("2027-01-15T08:00:00Z", ""), ("2027-01-15T08:59:59Z", "Broken")]
)
def test_devices_that_do_not_become_ready_are_taken_from_nobody_else(
    timestamp: str, true: str, users: tuple[str, ...], taken: list[str]
) -> None:
    """A pod that runs with the claim keeps it, whether the device is too late or has failed."""
    state = AllocationState()
    state.claims.put(allocated(timestamp, *users, true=true))
    writer = Deallocated(state)
    with pytest.raises(RefusedError):
        writer.waiting(pod(), 600.0)
    assert writer.taken == taken


@pytest.mark.parametrize("timestamp", [None, "", "yesterday"])
def test_devices_whose_allocation_names_no_time_are_waited_for_from_the_first_look(
    timestamp: str | None,
) -> None:
    """An older scheduler writes none; another wait begins anew."""
    state, wall = AllocationState(), [LATER]
    state.claims.put(allocated(timestamp, "u"))
    unasked = typing.cast("objects.Objects", None)
    writer = ClaimWriter(unasked, state, lambda: wall[0], lambda _: False, lambda _: None)

    for ready in (True, False):
        for _ in range(2):
            assert writer.waiting(pod(), 600.0) > 0
            wall[0] += 300.0
        if ready:
            state.claims.put(allocated(timestamp, "u", true="Attached"))
            assert writer.waiting(pod(), 600.0) == 0
            state.claims.put(allocated(timestamp, "u"))
    wall[0] += 1.0
    with pytest.raises(RefusedError, match="did not become ready within 600 s: Attached"):
        writer.waiting(pod(), 600.0)


def test_a_wait_whose_pod_or_claim_has_gone_leaves_nothing() -> None:
    """The next pod with the claim has all the time; a claim that went is not remembered."""
    state, wall = AllocationState(), [LATER]
    waited_for = allocated("", "u")
    state.claims.put(waited_for)
    unasked = typing.cast("objects.Objects", None)
    writer = ClaimWriter(unasked, state, lambda: wall[0], lambda _: False, lambda _: None)
    assert writer.waiting(pod(), 600.0) > 0

    writer.release(pod(), waited_for)
    wall[0] += 601.0
    assert writer.waiting(pod(), 600.0) > 0
    for number in range(3):
        state.claims.drop(("d", "c"))
        state.claims.put(dataclasses.replace(waited_for, uid=f"again-{number}"))
        assert writer.waiting(pod(), 600.0) > 0
    assert list(writer.since) == ["again-2"]


async def test_nothing_is_written_while_another_scheduler_may_lead(ram: Path) -> None:
    """A replica that slept has given back what is another's by now; it writes when it leads."""
    async with schedulers.world(ram, over_http=False) as world:
        ref = objects.ref(
            kinds.RESOURCE_CLAIMS,
            await world.store.create(kinds.RESOURCE_CLAIMS, kit.claim(name="c")),
        )
        reserved = {"reservedFor": [{"resource": "pods", "name": "a", "uid": "u"}]}
        patch = objects.Merge({"status": reserved})
        stored = await world.store.patch(ref, patch, subresource="status")
        state, asked, leading = AllocationState(), asyncio.Event(), False

        def leads() -> bool:
            asked.set()
            return leading

        writer = ClaimWriter(
            world.store, state, lambda: NOW, lambda _: False, lambda _: None, leads=leads
        )
        writer.release(pod(), resource_claims.decode(stored))
        working = asyncio.ensure_future(writer.run())
        try:
            await asyncio.wait_for(asked.wait(), deadline.PATIENCE)
            assert (await world.store.get(ref))["status"] == reserved
            leading = True
            await world.until(
                lambda several: not several["c"]["status"].get("reservedFor"),
                kinds.RESOURCE_CLAIMS,
            )
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


def test_devices_are_waited_for_from_their_allocation_on() -> None:
    """As long as the profile says."""
    state = AllocationState()
    state.claims.put(allocated("2027-01-15T08:00:00Z", "u"))
    writer = Deallocated(state)

    assert writer.waiting(pod(), 3600.0) > 0
    with pytest.raises(RefusedError, match="did not become ready within 600 s: Attached"):
        writer.waiting(pod(), 600.0)


def test_devices_are_waited_for_as_long_as_the_arguments_say() -> None:
    """The plugin of a profile passes on what its own say."""
    state = AllocationState()
    state.claims.put(allocated("2027-01-15T08:00:00Z", "u"))
    patient, usual = DynamicResources({"bindingTimeout": "2h"}), DynamicResources({})
    for plugin in (patient, usual):
        plugin.attach(state, Deallocated(state))

    assert patient.preparing(pod(), "n") > 0
    with pytest.raises(RefusedError):
        usual.preparing(pod(), "n")


async def test_a_claim_that_cannot_be_read_any_more_costs_its_own_release(ram: Path) -> None:
    """It is logged; the next claim gives its devices back."""
    async with schedulers.world(ram, over_http=False) as world:
        good = await world.store.create(kinds.RESOURCE_CLAIMS, kit.claim(name="good"))
        bad = await world.store.create(kinds.RESOURCE_CLAIMS, kit.claim(name="bad"))
        refs = [objects.ref(kinds.RESOURCE_CLAIMS, each) for each in (bad, good)]
        known = {
            name: resource_claims.decode(each) for name, each in (("bad", bad), ("good", good))
        }
        strange = objects.Merge({"status": {"devices": [{"conditions": "none"}]}})
        await world.store.patch(refs[0], strange, subresource="status")
        reserved = {"reservedFor": [{"resource": "pods", "name": "a", "uid": "u"}]}
        for ref in refs:
            await world.store.patch(ref, objects.Merge({"status": reserved}), subresource="status")
        writer = ClaimWriter(
            world.store, AllocationState(), lambda: NOW, lambda _: False, lambda _: None
        )
        for name in ("bad", "good"):
            writer.release(pod(), dataclasses.replace(known[name], resource_version=""))
        working = asyncio.ensure_future(writer.run())
        try:
            await world.until(
                lambda several: not several["good"]["status"].get("reservedFor"),
                kinds.RESOURCE_CLAIMS,
            )
            assert not working.done()
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
