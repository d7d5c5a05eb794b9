"""What is kept between pods equals what is computed anew, whatever happened meanwhile."""

from __future__ import annotations

import dataclasses
import random
import tracemalloc

import pytest

from koordlet.scheduler import framework
from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.framework import profile
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.framework.view import View
from koordlet.scheduler.objects import nodes
from koordlet.scheduler.objects.pods import PodClass
from tests.kit import clusters, random_life
from tests.kit.clusters import HOST, Body, affinity, node, pod, spread

WEB = {"app": "web"}


def _sorts() -> list[Body]:
    """One pod of each interesting class."""
    return [
        pod("plain", cpu="500m"),
        pod("port", container={"ports": [{"hostPort": 80}]}),
        pod("hard", labels=WEB, topologySpreadConstraints=[spread("zone", maxSkew=2)]),
        pod("soft", labels=WEB, topologySpreadConstraints=[spread("zone", "ScheduleAnyway")]),
        pod("far", labels=WEB, affinity=affinity("podAntiAffinity", HOST)),
        pod("near", affinity=affinity("podAffinity", "zone")),
        pod("likes", affinity=affinity("podAffinity", HOST, weight=7)),
        pod("dislikes", affinity=affinity("podAntiAffinity", "zone", weight=3)),
    ]


@pytest.mark.parametrize("seed", range(4))
def test_incremental_equals_anew(seed: int) -> None:
    """After each of 60 random arrivals, departures and changes of nodes, for every class."""
    made = [node(f"n{i}", labels={"zone": f"z{i % 3}"}) for i in range(24)]
    for kept, pending in random_life.live(random.Random(seed), made, _sorts(), 60):
        fresh = Cycle(kept.columns, profile.default())
        for each in pending:
            mine, anew = kept.view(each.pod_class).scored(), fresh.view(each.pod_class).scored()
            assert mine.rows.tolist() == anew.rows.tolist()
            assert mine.totals.tolist() == anew.totals.tolist()
            assert kept.choose(each) == fresh.choose(each)


def test_a_view_keeps_few_bytes_a_node() -> None:
    """A thousand classes of 15 000 nodes are a third of the scheduler's memory."""
    count, most = 2048, 24
    image = [{"names": ["app:1"], "sizeBytes": 500 << 20}]
    made = [node(f"n{i}", images=image if i % 2 else []) for i in range(count)]
    loaded = inventory.load([*made, pod("first", cpu="1"), pod("second", cpu="2")])
    first, second = (each.pod_class for each in loaded.pending)
    cycle = Cycle(loaded.columns, profile.default())
    cycle.view(first)
    tracemalloc.start()
    try:
        scored = cycle.view(second).scored()
        size = tracemalloc.get_traced_memory()[0] - scored.rows.nbytes - scored.totals.nbytes
    finally:
        tracemalloc.stop()

    assert set(scored.rows[scored.totals == scored.totals.max()] % 2) == {1}
    assert size < most * count


def test_who_asks_for_filters_alone_brings_no_view_up_to_date(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They look at the columns as they are; other nodes have other filters."""
    loaded = inventory.load([node("a", cpu="4"), pod("o", on="a", cpu="3"), pod("p", cpu="2")])
    (pending,), columns = loaded.pending, loaded.columns
    cycle = Cycle(columns, profile.default())
    known = cycle.view(pending.pod_class)
    columns.remove(columns.pods[0]["d/o"])
    caught_up: list[View] = []

    def refresh(view: View) -> None:
        caught_up.append(view)

    monkeypatch.setattr(View, "refresh", refresh)

    view = cycle.filtering(pending.pod_class)
    assert (view, caught_up) == (known, [])
    assert view.passes(0)
    columns.put(nodes.decode(node("b")))
    assert (cycle.filtering(pending.pod_class), caught_up) == (known, [known])


def test_a_node_that_goes_takes_its_pods_along() -> None:
    """Nothing of it is counted any more, and it is not chosen."""
    loaded = inventory.load([node("a"), node("b"), pod("o", on="a", cpu="1"), pod("p")])
    columns = loaded.columns

    assert [guest.key for guest in columns.drop("a")] == ["d/o"]
    assert not columns.requested.any()
    assert columns.rows["b"] == Cycle(columns, profile.default()).choose(loaded.pending[0])


def test_totals_are_in_the_message_once() -> None:
    """Every node has exactly one first refusal."""
    message = clusters.message("p", *(node(f"n{i}", cpu="1") for i in range(12)), pod("p", cpu="2"))

    assert message == "0/12 nodes are available: 12 Insufficient cpu."


class _Only(framework.Plugin):
    """Names the nodes of its argument."""

    def names(self, pod_class: PodClass) -> frozenset[str]:  # noqa: ARG002
        """All of them."""
        return frozenset(self.args["names"])


class _First(_Only):
    name = "X"


class _Second(_Only):
    name = "Y"


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ("ab", "c", "node(s) didn't satisfy plugin(s) [X Y] simultaneously"),
        ("", "c", "node(s) didn't satisfy plugin X"),
        ("ab", "b", "1 node(s) didn't satisfy plugin(s) [X Y]"),
    ],
)
def test_names_of_several_plugins(first: str, second: str, told: str) -> None:
    """Names are intersected as names, whether or not such nodes exist."""
    plugins = [_First({"names": first}), _Second({"names": second})]
    loaded = inventory.load([node("a"), pod("p")])
    narrow = dataclasses.replace(profile.default(), filters=tuple(plugins))

    cycle = Cycle(loaded.columns, narrow)
    assert cycle.choose(loaded.pending[0]) < 0
    assert f"0/1 nodes are available: {told}." == cycle.failure(loaded.pending[0]).message
