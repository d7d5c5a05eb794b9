"""Our taints on a Node: they come and go with conditions, and nobody else's is ever lost."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from koordlet.agent import restore
from koordlet.config import loader
from koordlet.host.fs import live_host
from koordlet.kubeapi import objects, refusals
from koordlet.model import decision
from koordlet.report import tainting, view
from koordlet.workloads import nodes
from tests.kit import clocks
from tests.kit.apiserver import store_server
from tests.kit.node_reports import CUSTOM, NODE, NODE_REF, node_view, stored_node

MEMORY = {"key": "koordlet.io/memory-pressure", "effect": "NoSchedule"}
FOREIGN = {"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}
HELD = decision.Condition(type="MemoryPressure", status=True, reason="r")
TIGHT = decision.Condition(type="WorkloadMemoryTight", status=True, reason="r")


async def look(store: objects.Objects, *conditions: decision.Condition) -> view.ReportView:
    """A view with these conditions, of a Node as it stands there now."""
    base = node_view()
    node = nodes.decode(dict(await store.get(NODE_REF)))
    snap = dataclasses.replace(base.snapshot, node=node)
    plan = dataclasses.replace(base.plan, conditions=conditions)
    return dataclasses.replace(base, snapshot=snap, plan=plan)


async def taints(store: objects.Objects) -> list[dict[str, Any]]:
    """The taints of the Node."""
    listed: list[dict[str, Any]] = (await store.get(NODE_REF)).get("spec", {}).get("taints", [])
    return listed


async def add_taints(store: objects.Objects, *more: dict[str, Any]) -> None:
    """Add taints as a well-mannered client does."""
    while True:
        node = await store.get(NODE_REF)
        listed = [*node.get("spec", {}).get("taints", []), *more]
        body = {"spec": {"taints": listed}}
        try:
            await store.patch(NODE_REF, objects.Merge(body, objects.revision(node)))
        except refusals.Conflict:
            continue
        return


async def test_a_taint_comes_and_goes_with_its_condition(ram: Path) -> None:
    """Beside those of others; it lingers half a minute; a quiet node is not asked."""
    async with stored_node(ram) as store:
        clock = clocks.Clock(1000.0)
        row = tainting.Taints("NoSchedule", clock)
        await add_taints(store.store, FOREIGN)
        assert await row.bring(store, await look(store.store, HELD, TIGHT)) == 1
        assert await taints(store.store) == [FOREIGN, MEMORY]
        store.asked.clear()
        for _ in range(20):
            clock.now += 1
            assert await row.bring(store, await look(store.store)) == 0
        assert store.asked == []
        clock.now += tainting.LINGERS
        assert await row.bring(store, await look(store.store)) == 1
        assert await taints(store.store) == [FOREIGN]


async def test_without_an_effect_what_was_left_is_taken_away(ram: Path) -> None:
    """Also where the effect is another one now; the last taint leaves no empty list behind."""
    async with stored_node(ram) as store:
        await tainting.Taints("NoSchedule", clocks.Clock(1000.0)).bring(
            store, await look(store.store, HELD)
        )
        softer = tainting.Taints("PreferNoSchedule", clocks.Clock(1000.0))
        assert await softer.bring(store, await look(store.store, HELD)) == 1
        assert await taints(store.store) == [{**MEMORY, "effect": "PreferNoSchedule"}]
        none = tainting.Taints(None, clocks.Clock(1000.0))
        assert await none.bring(store, await look(store.store, HELD)) == 1
        assert "taints" not in (await store.store.get(NODE_REF)).get("spec", {})
        assert await none.bring(store, await look(store.store, HELD)) == 0


async def test_a_node_that_was_not_heard_is_left_alone(ram: Path) -> None:
    """What is not known is not compared with."""
    async with stored_node(ram) as store:
        now = await look(store.store, HELD)
        node = dataclasses.replace(now.snapshot.node, known=False)
        now = dataclasses.replace(now, snapshot=dataclasses.replace(now.snapshot, node=node))
        store.asked.clear()
        assert await tainting.Taints("NoSchedule", clocks.Clock(1000.0)).bring(store, now) == 0
        assert store.asked == []


class Overtaken:
    """A store where somebody else is faster, so often, between our look and our write."""

    def __init__(self, store: objects.Objects, times: int) -> None:
        self._store, self.times, self.added = store, times, list[dict[str, Any]]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def get(self, ref: objects.Ref) -> objects.Object:
        """What stands there, and what will not stand there alone any more."""
        node = await self._store.get(ref)
        if len(self.added) < self.times:
            self.added.append({"key": f"other/{len(self.added)}", "effect": "NoExecute"})
            await add_taints(self._store, self.added[-1])
        return node


def served(path: Path, body: Callable[[objects.Objects], Awaitable[None]]) -> None:
    """Run it against an API server over HTTP."""

    async def run() -> None:
        async with store_server.opened(path, NODE, custom=CUSTOM) as (_, client, _store):
            await body(client)

    asyncio.run(asyncio.wait_for(run(), 30))


def test_whoever_is_faster_keeps_what_it_wrote(ram: Path) -> None:
    """Over HTTP: after each conflict the Node is read anew; ours comes last, theirs all stay."""

    async def body(client: objects.Objects) -> None:
        store = Overtaken(client, times=4)
        now = await look(client, HELD)
        assert await tainting.Taints("NoSchedule", clocks.Clock(1000.0)).bring(store, now) == 1
        assert [*store.added, MEMORY] == await taints(client)

        worse = Overtaken(client, times=1000)
        with pytest.raises(refusals.Conflict):
            await tainting.lay(worse, NODE)
        assert [*store.added, MEMORY, *worse.added] == await taints(client)

    served(ram, body)


def test_two_writers_at_once_lose_nothing(ram: Path) -> None:
    """Somebody taints as fast as it can while ours comes and goes: all of theirs are there."""

    async def body(client: objects.Objects) -> None:
        theirs = [{"key": f"other/{number}", "effect": "NoSchedule"} for number in range(12)]
        writing = asyncio.create_task(_add_each(client, theirs))
        for turn in range(20):
            with contextlib.suppress(refusals.Conflict):
                await tainting.lay(client, NODE, [] if turn % 2 else [MEMORY["key"]], "NoSchedule")
        await writing
        await tainting.lay(client, NODE)
        assert theirs == await taints(client)

    served(ram, body)


async def _add_each(client: objects.Objects, added: list[dict[str, Any]]) -> None:
    for taint in added:
        await add_taints(client, taint)


def test_restoring_takes_them_away(ram: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``koordlet restore`` asks the API server: one that is away fails, a Node that is gone not."""
    monkeypatch.setenv("NODE_NAME", NODE)

    async def body(client: objects.Objects) -> None:
        await add_taints(client, FOREIGN, MEMORY)
        env = {
            "KOORDLET_KUBE__KUBECONFIG": str(ram / "kubeconfig"),
            "KOORDLET_REPORT__OBJECTS__TAINTS": "NoSchedule",
        }
        config = loader.from_text(None, "", env, {}).config
        done = await asyncio.to_thread(restore.withdraw, config, live_host.LiveHost())
        assert (done.restored, done.failed) == (1, ())
        assert await taints(client) == [FOREIGN]
        again = await asyncio.to_thread(restore.withdraw, config, live_host.LiveHost())
        assert again == restore.NOTHING
        monkeypatch.setenv("NODE_NAME", "gone")
        done = await asyncio.to_thread(restore.withdraw, config, live_host.LiveHost())
        assert ([skipped.target for skipped in done.left], done.failed) == (["node/gone"], ())

    served(ram, body)
    monkeypatch.setenv("NODE_NAME", NODE)
    env = {"KOORDLET_KUBE__KUBECONFIG": str(ram / "kubeconfig")}
    off = loader.from_text(None, "", env, {}).config
    (skipped,) = restore.withdraw(off, live_host.LiveHost()).left
    assert f"node/{NODE}" == skipped.target
    nothing = loader.from_text(
        None, "", {**env, "KOORDLET_REPORT__OBJECTS__MODE": "off"}, {}
    ).config
    assert restore.withdraw(nothing, live_host.LiveHost()) == restore.NOTHING
    env["KOORDLET_REPORT__OBJECTS__TAINTS"] = "NoSchedule"
    (bad,) = restore.withdraw(
        loader.from_text(None, "", env, {}).config, live_host.LiveHost()
    ).failed
    assert f"node/{NODE}" == bad.target


@pytest.mark.parametrize("listed", [None, [], "x", [None, 1, {"key": 2}, FOREIGN]])
def test_a_malformed_list_is_kept(listed: object) -> None:
    """What is no taint is not ours to judge: it stays where it is."""
    node = {"spec": {"taints": listed}}
    has = listed if isinstance(listed, list) else []

    assert [*has, MEMORY] == tainting.laid(node, [MEMORY["key"]], "NoSchedule")
    assert tainting.laid(node, [], "") is None
