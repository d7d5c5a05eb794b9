"""What a quota lent comes back, and who was called back runs again: the whole way over both stores.

Covers: the defaults, two minutes and thirty pods a minute, by a clock that is set; a ReplicaSet
that replaces who goes is played. Does not cover: the choice (``quotas.test_revoke``).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.loop import configuration, runner
from tests.kit import deadline, quotas, schedulers
from tests.kit.eviction_scene import CUSTOM
from tests.kit.schedulers import OWNER, both

NUMBER, BACK = 33, 20
#: Longer than a refused pod waits for its next attempt.
BACKOFF = 11.0
CONFIGURED = {
    "kind": "KubeSchedulerConfiguration",
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "profiles": [
        {
            "schedulerName": schedulers.NAME,
            "pluginConfig": [{"name": "ElasticQuota", "args": {"monitorAllQuotas": True}}],
        }
    ],
}
PROFILES = configuration.read(CONFIGURED, "test").profiles


class Teams:
    """Two teams on one node: ``a`` owns all of it, ``b`` borrows."""

    def __init__(self, world: schedulers.World, loop: runner.Loop) -> None:
        self.world, self.loop = world, loop

    async def pods(self, team: str, number: int, tag: str = "", step: int = 0) -> None:
        """So many pods of a team, a CPU each; ``step``: how much less important the next one is."""
        labels = {f"{quotas.KEY}name": team}
        for place in range(number):
            name, priority = f"{team}{tag}{place}", -place * step
            await self.world.pod(name, cpu="1", labels=labels, priority=priority, meta=OWNER)

    async def running(self, team: str, number: int) -> set[str]:
        """The pods of a team that have a node, once they are so many."""

        def placed(known: Mapping[str, Mapping[str, Any]]) -> set[str]:
            mine = {name: pod for name, pod in known.items() if name[0] == team}
            return {name for name, pod in mine.items() if pod["spec"].get("nodeName")}

        return placed(await self.world.until(lambda known: len(placed(known)) == number))

    async def called(self) -> set[str]:
        """Who is called back by now, and has not gone yet."""
        self.loop.writers.revoke_controller.look()
        await self.loop.writers.revoke_controller.settled()
        pods = await self.world.pods()
        return {name for name, pod in pods.items() if "deletionTimestamp" in pod["metadata"]}

    async def gone(self, names: set[str]) -> None:
        """Pods are gone, and the scheduler knows it."""
        for name in names:
            await self.world.store.delete(objects.Ref(kinds.PODS, name, "d"), grace_seconds=0)
        cache = self.loop.core.pod_cache
        await deadline.comes(
            lambda: all(cache.get(f"d/{name}") is None for name in names),
            seconds=schedulers.PATIENCE,
        )


@both
async def test_what_was_lent_is_back_after_two_minutes_and_who_went_runs_when_there_is_room(
    ram: Path, *, over_http: bool
) -> None:
    """Thirty go in the first minute, then the rest; they wait, and run where the owner leaves."""
    steady = [1000.0]
    custom = (*CUSTOM, kinds.ELASTIC_QUOTAS)
    async with schedulers.world(ram, over_http=over_http, custom=custom) as world:
        await world.node("n1", cpu=str(NUMBER))
        for name, least in (("a", NUMBER), ("b", 0)):
            bound = quotas.quota(name, {"cpu": least}, {"cpu": NUMBER}, namespace="d")
            await world.store.create(kinds.ELASTIC_QUOTAS, bound)
        clocks = runner.Clocks(steady=lambda: steady[0])
        async with schedulers.scheduler(world.client, profiles=PROFILES, clocks=clocks) as loop:
            teams, book = Teams(world, loop), loop.core.quotas
            await teams.pods("b", NUMBER, step=1)
            first = await teams.running("b", NUMBER)
            await teams.pods("a", NUMBER)
            await deadline.comes(
                lambda: book.book.nodes["a"].request.get("cpu") == 1000 * NUMBER,
                seconds=schedulers.PATIENCE,
            )
            assert await teams.called() == set()
            steady[0] += 120.0
            assert await teams.called() == set(), "at the delay itself nobody goes"
            steady[0] += 0.1
            called = await teams.called()
            assert called == first - {"b0", "b1", "b2"}, "the most important stay longest"
            await teams.pods("b", 30, "-again-")
            await teams.gone(called)
            steady[0] += BACKOFF
            await teams.running("a", 30)
            steady[0] += 59.9 - BACKOFF
            assert await teams.called() == set(), "thirty in a minute and no more"
            steady[0] += 0.1
            assert await teams.called() == {"b0", "b1", "b2"}
            await teams.gone({"b0", "b1", "b2"})
            steady[0] += BACKOFF
            owners = await teams.running("a", NUMBER)
            assert "Insufficient quotas" in await world.until_told("b-again-0", "quota")

            await teams.gone(set(sorted(owners)[:BACK]))
            steady[0] += BACKOFF
            again = await teams.running("b", BACK)
            assert again < {f"b-again-{place}" for place in range(30)}
            steady[0] += 600.0
            assert await teams.called() == set()
            assert loop.core.measures.revoked == {("b",): NUMBER}
