"""The binder where the news overtakes it: what is reported of a binding that was never written."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.scheduler import framework
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop import binder
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Bind
from koordlet.scheduler.objects import nodes
from koordlet.scheduler.objects.pods import Pod
from tests.kit import clusters, deadline

NAME = "default-scheduler"


class UnaskedStore:
    """A store that is not to be asked for anything."""


@pytest.mark.parametrize(
    ("there", "reported"),
    [(None, []), ("m", []), ("n", [("p", "n")])],
    ids=["deleted", "bound elsewhere", "bound here"],
)
def test_only_a_binding_that_the_store_shows_is_reported(
    there: str | None, reported: list[tuple[str, str]]
) -> None:
    """The pod was deleted or bound while its turn had not come: no event says that we assigned it.

    Where the store shows it on our node, an earlier request of ours was taken, and its answer lost.
    """
    core = Core({NAME: profile.default(NAME)})
    core.node(None, nodes.decode(clusters.node("n")), 0.0)
    pod = _pod(core)
    core.pod(None, pod, 0.0)
    decision = core.step(0.0)
    assert isinstance(decision, Bind)
    core.node(None, nodes.decode(clusters.node("m")), 0.0)
    core.pod(pod, None if there is None else _pod(core, on=there), 1.0)

    assert asyncio.run(_bound(core, decision)) == reported


def _pod(core: Core, **more: Any) -> Pod:
    return core.decoder.decode(clusters.pod("p", cpu="1", meta={"uid": "u"}, **more), 0)


async def _bound(core: Core, decision: Bind) -> list[tuple[str, str]]:
    """What is reported of a decision once the binder is through with it."""
    reported: list[tuple[str, str]] = []

    def on_bound(bind: Bind, error: refusals.ObjectsError | None) -> None:
        assert error is None
        reported.append((bind.pod.name, bind.node))

    store: Any = UnaskedStore()
    binding = binder.Binder(store, core, on_bound, lambda: 0.0, lanes=1)
    binding.submit(decision)
    working = asyncio.ensure_future(binding.run())
    await deadline.comes(lambda: not binding.backlog)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    return reported


class CountingStore:
    """A store that takes every binding."""

    def __init__(self) -> None:
        self.bound = 0

    async def bind(self, *_: Any, **__: Any) -> None:
        self.bound += 1


def test_nothing_is_bound_while_another_scheduler_may_lead() -> None:
    """It was decided before the process was stopped, and the room may be somebody else's."""
    core = Core({NAME: profile.default(NAME)})
    core.node(None, nodes.decode(clusters.node("n")), 0.0)
    core.pod(None, _pod(core), 0.0)
    decision = core.step(0.0)
    assert isinstance(decision, Bind)
    asked: list[int] = []
    counting = CountingStore()

    def leads() -> bool:
        asked.append(counting.bound)
        return len(asked) > 3

    async def body() -> None:
        store: Any = counting
        binding = binder.Binder(
            store, core, lambda *_: None, lambda: 0.0, lanes=1, first=0.001, leads=leads
        )
        binding.submit(decision)
        working = asyncio.ensure_future(binding.run())
        await deadline.comes(lambda: not binding.backlog)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    asyncio.run(body())

    assert asked[:4] == [0, 0, 0, 0]
    assert counting.bound == 1


class WritingPlugin(framework.Plugin):
    """A plugin that has something written before each binding."""

    def writes(self, pod: Pod, node: str) -> list[tuple[objects.Ref, objects.Object]]:
        return [(objects.Ref(kinds.NODES, node), {"metadata": {"labels": {"for": pod.name}}})]


def test_a_plugin_writes_nothing_while_another_scheduler_may_lead() -> None:
    """The pod's turn had come while it led; the promise is taken back, and the pod tried anew."""
    core = Core({NAME: profile.default(NAME)})
    core.node(None, nodes.decode(clusters.node("n")), 0.0)
    core.pod(None, _pod(core), 0.0)
    decision = core.step(0.0)
    assert isinstance(decision, Bind)
    decision = dataclasses.replace(decision, plugins=(WritingPlugin({}),))
    answers = iter((True, False))
    errors: list[refusals.ObjectsError | None] = []

    async def body() -> None:
        store: Any = UnaskedStore()
        binding = binder.Binder(
            store,
            core,
            lambda _, error: errors.append(error),
            lambda: 0.0,
            lanes=1,
            leads=lambda: next(answers),
        )
        binding.submit(decision)
        working = asyncio.ensure_future(binding.run())
        await deadline.comes(lambda: bool(errors))
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    asyncio.run(body())

    assert [type(error) for error in errors] == [refusals.Unavailable]
    assert core.awaits(decision.pod) is False


class LatePlugin(framework.Plugin):
    """A plugin that waits, and refuses when it is asked again; ``meanwhile`` comes in between."""

    asked = 0

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        super().__init__({})
        self._meanwhile = meanwhile

    def preparing(self, pod: Pod, node: str) -> float:
        self.asked += 1
        if self.asked > 1:
            raise framework.RefusedError(f"{pod.name} was promised nothing on {node}")
        loop = asyncio.get_running_loop()
        # The first turn is that of the task that waits, the second comes while it does.
        loop.call_soon(loop.call_soon, self._meanwhile)
        return 0.001


def test_a_decision_that_was_replaced_while_it_waited_does_not_undo_its_successor() -> None:
    """The pod was taken back and found another node before the plugin was asked again."""
    core = Core({NAME: profile.default(NAME)})
    old = nodes.decode(clusters.node("n"))
    core.node(None, old, 0.0)
    core.pod(None, _pod(core), 0.0)
    first = core.step(0.0)
    assert isinstance(first, Bind)
    again: list[object] = []

    def elsewhere() -> None:
        core.unbound(first.pod, 0.0)
        core.node(old, nodes.decode(clusters.node("n", spec={"unschedulable": True})), 0.0)
        core.node(None, nodes.decode(clusters.node("m")), 0.0)
        again.append(core.step(60.0))

    late = LatePlugin(elsewhere)
    errors: list[refusals.ObjectsError | None] = []

    async def body() -> None:
        store: Any = UnaskedStore()
        binding = binder.Binder(store, core, lambda _, error: errors.append(error), lambda: 0.0)
        binding.submit(dataclasses.replace(first, plugins=(late,)))
        working = asyncio.ensure_future(binding.run())
        await deadline.comes(lambda: late.asked > 1)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    asyncio.run(body())

    (second,) = again
    assert isinstance(second, Bind)
    assert (second.node, core.awaits(second.pod), errors) == ("m", True, [])
