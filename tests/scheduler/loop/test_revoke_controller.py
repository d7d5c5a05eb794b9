"""Calling back over both stores: evictions, events, the count, the pace, budgets."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.loop import configuration, evictions, revoke_controller, runner
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.quotas.amounts import Amounts
from koordlet.scheduler.quotas.history import QuotaAct
from koordlet.scheduler.quotas.settings import QuotaSettings
from koordlet.scheduler.quotas.tree import QuotaNode, QuotaTree, Usage
from tests.kit import deadline, quotas, schedulers
from tests.kit.eviction_scene import CUSTOM, events
from tests.kit.schedulers import READY, both

CPU = {"cpu": 1_000}


@dataclasses.dataclass(eq=False)
class Counted:
    """A pod of the quota."""

    pod: Pod
    usage: Usage


class Lent:
    """The quota ``b`` with all pods of a scheduler, each of a CPU, and a runtime."""

    def __init__(self, loop: runner.Loop, runtime: int) -> None:
        self.tree = QuotaTree()
        self.tree.set_total({"cpu": runtime})
        self.node = self.tree.put(quotas.spec("b", {}, {"cpu": 100}))
        self._cache = loop.core.pod_cache
        self.node.used.update({"cpu": 1_000 * len(self._cache)})

    @property
    def nodes(self) -> Mapping[str, QuotaNode]:
        """The one quota."""
        return {"b": self.node}

    def limit(self, node: QuotaNode) -> Amounts:
        """What it may use."""
        assert node is self.node
        return self.tree.total

    def counted(self, node: QuotaNode) -> Iterable[Counted]:
        """Its pods; those that are gone use nothing."""
        node.used.update({"cpu": 1_000 * len(self._cache)})
        return [Counted(pod, Usage(CPU, CPU)) for pod in self._cache]


def _same(lent: Lent) -> Lent:
    """The quotas, as the controller asks for them."""
    return lent


class Scene:
    """A scheduler with pods, and a controller that is asked by hand, its delay over."""

    def __init__(
        self, world: schedulers.World, loop: runner.Loop, runtime: int, per_minute: int
    ) -> None:
        self.world, self.loop = world, loop
        self.steady = 0.0
        evicting = evictions.Evictions(
            world.client, loop.disruptions.limiter, loop.core.measures,
            loop.evictions.events, lambda: self.steady, pause=0.0,
        )  # fmt: skip
        self.controller = revoke_controller.RevokeController(
            functools.partial(_same, Lent(loop, runtime)),
            QuotaSettings(delay_evict_seconds=1.0, max_revoke_per_minute=per_minute),
            evicting,
            loop.core.quotas.history,
        )

    async def look(self, seconds: float) -> None:
        """Time passes, and what is begun ends."""
        self.steady += seconds
        self.controller.look()
        await self.controller.settled()

    async def ending(self) -> set[str]:
        """The pods that end, as the store has them."""
        pods = await self.world.pods()
        return {name for name, pod in pods.items() if "deletionTimestamp" in pod["metadata"]}

    async def shown(self, number: int) -> None:
        """Wait until the scheduler sees that so many pods end."""

        def good() -> bool:
            return sum(pod.terminating for pod in self.loop.core.pod_cache) == number

        await deadline.comes(good, seconds=schedulers.PATIENCE)


@asynccontextmanager
async def scene(
    ram: Path, *, over_http: bool, number: int, runtime: int, per_minute: int = 30
) -> AsyncGenerator[Scene]:
    """So many ready pods without a controller, the last one the least important."""
    async with schedulers.world(ram, over_http=over_http, custom=CUSTOM) as world:
        await world.node("n1", cpu="100")
        for place in range(number):
            ref = await world.pod(f"p{place}", on="n1", labels={"app": "b"}, priority=-place)
            await world.store.patch(ref, objects.Merge({"status": READY}), subresource="status")
        async with schedulers.scheduler(world.client) as loop:
            there: Callable[[], Any] = lambda: sum(pod.up for pod in loop.core.pod_cache) == number  # noqa: E731
            await deadline.comes(there, seconds=schedulers.PATIENCE)
            yield Scene(world, loop, runtime, per_minute)


@both
async def test_what_is_above_the_runtime_is_evicted_after_the_delay_and_told(
    ram: Path, *, over_http: bool
) -> None:
    """Events on pod and quota with numbers; counted by quota; nobody more at the next look."""
    async with scene(ram, over_http=over_http, number=3, runtime=2_000) as stage:
        await stage.look(0.0)
        await stage.look(1.0)
        assert await stage.ending() == set()
        await stage.look(0.1)
        assert await stage.ending() == {"p2"}
        by_kind = {
            event["regarding"]["kind"]: event for event in await events(stage.world, "QuotaRevoked")
        }
        assert by_kind.keys() == {"Pod", "ElasticQuota"}
        assert by_kind["ElasticQuota"]["regarding"]["name"] == "b"
        assert by_kind["Pod"]["note"] == (
            "pod d/p2 is called back: quota b uses cpu:3 and may use cpu:2 now: others want"
            " what it borrowed"
        )
        text = stage.loop.metrics()
        assert 'koordlet_scheduler_quota_revoked_pods_total{quota="b"} 1' in text
        await stage.shown(1)
        await stage.look(1.0)
        assert await stage.ending() == {"p2"}


async def test_no_more_go_in_a_minute_than_configured(ram: Path) -> None:
    """The peer's limit, in place of the ten a minute of all; no node or share bounds it."""
    async with scene(ram, over_http=False, number=15, runtime=0, per_minute=12) as stage:
        await stage.look(0.0)
        await stage.look(1.1)
        assert len(await stage.ending()) == 12
        await stage.shown(12)
        await stage.look(59.9)
        assert len(await stage.ending()) == 12
        await stage.look(0.1)
        assert len(await stage.ending()) == 15


@both
async def test_a_disruption_budget_is_obeyed_and_asked_again_at_the_next_look(
    ram: Path, *, over_http: bool
) -> None:
    """Refused once in words, then silently; when the budget allows it, the pod goes."""
    async with scene(ram, over_http=over_http, number=2, runtime=1_000) as stage:
        budget = {
            "metadata": {"name": "strict", "namespace": "d"},
            "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "b"}}},
        }
        await stage.world.store.create(kinds.POD_DISRUPTION_BUDGETS, budget)
        ref = objects.Ref(kinds.POD_DISRUPTION_BUDGETS, "strict", "d")

        async def allow(number: int) -> None:
            status = {"disruptionsAllowed": number, "observedGeneration": 1}
            patch = objects.Merge({"status": status})
            await stage.world.store.patch(ref, patch, subresource="status")

            def known() -> bool:
                several = list(stage.loop.core.budgets.at(0.0))
                return bool(several) and several[0].allowed == number

            await deadline.comes(known, seconds=schedulers.PATIENCE)

        await allow(0)
        await stage.look(0.0)
        for _ in range(3):
            await stage.look(1.1)
        assert await stage.ending() == set()
        counts = stage.loop.core.measures.evictions
        assert counts["quota", "QuotaRevoked", "PDB"] == 1
        await allow(1)
        await stage.look(1.0)
        assert await stage.ending() == {"p1"}


CONFIGURED = {
    "kind": "KubeSchedulerConfiguration",
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "profiles": [
        {
            "schedulerName": schedulers.NAME,
            "plugins": {"multiPoint": {"enabled": [{"name": "ElasticQuota"}]}},
            "pluginConfig": [
                {
                    "name": "ElasticQuota",
                    "args": {
                        "monitorAllQuotas": True,
                        "delayEvictTime": "200ms",
                        "revokePodInterval": "50ms",
                    },
                }
            ],
        }
    ],
}


@both
async def test_a_quota_that_borrowed_gives_back_when_the_owner_comes(
    ram: Path, *, over_http: bool
) -> None:
    """The newest of the borrower go, the owner's pods run in their place, and no more go."""
    profiles = configuration.read(CONFIGURED, "test").profiles
    custom = (*CUSTOM, kinds.ELASTIC_QUOTAS)
    async with schedulers.world(ram, over_http=over_http, custom=custom) as world:
        await world.node("n1", cpu="4")
        for name, least in (("a", 3), ("b", 1)):
            bound = quotas.quota(name, {"cpu": least}, {"cpu": 4}, namespace="d")
            await world.store.create(kinds.ELASTIC_QUOTAS, bound)
        async with schedulers.scheduler(world.client, profiles=profiles) as loop:
            for place in range(4):
                label = {f"{quotas.KEY}name": "b"}
                await world.pod(f"b{place}", cpu="1", labels=label, priority=-place)
                await world.until_placed(f"b{place}")
            for place in range(3):
                await world.pod(f"a{place}", cpu="1", labels={f"{quotas.KEY}name": "a"})

            def three_end(known: dict[str, Any]) -> bool:
                ending = {
                    name for name, pod in known.items() if "deletionTimestamp" in pod["metadata"]
                }
                return ending == {"b1", "b2", "b3"}

            await world.until(three_end)
            for place in (1, 2, 3):
                ref = objects.Ref(kinds.PODS, f"b{place}", "d")
                await world.store.delete(ref, grace_seconds=0)
            placed = await world.until_placed("a0", "a1", "a2")
            assert sorted(placed) == ["a0", "a1", "a2", "b0"]
            revoked = loop.core.measures.revoked
            assert dict(revoked) == {("b",): 3}
            history = loop.core.quotas.history
            past = history.get("b")
            assert past is not None
            acts = [mark.act for mark in past.marks]
            assert acts.count(QuotaAct.CALLED_BACK) == 3
