"""Pools: which slices a node sees, whether they are a whole, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.claims import pools
from koordlet.scheduler.objects import resource_slices
from tests.kit import device_claims as kit

Body = dict[str, Any]
COUNTERS = [{"name": "set", "counters": kit.capacity(slots="4")}]


def book_of(*slices: Body) -> pools.PoolBook:
    """All slices of a cluster."""
    book = pools.PoolBook()
    for piece in slices:
        book.put(resource_slices.decode(piece))
    return book


def names(view: pools.NodePools) -> list[str]:
    """The devices of a node."""
    return ["/".join(device.id[1:]) for device in view.devices]


def states(view: pools.NodePools) -> dict[str, str]:
    """The pools of a node, and why they are invalid."""
    return {pool.key[1]: pool.reason or pool.state.value for pool in view.pools}


def test_devices_come_by_driver_pool_and_slice_and_late_where_binding_waits() -> None:
    """Devices keep the order of their slice."""
    book = book_of(
        kit.resource_slice(["b", "a"], name="s2", pool="p", node="n1", count=2),
        kit.resource_slice(["z"], name="s1", pool="p", node="n1", count=2),
        kit.resource_slice(["d"], driver="a.example", pool="q", node="n1"),
        kit.resource_slice([kit.device("c", bindingConditions=["A"])], pool="b", allNodes=True),
    )
    assert names(book.view("n1", {})) == ["q/d", "p/z", "p/b", "p/a", "b/c"]


def test_a_node_sees_devices_that_name_it_one_by_one() -> None:
    """``perDeviceNodeSelection``: the slice is relevant with the first of them."""
    devices = [kit.device("a", nodeName="n1"), kit.device("b", nodeName="n2")]
    book = book_of(
        kit.resource_slice([*devices, kit.device("c", allNodes=True)], perDeviceNodeSelection=True)
    )
    views = {node: names(book.view(node, {})) for node in ("n1", "n2", "n3")}
    assert views == {"n1": ["pool/a", "pool/c"], "n2": ["pool/b", "pool/c"], "n3": ["pool/c"]}


def test_labels_of_a_node_decide_and_a_change_of_them_is_seen() -> None:
    """A view is kept for as long as the labels are equal."""
    want = {"key": "zone", "operator": "In", "values": ["a"]}
    selector = {"nodeSelectorTerms": [{"matchExpressions": [want]}]}
    book = book_of(kit.resource_slice(["a"], nodeSelector=selector))
    assert [names(book.view("n1", {"zone": zone})) for zone in "aba"] == [
        ["pool/a"],
        [],
        ["pool/a"],
    ]


@pytest.mark.parametrize(
    ("slices", "state"),
    [
        ([kit.resource_slice(["a"], node="n1", pool="p")], "sound"),
        ([kit.resource_slice(["a"], node="n1", pool="p", count=2)], "being updated"),
        # Its other slice is for another node.
        (
            [
                kit.resource_slice(["a"], name="s1", node="n1", pool="p", count=2),
                kit.resource_slice(["b"], name="s2", node="n2", pool="p", count=2),
            ],
            "sound",
        ),
        # A newer generation of which this node has nothing, and one of which it has a part.
        (
            [
                kit.resource_slice(["a"], name="s1", node="n1", pool="p", count=2),
                kit.resource_slice(["b"], name="s2", node="n2", pool="p", generation=2),
            ],
            None,
        ),
        (
            [
                kit.resource_slice(["a"], name="s1", node="n1", pool="p"),
                kit.resource_slice(["b"], name="s2", node="n2", pool="p", generation=2),
            ],
            "sound",
        ),
        (
            [
                kit.resource_slice(["a"], name="s1", node="n1", pool="p", count=2),
                kit.resource_slice(["b"], name="s2", node="n1", pool="p", count=2, generation=2),
            ],
            "being updated",
        ),
        (
            [
                kit.resource_slice(["a"], name="s1", node="n1", pool="p", count=2),
                kit.resource_slice(["a"], name="s2", node="n1", pool="p", count=2),
            ],
            "duplicate device name a",
        ),
        (
            [
                kit.resource_slice(
                    name=f"s{n}", node="n1", pool="p", count=2, sharedCounters=COUNTERS
                )
                for n in range(2)
            ],
            "duplicate counter set name set",
        ),
        (
            [
                kit.resource_slice(
                    [kit.device("a", consumesCounters=kit.consumes("set", slots="1"))],
                    node="n1",
                    pool="p",
                )
            ],
            "counter set set not found",
        ),
        (
            [
                kit.resource_slice(
                    [kit.device("a", consumesCounters=kit.consumes("set"))], node="n1", pool="p"
                )
            ],
            "counter set set not found",
        ),
        (
            [
                kit.resource_slice(
                    [kit.device("a", consumesCounters=kit.consumes("set", engines="1"))],
                    name="s1",
                    node="n1",
                    pool="p",
                    count=2,
                ),
                kit.resource_slice(
                    name="s2", node="n1", pool="p", count=2, sharedCounters=COUNTERS
                ),
            ],
            "counter engines not found in counter set set",
        ),
    ],
)
def test_a_pool_that_is_not_whole_or_contradicts_itself_gives_no_devices(
    slices: list[Body], state: str | None
) -> None:
    """It is known by name, so that requests for all devices fail."""
    view = book_of(*slices).view("n1", {})
    assert states(view) == ({} if state is None else {"p": state})
    assert bool(view.devices) is (state == "sound")


def test_counters_that_are_no_good_are_seen_by_every_node() -> None:
    """As are all slices with counters; where they are good they say nothing to other nodes."""
    good = kit.resource_slice(name="s2", node="n2", pool="p", sharedCounters=COUNTERS)
    book = book_of(good)
    assert states(book.view("n1", {})) == {}
    good["spec"]["pool"]["resourceSliceCount"] = 2
    book.put(resource_slices.decode(good))
    assert states(book.view("n1", {})) == {"p": "being updated"}


def test_a_view_is_kept_until_a_slice_of_the_node_changes() -> None:
    """Slices of other nodes change nothing; a slice that is gone is gone."""
    book = book_of(*(kit.resource_slice(["a"], node=node) for node in ("n1", "n2")))
    before = book.view("n1", {})
    book.put(resource_slices.decode(kit.resource_slice(["b"], node="n2")))
    assert book.view("n1", {}) is before
    assert names(book.view("n2", {})) == ["n2/b"]
    book.put(resource_slices.decode(kit.resource_slice(["c"], name="wide", allNodes=True)))
    assert names(book.view("n1", {})) == ["n1/a", "pool/c"]
    book.drop("wide")
    book.drop("wide")
    book.drop(f"{kit.DRIVER}-n1-1")
    assert names(book.view("n1", {})) == []
    book.forget("n1")
    assert names(book.view("n2", {})) == ["n2/b"]


def test_a_slice_that_moves_to_another_pool_or_node_leaves_the_old_one() -> None:
    """The name stays, everything else may change."""
    book = book_of(kit.resource_slice(["a"], name="s", node="n1"))
    assert names(book.view("n1", {})) == ["n1/a"]
    book.put(resource_slices.decode(kit.resource_slice(["a"], name="s", node="n2")))
    assert (names(book.view("n1", {})), names(book.view("n2", {}))) == ([], ["n2/a"])


def test_nodes_that_see_the_same_slices_share_pools_and_where_they_can_the_view() -> None:
    """A pool of the whole network is made once, however many nodes reach its devices."""
    book = book_of(
        kit.resource_slice(["a"], name="wide", allNodes=True), kit.resource_slice(["b"], node="n3")
    )
    first, second, third = (book.view(f"n{n}", {}) for n in (1, 2, 3))
    assert first is second
    assert first.pools[0] is third.pools[1]
    assert names(third) == ["n3/b", "pool/a"]
    book.put(resource_slices.decode(kit.resource_slice(["c"], name="wide", allNodes=True)))
    assert names(book.view("n2", {})) == ["pool/c"]


def test_nothing_is_kept_of_a_node_whose_slices_are_gone() -> None:
    """Nodes come and go under ever new names."""
    book = book_of(kit.resource_slice(["a"], name="s", node="n1"))
    assert names(book.view("n1", {})) == ["n1/a"]
    book.drop("s")
    book.forget("n1")

    assert (book._local, book._views) == ({}, {})
