"""A scheduler that is killed by SIGKILL between any two writes of a call-back.

Covers: a real process over a store's file; who starts after it calls back the rest, and nobody
twice. Does not cover: what a restart keeps of the pace (``disruption``): a minute begins anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.loop import configuration, revoke_controller, runner
from koordlet.scheduler.objects import eviction_marks
from koordlet.scheduler.store import adapter
from tests.kit import deadline, quotas, schedulers

BACK = {"b2", "b3"}
#: More writes than a call-back of two pods has.
MOST = 20
CONFIGURED = {
    "kind": "KubeSchedulerConfiguration",
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "profiles": [
        {
            "schedulerName": schedulers.NAME,
            "pluginConfig": [
                {
                    "name": "ElasticQuota",
                    "args": {
                        "monitorAllQuotas": True,
                        "delayEvictTime": "20ms",
                        "revokePodInterval": "10ms",
                    },
                }
            ],
        }
    ],
}
PROFILES = configuration.read(CONFIGURED, "test").profiles


class DyingStore:
    """A store whose process dies right after the n-th write of a call-back.

    These are marks on pods, evictions and events; they come one after another: each is kept, and
    the next one has not begun.
    """

    def __init__(self, inner: adapter.Store, dies_at: int) -> None:
        self._inner, self._dies_at = inner, dies_at
        self._writes, self._alone = 0, asyncio.Lock()
        #: The names of the pods whose eviction was asked for.
        self.evicted: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @asynccontextmanager
    async def _write(self, *, counts: bool = True) -> AsyncGenerator[None]:
        if not counts:
            yield
            return
        async with self._alone:
            self._writes += 1
            yield
            if self._writes == self._dies_at:
                os.kill(os.getpid(), signal.SIGKILL)

    async def create(self, kind: kinds.Kind, body: Any, **more: Any) -> objects.Object:
        async with self._write(counts=body.get("reason") == revoke_controller.CAUSE):
            return await self._inner.create(kind, body, **more)

    async def patch(self, ref: objects.Ref, patch: Any, **more: Any) -> objects.Object:
        async with self._write(counts=eviction_marks.EVICTION in str(patch.body)):
            return await self._inner.patch(ref, patch, **more)

    async def evict(self, pod: objects.Ref, **more: Any) -> None:
        async with self._write():
            self.evicted.append(pod.name)
            await self._inner.evict(pod, **more)


@asynccontextmanager
async def _store(folder: Path) -> AsyncGenerator[adapter.Store]:
    store = adapter.Store(folder / "store.db")
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def _world(store: adapter.Store) -> schedulers.World:
    return schedulers.World(store, store, None)


async def _prepared(folder: Path) -> None:
    """``a`` has two CPUs for sure and wants them; ``b`` uses all four."""
    async with _store(folder) as store:
        world = _world(store)
        await store.create(kinds.NAMESPACES, {"metadata": {"name": "d"}})
        await world.node("n1", cpu="4")
        for name, least in (("a", 2), ("b", 2)):
            bound = quotas.quota(name, {"cpu": least}, {"cpu": 4}, namespace="d")
            await store.create(kinds.ELASTIC_QUOTAS, bound)
        for name, number, where in (("a", 2, ""), ("b", 4, "n1")):
            for place in range(number):
                labels = {f"{quotas.KEY}name": name}
                await world.pod(f"{name}{place}", cpu="1", labels=labels, priority=-place, on=where)


async def _call_back(folder: Path, dies_at: int = 0) -> list[str]:
    """Schedule until everybody is called back and told of; whose eviction was asked for."""
    async with _store(folder) as store:
        dying = DyingStore(store, dies_at)
        async with schedulers.scheduler(dying, profiles=PROFILES) as loop:
            await _world(store).until(lambda known: _ending(known).keys() == BACK)
            await _settled(loop)
        return dying.evicted


async def _settled(loop: runner.Loop) -> None:
    await deadline.comes(lambda: loop.ready, seconds=schedulers.PATIENCE)
    await loop.writers.revoke_controller.settled()


def _ending(pods: Any) -> dict[str, str]:
    """The pods that end, and when."""
    metas = {name: pod["metadata"] for name, pod in pods.items()}
    return {
        name: meta["deletionTimestamp"]
        for name, meta in metas.items()
        if "deletionTimestamp" in meta
    }


async def _owners_run(folder: Path) -> None:
    """The pods that were called back say why; they are gone, and the owner's run."""
    async with _store(folder) as store:
        world = _world(store)
        for name, pod in (await world.pods()).items():
            if name in BACK:
                note = json.loads(pod["metadata"]["annotations"][eviction_marks.EVICTION])
                assert note["by"] == "quota"
                await store.delete(objects.Ref(kinds.PODS, name, "d"), grace_seconds=0)
        async with schedulers.scheduler(store, profiles=PROFILES):
            assert (await world.until_placed("a0", "a1")).keys() == {"a0", "a1", "b0", "b1"}


async def _pods(folder: Path) -> dict[str, str]:
    async with _store(folder) as store:
        return _ending(await _world(store).pods())


def _forked(body: Coroutine[Any, Any, Any]) -> int:
    """Let a process of its own do this; how it ended."""
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            schedulers.run(body)
            os._exit(0)
        os._exit(1)
    body.close()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_kill_between_two_writes_of_a_call_back_loses_nobody_and_takes_nobody_twice(
    ram: Path,
) -> None:
    """After each write in turn: the next scheduler evicts exactly those that were not."""
    before = ram / "before"
    before.mkdir()
    asyncio.run(_prepared(before))
    numbers, folder = [], before
    for dies_at in range(1, MOST):
        folder = Path(shutil.copytree(before, ram / str(dies_at)))
        ended = _forked(_call_back(folder, dies_at))
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        first = asyncio.run(_pods(folder))
        numbers.append(len(first))
        again = asyncio.run(_call_back(folder))
        assert sorted(again) == sorted(BACK - first.keys()), dies_at
        last = asyncio.run(_pods(folder))
        assert {name: last[name] for name in first} == first
        assert last.keys() == BACK
    asyncio.run(_owners_run(folder))
    assert set(numbers) == {0, 1, 2}
    assert len(numbers) < MOST - 1
