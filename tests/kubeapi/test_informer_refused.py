"""The informer, where the server does not serve the kind, or refuses what was asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from koordlet.kubeapi import informer, kinds, refusals, selectors
from koordlet.workloads import gatherer
from tests.kit.apiserver import faults
from tests.kubeapi.test_informer import PATIENCE, color, opened, running

DEFINITION = {
    "spec": {
        "group": kinds.RESERVATIONS.group,
        "scope": "Cluster",
        "names": {"plural": "reservations", "kind": "Reservation"},
        "versions": [{"name": "v1alpha1"}],
    }
}


@pytest.mark.parametrize(
    "body",
    [
        b"Client sent an HTTP request to an HTTPS server.\n",
        b'{"kind":"Status","code":400,"reason":"BadRequest","message":"the body cannot be read"}',
        b"<html>cannot serve /reservations?fieldSelector=status.nodeName</html>",
    ],
)
async def test_a_bad_request_that_is_not_about_the_field(ram: Path, body: bytes) -> None:
    """A failure like others: not all objects of the cluster are watched from then on."""
    async with opened(ram) as world:
        world.watch_with(selectors.Selector(fields="status.nodeName=here"))
        world.server.faults.add(faults.Fault(faults.Manner.ANSWER, status=400, body=body))
        await world.make("mine", nodeName="here")
        async with running(world):
            assert world.colors() == {"mine": "red"}
            assert not world.informer.health.local


async def test_a_kind_that_is_not_installed(ram: Path) -> None:
    """It is said, retried slowly, and found when it is installed."""
    async with opened(ram) as world:
        world.server.api.served.drop(DEFINITION)
        task = asyncio.create_task(world.informer.run())
        await world.until(lambda: world.informer.health.state is informer.State.NOT_SERVED)
        world.server.api.served.define(DEFINITION)
        await asyncio.wait_for(world.informer.synced(), PATIENCE)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_kind_that_is_installed_no_more(ram: Path) -> None:
    """Nobody told of its end: at the first look it ages, at the second what it had is gone."""
    never = informer.Pace(slow_seconds=3600.0)
    async with opened(ram) as world:
        await world.make("a")
        world.informer = informer.Informer(
            world.client, kinds.RESERVATIONS, color, changed=world.changed, pace=never
        )
        async with running(world):
            world.server.api.served.drop(DEFINITION)
            await world.server.cut()
            await world.until(lambda: world.informer.health.state is informer.State.NOT_SERVED)
            seen = gatherer._mirrored("reservations", world.informer, 1000.0)
            assert (world.colors(), seen.ok) == ({"a": "red"}, False)
        async with running(world):
            await world.until(lambda: world.colors() == {})
            assert world.told[-1] == ("a", "red", None)
            assert gatherer._mirrored("reservations", world.informer, 1000.0).ok
        world.server.api.served.define(DEFINITION)
        async with running(world):
            await world.until(lambda: world.colors() == {"a": "red"})


async def test_a_server_that_comes_back_and_refuses_is_asked_again_soon(ram: Path) -> None:
    """A server refuses before it has read its roles; the outage before that counts nothing."""
    attempts: list[tuple[type[refusals.ObjectsError], int]] = []

    class Noted(informer.Pace):
        def wait(self, failures: int, error: refusals.ObjectsError, chance: float) -> float:
            attempts.append((type(error), failures))
            assert super().wait(failures, error, chance) <= 8
            return 0.0

    async with opened(ram) as world:
        await world.make("a")
        world.informer = informer.Informer(world.client, kinds.RESERVATIONS, color, pace=Noted())
        for status, times in ((503, 5), (403, 2)):
            answer = faults.Fault(faults.Manner.ANSWER, watch=True, status=status, times=times)
            world.server.faults.add(answer)
        async with running(world):
            await world.until(lambda: len(attempts) == 7)
            await world.until(lambda: world.informer.health.state is informer.State.WATCHING)
        outage = [(refusals.Unavailable, count) for count in range(5)]
        assert attempts == [*outage, (refusals.Forbidden, 0), (refusals.Forbidden, 1)]
