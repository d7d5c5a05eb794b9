"""Pods that ask to be moved alive: a server says that it has begun, and rounds wait for its end.

The peer's walk over rounds, with the answer of the virtual machines' own webhook.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.descheduling.traits import EVICT_ONLY, IN_PROGRESS
from koordlet.scheduler.loop import descheduler
from tests.kit import deadline, schedulers
from tests.kit.apiserver import faults
from tests.kit.descheduler_scene import FREE, restarted
from tests.kit.schedulers import OWNER
from tests.scheduler.loop.test_descheduler import settings

ANSWER = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "reason": "TooManyRequests",
    "code": 429,
    "message": 'admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the'
    " request: Eviction triggered evacuation of VMI",
}


def path_of(name: str) -> str:
    """Where the eviction of a pod is asked for."""
    return f"/api/v1/namespaces/d/pods/{name}/eviction"


def says_so(name: str) -> faults.Fault:
    """The webhook's answer about a pod."""
    path = path_of(name)
    body = json.dumps(ANSWER).encode()
    headers = {"content-type": "application/json"}
    return faults.Fault(
        faults.Manner.ANSWER, "POST", path, times=-1, status=429, headers=headers, body=body
    )


class Scene:
    """A descheduler over a server with two nodes; its pods have all restarted too often."""

    def __init__(self, world: schedulers.World, made: descheduler.Descheduler) -> None:
        self.world, self.made = world, made
        assert world.serving is not None
        self.serving = world.serving

    async def pod(self, name: str, *, alive: bool) -> None:
        """A pod; ``alive``: it asks to be moved so."""
        (owner,) = OWNER["ownerReferences"]
        meta = {
            "ownerReferences": [{**owner, "name": name, "uid": name}],
            "annotations": {EVICT_ONLY: ""} if alive else {},
        }
        if alive:
            self.serving.faults.add(says_so(name))
        ref = await self.world.pod(name, on="n1", meta=meta)
        await self.world.store.patch(
            ref, objects.Merge({"status": restarted(9)}), subresource="status"
        )
        await self.sees(lambda: name in self.moving() or name in self.up())

    def up(self) -> set[str]:
        """The pods that the descheduler sees up."""
        state = self.made.state()
        several = (resident.pod for resident in state.residents(0) + state.residents(1))
        return {pod.name for pod in several if pod.up}

    def moving(self) -> set[str]:
        """The pods that are moved alive, as it sees them."""
        return {pod.name for pod in self.made.state().moving_alive()}

    def shown(self) -> set[str]:
        """The pods that show it themselves."""
        state = self.made.state()
        return {pod.name for pod in state.moving_alive() if state.traits[pod.uid].evicting}

    async def note(self, name: str, value: str | None) -> None:
        """Whoever moves a pod says that it does, or does no more."""
        ref = objects.Ref(kinds.PODS, name, "d")
        body = {"metadata": {"annotations": {IN_PROGRESS: value}}}
        await self.world.store.patch(ref, objects.Merge(body))

    async def round(self) -> list[str]:
        """Who goes."""
        result = await self.made.round()
        return sorted(each.resident.pod.name for each in result.evicted)

    def asked(self, name: str) -> int:
        """How often the eviction of a pod was asked for."""
        return len(self.serving.asked("POST", path_of(name)))

    @staticmethod
    async def sees(what: Callable[[], object]) -> None:
        """The descheduler has heard."""
        await deadline.comes(what, seconds=schedulers.PATIENCE)


@asynccontextmanager
async def scene(ram: Path, **top: Any) -> AsyncGenerator[Scene]:
    """Its rounds are the test's own, after a first one over no pods."""
    custom = kinds.RESERVATIONS, kinds.NODE_AVOIDANCES
    async with schedulers.world(ram, over_http=True, custom=custom) as world:
        await world.node("n1")
        await world.node("n2")
        made = descheduler.Descheduler(
            world.client, settings(**top), instance="one", disruption=FREE
        )
        running = asyncio.ensure_future(made.run())
        try:
            await deadline.comes(lambda: made.beat, seconds=schedulers.PATIENCE)
            yield Scene(world, made)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_a_pod_that_is_moved_alive_is_asked_once(ram: Path) -> None:
    """Also before it shows; when the move is called off, it is asked again."""
    async with scene(ram) as stage:
        for name, alive in (("vm1", True), ("vm2", True), ("a", False)):
            await stage.pod(name, alive=alive)
        assert await stage.round() == ["a", "vm1", "vm2"]
        assert stage.moving() == {"vm1", "vm2"}
        assert await stage.round() == []
        assert stage.made.round_document()["refused"] == []
        await stage.note("vm2", "")
        await stage.sees(lambda: "vm2" in stage.shown())
        assert await stage.round() == []
        assert stage.moving() == {"vm1", "vm2"}
        await stage.note("vm2", None)
        await stage.sees(lambda: stage.moving() == {"vm1"})
        assert await stage.round() == ["vm2"]
        assert (stage.asked("vm1"), stage.asked("vm2")) == (1, 2)


async def test_pods_that_are_moved_alive_count_in_the_limits_of_each_round(ram: Path) -> None:
    """Two under way leave one of three."""
    async with scene(ram, maxNoOfPodsToEvictPerNode=3) as stage:
        for name in ("vm1", "vm2"):
            await stage.pod(name, alive=True)
        assert await stage.round() == ["vm1", "vm2"]
        for name in ("a", "b"):
            await stage.pod(name, alive=False)
        assert len(await stage.round()) == 1


async def test_the_same_answer_about_a_pod_that_did_not_ask_is_a_refusal(ram: Path) -> None:
    """It stays, and is asked again."""
    async with scene(ram) as stage:
        stage.serving.faults.add(says_so("a"))
        await stage.pod("a", alive=False)
        assert (await stage.round(), stage.moving()) == ([], set())
        (refused,) = stage.made.round_document()["refused"]
        assert refused["why"].startswith("PDB: ")
