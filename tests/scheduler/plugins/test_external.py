"""Plugins of others, node by node: each point is asked, and an error harms its pod only."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from koordlet.model import errors
from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.framework import Failure, Plugin, Rescue, profile
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.loop import configuration
from koordlet.scheduler.objects import nodes
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.plugins import external
from koordlet.scheduler.sim import simulation
from tests.kit import clusters, deadline, schedulers


class Foreign:
    """Has every point, and writes down what it is asked."""

    def __init__(self, args: Mapping[str, Any]) -> None:
        self.asked: list[str] = []
        self.wants = dict(args)

    def _answer(self, point: str) -> Any:
        self.asked.append(point)
        answer = self.wants.get(point)
        if isinstance(answer, list):
            return answer.pop(0) if answer else None
        return answer

    def pre_enqueue(self, _pod: Pod) -> Any:
        """Whether it may be tried."""
        return self._answer("pre_enqueue")

    def reserve(self, _pod: Pod, _node: str) -> Any:
        """A node was chosen."""
        return self._answer("reserve")

    def unreserve(self, _pod: Pod, _node: str) -> Any:
        """It is given back."""
        return self._answer("unreserve")

    def permit(self, _pod: Pod, _node: str) -> Any:
        """Whether it may be bound now."""
        return self._answer("permit")

    async def pre_bind(self, _pod: Pod, _node: str) -> Any:
        """The last preparation."""
        await asyncio.sleep(0)
        if self.wants.get("breaks"):
            del self.wants["breaks"]
            raise ValueError("out of order")
        return self._answer("pre_bind")

    def post_bind(self, _pod: Pod, _node: str) -> Any:
        """It is bound."""
        return self._answer("post_bind")


def adapted(**wants: Any) -> tuple[Plugin, Foreign]:
    """The plugin and the foreign one in it."""
    made = external.adapt("Foreign", Foreign)(wants)
    foreign: Foreign = made.foreign  # type: ignore[attr-defined]
    return made, foreign


def run(ram: Path, plugin: Plugin, foreign: Foreign, *, told: str = "") -> None:
    """One pod and one node, with the plugin in the profile; the pod is bound in the end."""
    usual = profile.default(schedulers.NAME)
    mine = profile.Profile(
        usual.name, (*usual.plugins, plugin), usual.filters, usual.scores, preempts=False
    )

    async def body() -> None:
        async with schedulers.world(ram, over_http=False) as world:
            await world.node("n")
            await world.pod("p")
            async with schedulers.scheduler(world.client, profiles={schedulers.NAME: mine}):
                if told:
                    await world.until_told("p", told)
                assert await world.until_placed("p") == {"p": "n"}
                await deadline.comes(lambda: "post_bind" in foreign.asked)

    schedulers.run(body())


def test_each_point_in_its_order(ram: Path) -> None:
    """From the queue to the node."""
    plugin, foreign = adapted()
    run(ram, plugin, foreign)
    assert foreign.asked == ["pre_enqueue", "reserve", "permit", "pre_bind", "post_bind"]


def test_consent_is_waited_for(ram: Path) -> None:
    """A number means: ask again after so many seconds."""
    plugin, foreign = adapted(permit=[0.01, 0.01, 0])
    run(ram, plugin, foreign)
    assert foreign.asked.count("permit") == 3
    assert "unreserve" not in foreign.asked


@pytest.mark.parametrize("point", ["reserve", "permit"])
def test_a_refusal_gives_everything_back(ram: Path, point: str) -> None:
    """The condition has the reason; what wakes it is anything, so here its backoff."""
    plugin, foreign = adapted(**{point: ["not today"]})
    run_with_news(ram, plugin, "not today")
    assert "unreserve" in foreign.asked


def run_with_news(ram: Path, plugin: Plugin, told: str) -> None:
    """As ``run``; a second node comes when the pod was refused."""
    usual = profile.default(schedulers.NAME)
    mine = profile.Profile(
        usual.name, (*usual.plugins, plugin), usual.filters, usual.scores, preempts=False
    )

    async def body() -> None:
        async with schedulers.world(ram, over_http=False) as world:
            await world.node("n")
            await world.pod("p")
            async with schedulers.scheduler(world.client, profiles={schedulers.NAME: mine}):
                await world.until_told("p", told)
                await world.node("m")
                await world.until_placed("p")

    schedulers.run(body())


def test_one_that_breaks_before_the_binding(ram: Path) -> None:
    """It is told, the pod's place is given back, and the pod is tried anew."""
    plugin, foreign = adapted(breaks=True)
    run(ram, plugin, foreign, told="plugin Foreign failed: out of order")
    assert foreign.asked.count("reserve") == 2
    assert foreign.asked[-1] == "post_bind"


def test_points_that_are_missing_are_not_asked() -> None:
    """A plugin takes part where it has something to say."""

    class Small:
        def __init__(self, _args: Mapping[str, Any]) -> None: ...

        def filter(self, _sort: Any, _node: Any) -> str:
            return ""

    made = external.adapt("Small", Small)
    assert made.reserve is Plugin.reserve
    assert made.pre_enqueue is Plugin.pre_enqueue
    assert made.filter is not Plugin.filter


class Sorting:
    """Orders by name, backwards, and says something about who finds no node."""

    def __init__(self, _args: Mapping[str, Any]) -> None:
        self.refused: list[tuple[str, Any]] = []

    def less(self, pod: Pod, other: Pod) -> bool:
        """The later name first."""
        return pod.name > other.name

    def post_filter(self, pod: Pod, reasons: Any) -> Any:
        """What was said, by node."""
        self.refused.append((pod.name, reasons))
        return "no luck, says the other"


def sorted_profile(plugin: Plugin) -> profile.Profile:
    """The default one with another order of the queue."""
    usual = profile.default()
    return dataclasses.replace(
        usual, plugins=(*usual.plugins, plugin), preempts=False, sorter=plugin
    )


def test_the_queue_in_anothers_order_and_a_last_word() -> None:
    """``less`` decides who is first; ``post_filter`` speaks after the nodes."""
    plugin = external.adapt("Sorting", Sorting)({})
    mine = configuration.Configuration({"default-scheduler": sorted_profile(plugin)})
    several = [clusters.pod(name, cpu="2") for name in ("a", "b", "c")]
    loaded = inventory.load([clusters.node("n"), *several])
    outcome = simulation.Simulation(loaded, mine).run().document()

    assert [placement["pod"] for placement in outcome["placements"]] == ["d/c", "d/b"]
    [refused] = outcome["pending"]
    assert refused["message"] == (
        "0/1 nodes are available: 1 Insufficient cpu."
        " no new claims to deallocate, no luck, says the other"
    )
    assert plugin.foreign.refused == [("a", {"n": ("Insufficient cpu",)})]  # type: ignore[attr-defined]


def test_a_node_where_room_was_made() -> None:
    """A named node is tried next, and nobody is preempted for it."""
    made = external.adapt(
        "Making",
        type(
            "Making",
            (),
            {
                "__init__": lambda self, args: None,
                "post_filter": lambda self, pod, reasons: ("made room", "n"),
            },
        ),
    )({})
    mine = dataclasses.replace(profile.default(), plugins=(made,))
    columns = Columns()
    columns.put(nodes.decode(clusters.node("n")))
    pod = Decoder({}).decode(clusters.pod("p"), 0)

    assert Cycle(columns, mine).rescue(pod, Failure("no", {})) == Rescue("made room", "n")


def test_one_order_for_all() -> None:
    """There is one queue: a plugin that does not order is refused, and so are two orders."""
    for sets in ({"enabled": [{"name": "NodeName"}]}, {"enabled": [{"name": "PrioritySort"}] * 2}):
        body = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"queueSort": sets}}],
        }
        with pytest.raises(errors.ConfigError, match="queueSort: exactly one plugin that orders"):
            configuration.read(body, "test")
