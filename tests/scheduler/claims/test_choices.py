"""Partitions and shares: counters of a pool and capacities of a device during one search."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from koordlet.scheduler.claims import allocator
from tests.kit import claim_search as search
from tests.kit import device_claims as kit

Body = dict[str, Any]


def partitions(**slots: str) -> list[Body]:
    """A node with devices that divide four slots."""
    devices = [
        kit.device(name, consumesCounters=kit.consumes(slots=many)) for name, many in slots.items()
    ]
    shared = [{"name": "set", "counters": kit.capacity(slots="4")}]
    return [
        kit.resource_slice(devices, name="d", node="n1", count=2),
        kit.resource_slice(name="c", pool="n1", node="n1", count=2, sharedCounters=shared),
    ]


def shared_device(**fields: Any) -> list[Body]:
    """A node with one device of four that many may have."""
    body = kit.device(
        "g0",
        **{
            "allowMultipleAllocations": True,
            "capacity": {
                "memory": {
                    "value": "4",
                    "requestPolicy": {"default": "1", "validRange": {"min": "1", "step": "1"}},
                }
            },
            **fields,
        },
    )
    return [kit.resource_slice([body], node="n1")]


def asking(memory: str, name: str = "r", **fields: Any) -> Body:
    """A request for a share."""
    return kit.request(name, capacity={"requests": {"memory": memory}}, **fields)


@pytest.mark.parametrize(
    ("count", "held", "devices"),
    [
        (1, (), [["r:whole"]]),
        (2, (), [["r:half", "r:rest"]]),
        (1, ("half",), [["r:rest"]]),
        (1, ("whole",), allocator.NO_SOLUTION),
        (3, (), allocator.NO_SOLUTION),
    ],
)
def test_partitions_are_taken_while_the_counters_of_their_pool_are_enough(
    count: int, held: tuple[str, ...], devices: object
) -> None:
    """The whole and its halves exclude each other; a dead end gives its counters back."""
    slices = partitions(whole="4", half="2", rest="2")
    claim = kit.claim(kit.request(count=count))
    assert search.chosen(slices, claim, held=tuple(map(search.used, held))) == devices


def test_a_partition_that_consumes_nothing_of_an_overdrawn_counter_may_be_taken() -> None:
    """More is allocated than there is: only who needs that counter waits."""
    slices = partitions(first="3", second="3", free="0")
    held = (search.used("first"), search.used("second"))
    free = kit.claim(kit.request())
    assert search.chosen(slices, free, held=held) == allocator.NO_SOLUTION
    slices[0]["spec"]["devices"][2]["consumesCounters"] = []
    assert search.chosen(slices, free, held=held) == [["r:free"]]


@pytest.mark.parametrize(
    ("requests", "held", "devices"),
    [
        ([asking("3")], (), [["r:g0"]]),
        # A share of a device is all that one request has of it.
        ([asking("2", count=2)], (), allocator.NO_SOLUTION),
        ([asking("2500m"), asking("1", "s")], (), [["r:g0", "s:g0"]]),
        ([asking("2500m"), asking("2", "s")], (), allocator.NO_SOLUTION),
        ([asking("3")], ("2",), allocator.NO_SOLUTION),
        ([asking("2")], ("2",), [["r:g0"]]),
        ([kit.request(name) for name in "abcd"], (), [["a:g0", "b:g0", "c:g0", "d:g0"]]),
        ([kit.request(name) for name in "abcde"], (), allocator.NO_SOLUTION),
        ([kit.request(allocationMode="All")], ("3",), [["r:g0"]]),
        ([kit.request(allocationMode="All")], ("4",), allocator.NO_SOLUTION),
    ],
)
def test_shares_of_a_device_are_taken_while_it_is_large_enough(
    requests: list[Body], held: tuple[str, ...], devices: object
) -> None:
    """One request may have several; what is asked is rounded by the policy first."""
    others = tuple(
        search.used("g0", shareID="s", consumedCapacity={"memory": much}) for much in held
    )
    assert search.chosen(shared_device(), kit.claim(*requests), held=others) == devices


def test_a_share_is_written_with_its_identity_and_every_capacity() -> None:
    """Under the name that the driver wrote."""
    made = search.solve(shared_device(), kit.claim(asking("2500m")))
    assert not isinstance(made, str)
    (result,) = made[0].document()["devices"]["results"]
    assert (result["shareID"], result["consumedCapacity"]) == ("share", {"memory": "3"})


def test_a_shared_partition_consumes_its_counters_once() -> None:
    """For its first share; another device of the pool has what is left."""
    slices = partitions(shared="3", other="2", small="1")
    slices[0]["spec"]["devices"][0]["allowMultipleAllocations"] = True
    claim = kit.claim(*map(kit.request, "abc"))
    assert search.chosen(slices, claim) == [["a:shared", "b:shared", "c:shared"]]
    held = (search.used("shared", shareID="s"),)
    two = kit.claim(
        kit.request(count=2), constraints=[{"distinctAttribute": f"{kit.DRIVER}/index"}]
    )
    for number, device in enumerate(slices[0]["spec"]["devices"]):
        device["attributes"] = kit.attributes({"index": number})
    assert search.chosen(slices, two, held=held) == [["r:shared", "r:small"]]


def test_a_device_that_somebody_has_whole_gives_no_shares() -> None:
    """The driver made it shared while a claim had it."""
    claim = kit.claim(asking("1"))
    assert search.chosen(shared_device(), claim, held=(search.used("g0"),)) == allocator.NO_SOLUTION


def test_a_device_that_is_shared_no_more_is_for_nobody_while_somebody_has_a_share() -> None:
    """The driver took that back; the share is still in use."""
    slices = shared_device(allowMultipleAllocations=False)
    held = (search.used("g0", shareID="s", consumedCapacity={"memory": "1"}),)
    assert search.chosen(slices, kit.claim(asking("1")), held=held) == allocator.NO_SOLUTION
    assert search.chosen(slices, kit.claim(asking("1"))) == [["r:g0"]]


def test_admin_access_that_is_undone_leaves_the_device_to_whom_it_was_given() -> None:
    """Another claim of the pod has it; the search goes on and gives it to nobody else."""
    devices = [kit.device(f"g{n}", {"numa": int(n > 0)}) for n in range(4)]
    watching = kit.claim(
        kit.request("r", adminAccess=True),
        kit.request("s"),
        kit.request("t"),
        name="b",
        constraints=[{"requests": ["r", "s"], "matchAttribute": f"{kit.DRIVER}/numa"}],
    )
    made = search.chosen(
        [kit.resource_slice(devices, node="n1")], kit.claim(kit.request(), name="a"), watching
    )
    assert made == [["r:g0"], ["r:g1", "s:g2", "t:g3"]]


def test_admin_access_to_a_shared_device_needs_room_for_its_share() -> None:
    """It gets one with an identity, which counts no more when the claim has it."""
    for amount, watched in (("3", True), ("4", False)):
        others = (search.used("g0", shareID="s", consumedCapacity={"memory": amount}),)
        made = search.solve(shared_device(), kit.claim(kit.request(adminAccess=True)), held=others)
        assert isinstance(made, str) is not watched
        if not isinstance(made, str):
            (result,) = made[0].devices
            assert (result.admin_access, result.consumed) == (True, {"memory": Fraction(1)})
            assert result.share_id
    watching = search.used("g0", shareID="s", consumedCapacity={"memory": "4"}, adminAccess=True)
    assert search.chosen(shared_device(), kit.claim(asking("4")), held=(watching,)) == [["r:g0"]]


@pytest.mark.parametrize(
    ("first", "second", "fits"),
    [(False, False, False), (True, False, False), (False, True, False), (True, True, False)],
)
def test_shares_of_one_search_count_with_admin_access_and_without(
    first: bool, second: bool, fits: bool
) -> None:
    """Two shares of three do not fit into four, whoever has them."""
    requests = asking("3", adminAccess=first), asking("3", "s", adminAccess=second)
    made = search.chosen(shared_device(), kit.claim(*requests))
    assert (made != allocator.NO_SOLUTION) is fits


def test_admin_access_needs_the_counters_of_a_partition() -> None:
    """Also those that the claim which has the partition consumes, and other choices of the pod."""
    slices = partitions(whole="4", half="2")
    watch = kit.request(adminAccess=True, allocationMode="All")
    assert search.chosen(slices, kit.claim(watch)) == allocator.NO_SOLUTION
    watching = kit.claim(kit.request(adminAccess=True))
    assert search.chosen(slices, watching) == [["r:whole"]]
    for name, devices in (("half", [["r:half"]]), ("whole", allocator.NO_SOLUTION)):
        assert search.chosen(slices, watching, held=(search.used(name),)) == devices
    recorded = search.used("whole", adminAccess=True)
    assert search.chosen(slices, kit.claim(kit.request()), held=(recorded,)) == [["r:whole"]]
