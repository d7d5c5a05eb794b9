"""The lease: one leader, by the candidate's own clock."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.scheduler.loop import election
from koordlet.scheduler.store import adapter
from tests.kit import clocks, logs

TERMS = election.Terms(retry_seconds=0.001)
LEASE = objects.Ref(kinds.LEASES, TERMS.name, TERMS.namespace)


@asynccontextmanager
async def opened(ram: Path) -> AsyncGenerator[adapter.Store]:
    """A store in a file."""
    store = adapter.Store(ram / "store.db")
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def _candidate(store: adapter.Store, name: str, clock: clocks.Clock) -> election.Election:
    return election.Election(store, name, clock, clock, TERMS)


async def test_the_second_waits_until_the_lease_is_over(ram: Path) -> None:
    """It takes over only after the record has not changed for the lease's duration."""
    async with opened(ram) as store:
        clock = clocks.Clock(1000.0)
        first, second = _candidate(store, "one", clock), _candidate(store, "two", clock)
        await first.acquire()
        known = [first.leading]
        assert not await second._attempt()
        clock.now += 14.9
        assert not await second._attempt()
        # It has not renewed in time, and knows.
        assert [*known, first.leading] == [True, False]
        clock.now += 0.2
        assert await second._attempt()
        lease = await store.get(LEASE)
        assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseTransitions"]) == ("two", 1)
        assert not await first._attempt()


async def test_a_renewed_lease_is_kept(ram: Path) -> None:
    """Each renewal begins the duration anew for whoever watches."""
    async with opened(ram) as store:
        clock = clocks.Clock(1000.0)
        first, second = _candidate(store, "one", clock), _candidate(store, "two", clock)
        await first.acquire()
        for _ in range(4):
            clock.now += 9
            assert await first._attempt()
            assert not await second._attempt()


async def test_a_lease_that_is_given_back_is_taken_at_once(ram: Path) -> None:
    """A clean stop costs no waiting."""
    async with opened(ram) as store:
        clock = clocks.Clock(1000.0)
        first, second = _candidate(store, "one", clock), _candidate(store, "two", clock)
        await first.acquire()
        await first.release()
        assert not first.leading
        assert await second._attempt()


async def test_a_leader_that_cannot_renew_and_a_candidate_that_waits_say_different_things(
    ram: Path,
) -> None:
    """Each once: a candidate is well where a leader is about to end."""

    class Deaf:
        async def get(self, ref: objects.Ref) -> objects.Object:
            raise refusals.Unavailable("nobody answers", culprit=str(ref))

    async with opened(ram) as store:
        clock = clocks.Clock(1000.0)
        leader, other = _candidate(store, "one", clock), _candidate(store, "two", clock)
        await leader.acquire()
        with logs.written() as stream:
            leader._store = Deaf()  # type: ignore[assignment]
            for _ in range(2):
                assert not await other._attempt()
                assert not await leader._attempt()
        records = [json.loads(line) for line in stream.getvalue().splitlines()]
        assert [(line["event"], line["level"]) for line in records] == [
            ("election.waits", "info"),
            ("election.not_renewed", "warning"),
        ]
        assert records[0]["detail"] == "one holds it"
        assert "nobody answers" in records[1]["detail"]


async def test_a_lost_lease_ends_the_leader(ram: Path) -> None:
    """Whoever finds another holder stops."""
    async with opened(ram) as store:
        clock = clocks.Clock(1000.0)
        candidate = _candidate(store, "one", clock)
        await candidate.acquire()
        await store.patch(LEASE, objects.Merge({"spec": {"holderIdentity": "other"}}))
        lost = False
        try:
            await candidate.hold()
        except election.LostError:
            lost = True
        assert lost


async def test_who_slept_while_another_led_does_not_lead_again(ram: Path) -> None:
    """The lease is free again; what was decided meanwhile is not known here yet."""
    async with opened(ram) as store:
        clock = clocks.Clock(1000.0)
        first, second = _candidate(store, "one", clock), _candidate(store, "two", clock)
        await first.acquire()
        assert not await second._attempt()
        clock.now += 60.0
        await second.acquire()
        await second.release()

        assert not await first._attempt()
        with pytest.raises(election.LostError):
            await first.hold()
        assert await _candidate(store, "one", clock)._attempt()


async def test_who_slept_and_finds_no_lease_any_more_does_not_lead_again(ram: Path) -> None:
    """Whoever led meanwhile may have had it, before somebody deleted it."""
    async with opened(ram) as store:
        clock = clocks.Clock(1000.0)
        first = _candidate(store, "one", clock)
        await first.acquire()
        await store.delete(first._ref)
        assert await first._attempt()
        clock.now += 60.0
        await store.delete(first._ref)

        assert not await first._attempt()
        with pytest.raises(election.LostError):
            await first.hold()


async def test_who_slept_while_nobody_led_goes_on(ram: Path) -> None:
    """It is its own record still."""
    async with opened(ram) as store:
        clock = clocks.Clock(1000.0)
        first = _candidate(store, "one", clock)
        await first.acquire()
        clock.now += 60.0
        assert not first.leading
        assert await first._attempt()
        assert first.leading
