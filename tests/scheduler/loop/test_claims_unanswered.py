"""A claim whose write got no answer is read: what was done stands, and what was not is done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.scheduler.claims.allocation_state import AllocationState
from koordlet.scheduler.loop.claim_writer import ClaimWriter
from koordlet.scheduler.objects import resource_claims
from koordlet.scheduler.store import adapter
from tests.kit import deadline, schedulers
from tests.kit import device_claims as kit
from tests.scheduler.loop.test_claim_writer import NOW, pod

CLAIM = objects.Ref(kinds.RESOURCE_CLAIMS, "c", "d")


class LossyStore(adapter.Store):
    """A store behind an unreliable network."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        #: Status writes whose answer is lost, those that never arrive, reads without an answer.
        self.unanswered, self.undone, self.unread = 0, 0, 0

    async def patch(
        self, ref: objects.Ref, patch: Any, *, subresource: str = "", **more: Any
    ) -> objects.Object:
        if subresource and self.undone:
            self.undone -= 1
            raise refusals.Unavailable("it was cut", culprit=str(ref))
        answer = await super().patch(ref, patch, subresource=subresource, **more)
        if subresource and self.unanswered:
            self.unanswered -= 1
            raise refusals.Unavailable("the answer was cut", culprit=str(ref))
        return answer

    async def get(self, ref: objects.Ref) -> objects.Object:
        if self.unread:
            self.unread -= 1
            raise refusals.Failed("there is no leader", culprit=str(ref))
        return await super().get(ref)


def played(
    ram: Path, body: Callable[[LossyStore, AllocationState, ClaimWriter], Awaitable[None]]
) -> None:
    """Play with a claim that was promised a device."""

    async def run() -> None:
        store, state = LossyStore(ram / "store.db"), AllocationState()
        await store.open()
        try:
            await store.create(kinds.NAMESPACES, {"metadata": {"name": "d"}})
            made = await store.create(kinds.RESOURCE_CLAIMS, kit.claim(kit.request(), name="c"))
            claim = resource_claims.decode(made)
            state.claims.put(claim)
            state.claims.make_promise(claim, kit.held("g"), "u")
            writer = ClaimWriter(store, state, lambda: NOW, lambda _: True, lambda _: None)
            await body(store, state, writer)
        finally:
            await store.close()

    schedulers.run(run())


@pytest.mark.parametrize("unread", [0, 2])
@pytest.mark.parametrize(("unanswered", "undone"), [(1, 0), (0, 2)])
def test_a_claim_is_its_pods_once_the_store_says_what_became_of_the_write(
    ram: Path, unanswered: int, undone: int, unread: int
) -> None:
    """Else its devices would be given to somebody else before the watch shows whose they are."""

    async def body(store: LossyStore, state: AllocationState, writer: ClaimWriter) -> None:
        store.unanswered, store.undone, store.unread = unanswered, undone, unread
        await writer.bind(pod(), 600.0)
        claim = state.claims.get(("d", "c"))
        assert claim is not None
        assert claim.allocation is not None
        assert claim.serves("u")
        assert resource_claims.decode(await store.get(CLAIM)) == claim

    played(ram, body)


def test_devices_stay_in_use_while_nobody_says_what_became_of_the_write(ram: Path) -> None:
    """The pod waits with them, and no other pod is given one."""

    async def body(store: LossyStore, state: AllocationState, writer: ClaimWriter) -> None:
        store.unanswered, store.unread = 1, 1 << 30
        binding = asyncio.ensure_future(writer.bind(pod(), 600.0))
        await deadline.comes(lambda: store.unread <= (1 << 30) - 2 or binding.done())
        assert not binding.done()
        assert state.claims.allocation(("d", "c")) is not None
        store.unread = 0
        await binding

    played(ram, body)


def test_a_write_that_never_arrives_is_given_up_with_what_the_store_said(ram: Path) -> None:
    """The store was asked each time: nothing was done."""

    async def body(store: LossyStore, _: AllocationState, writer: ClaimWriter) -> None:
        store.undone = 1 << 30
        with pytest.raises(refusals.Unavailable, match="it was cut"):
            await writer.bind(pod(), 600.0)

    played(ram, body)
