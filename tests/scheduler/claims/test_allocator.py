"""The search on one node: kube-scheduler's tables of its allocator, as facts."""

from __future__ import annotations

import itertools
import re

import pytest

from koordlet.scheduler.claims import allocator, demand, search_time
from tests.kit import device_claims as kit
from tests.kit.claim_search import GPU, Body, chosen, gpus, solve, used

SIZES = [
    kit.resource_slice(
        [
            kit.device("large", capacity=kit.capacity(memory="2")),
            kit.device("small", capacity=kit.capacity(memory="1")),
        ],
        node="n1",
    )
]


@pytest.mark.parametrize(
    ("requests", "devices"),
    [
        ([kit.request("r")], ["r:large"]),
        ([kit.request("r", "memory>0"), kit.request("s", "memory>1")], ["r:small", "s:large"]),
        ([kit.request("r", count=2)], ["r:large", "r:small"]),
        ([kit.request("r", count=3)], None),
        ([kit.request("r"), kit.request("s", count=2)], None),
        ([kit.request("r", allocationMode="All")], ["r:large", "r:small"]),
        ([kit.request("r", device_class="nic", allocationMode="All")], None),
        ([kit.request("r"), kit.request("s", allocationMode="All")], None),
    ],
)
def test_devices_are_chosen_in_their_order_and_choices_are_undone(
    requests: list[Body], devices: list[str] | None
) -> None:
    """A small request gives the large device back that another one needs."""
    assert chosen(SIZES, kit.claim(*requests)) == ([devices] if devices else allocator.NO_SOLUTION)


def test_claims_of_a_pod_share_what_there_is_and_undo_each_other() -> None:
    """The second claim needs what the first one has taken."""
    claims = [
        kit.claim(kit.request("r", "memory>0"), name="a"),
        kit.claim(kit.request("r", "memory>1"), name="b"),
    ]
    assert chosen(SIZES, *claims) == [["r:small"], ["r:large"]]


@pytest.mark.parametrize(
    ("wishes", "held", "devices"),
    [
        ((kit.wish("x", count=3), kit.wish("y")), (), ["r/y:g0"]),
        ((kit.wish("x", allocationMode="All"), kit.wish("y")), (), ["r/x:g0", "r/x:g1"]),
        ((kit.wish("x", allocationMode="All"), kit.wish("y")), (used("g0"),), ["r/y:g1"]),
        ((kit.wish("x", device_class="nic"), kit.wish("y", count=2)), (), ["r/y:g0", "r/y:g1"]),
        ((kit.wish("x", device_class="nic"), kit.wish("y", count=3)), (), None),
        ((kit.wish("x", count=33), kit.wish("y")), (), ["r/y:g0"]),
    ],
)
def test_the_first_wish_that_leads_to_a_solution_is_taken(
    wishes: tuple[Body, ...], held: tuple[Body, ...], devices: list[str] | None
) -> None:
    """One that can never fit a claim's status is passed over."""
    claim = kit.claim(kit.first_available("r", *wishes))
    assert chosen(gpus(2), claim, held=held) == ([devices] if devices else allocator.NO_SOLUTION)


def test_a_later_request_sends_an_earlier_one_to_its_next_wish() -> None:
    """Both wishes are good alone; the first leaves nothing for the other request."""
    wishes = kit.first_available("r", kit.wish("x", count=2), kit.wish("y"))
    assert chosen(gpus(2), kit.claim(wishes, kit.request("s"))) == [["r/y:g0", "s:g1"]]


@pytest.mark.parametrize(
    ("requests", "held", "devices"),
    [
        ([kit.request("r", adminAccess=True)], (used("g0"),), [["r:g0"]]),
        ([kit.request("r", adminAccess=True, count=2)], (used("g0"),), [["r:g0", "r:g1"]]),
        (
            [kit.request("r", adminAccess=True, allocationMode="All")],
            (used("g0"),),
            [["r:g0", "r:g1"]],
        ),
        (
            [
                kit.request("r", adminAccess=True),
                kit.request("s", adminAccess=True, allocationMode="All"),
            ],
            (),
            allocator.NO_SOLUTION,
        ),
        ([kit.request("r")], (used("g0", adminAccess=True),), [["r:g0"]]),
    ],
)
def test_admin_access_takes_what_others_have_and_marks_nothing(
    requests: list[Body], held: tuple[Body, ...], devices: object
) -> None:
    """But one claim has no device twice."""
    assert chosen(gpus(2), kit.claim(*requests), held=held) == devices


def test_admin_access_of_one_claim_takes_what_another_claim_of_the_pod_takes() -> None:
    """Either way, and two of them may watch one device."""
    plain, admin = kit.request("r"), kit.request("r", adminAccess=True)
    claims = [kit.claim(plain, name="a"), kit.claim(admin, name="b"), kit.claim(admin, name="c")]
    assert chosen(gpus(2), *claims) == [["r:g0"], ["r:g0"], ["r:g0"]]


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (
            kit.claim(kit.request(device_class="none")),
            "claim d/c, request r: could not retrieve device class none",
        ),
        (
            kit.claim(kit.request(device_class="")),
            "claim d/c, request r: missing device class name (unsupported request type?)",
        ),
        (
            kit.claim(kit.request(selectors=[{}])),
            "claim d/c, request r, selector #0: CEL expression empty (unsupported selector type?)",
        ),
        (
            kit.claim(kit.request(), constraints=[{}]),
            "claim d/c, constraint #0: empty constraint (unsupported constraint type?)",
        ),
        (
            kit.claim(kit.request(allocationMode="Some")),
            "claim d/c, request r: unsupported count mode Some",
        ),
        (
            kit.claim(kit.request(count=32), kit.request("s")),
            "claim d/c: number of requested devices 33 exceeds the claim limit of 32",
        ),
        (
            kit.claim(kit.request("r", "gpu", "bad")),
            "claim d/c: selector #1: CEL runtime error: no such key: bad",
        ),
        (
            kit.claim(kit.request("r", "uncompiled")),
            "claim d/c: selector #0: CEL compile error: undeclared reference to 'uncompiled'",
        ),
        (
            kit.claim(kit.request(device_class="broken")),
            "class broken: selector #0: CEL runtime error: no such key: bad",
        ),
        (
            kit.claim(
                kit.request(allocationMode="All"),
                constraints=[{"matchAttribute": f"{kit.DRIVER}/index"}],
            ),
            "cannot add device gpu.example/n1/g1 because a claim constraint would not be satisfied",
        ),
    ],
)
def test_what_no_node_can_serve_ends_the_attempt_with_its_reason(claim: Body, message: str) -> None:
    """The words of kube-scheduler, with the place in the claim or the class."""
    slices = [kit.resource_slice([kit.device(f"g{n}", {"index": n}) for n in range(2)], node="n1")]
    classes = (GPU, kit.device_class("broken", "bad"))
    with pytest.raises(demand.AllocationError, match=f"{re.escape(message)}$"):
        solve(slices, claim, classes=classes)


def test_a_selector_is_not_asked_of_a_device_that_is_in_use() -> None:
    """An expression that fails costs nobody who has no device to ask it of."""
    claim = kit.claim(kit.request("r", "bad"))
    assert chosen(gpus(1), claim, held=(used("g0"),)) == allocator.NO_SOLUTION


def seconds(most: float) -> search_time.SearchTime:
    """Each look at the clock takes a second."""
    return search_time.SearchTime(itertools.count().__next__, most)


def test_a_search_that_never_ends_is_given_up_with_an_error() -> None:
    """Pairs of attributes that never agree, and no two devices alike."""
    devices = [kit.device(f"g{n}", {"index": n}) for n in range(40)]
    claim = kit.claim(
        kit.request(count=8),
        kit.request("s", "memory>0"),
        constraints=[{"distinctAttribute": f"{kit.DRIVER}/index"}],
    )
    for device in devices:
        device["capacity"] = kit.capacity(memory="0")
    message = "the search for devices was given up after 200 s: "
    with pytest.raises(demand.AllocationError, match=f"^{message}"):
        solve([kit.resource_slice(devices, node="n1")], claim, time=seconds(200))


def test_equal_devices_are_tried_once() -> None:
    """Of 32 equal ones each half is as good as any other: a few thousand devices, not 10^8."""
    claim = kit.claim(kit.request(count=16), kit.request("s", device_class="nic"))
    assert chosen(gpus(32), claim, time=seconds(200)) == allocator.NO_SOLUTION


def test_an_invalid_pool_matters_where_nothing_else_is_enough() -> None:
    """Devices come from the sound pool; without one the reason is the invalid one."""
    twice = kit.resource_slice(["g0", "g0"], node="n1", pool="twice")
    assert chosen([*gpus(1), twice], kit.claim(kit.request())) == [["r:g0"]]
    assert chosen([twice], kit.claim(kit.request())) == allocator.INVALID_POOLS
    for piece, what in (
        (twice, "twice is currently invalid"),
        (
            kit.resource_slice(["g0"], node="n1", pool="partial", count=2),
            "partial is currently being updated",
        ),
    ):
        claim = kit.claim(kit.request(allocationMode="All"))
        with pytest.raises(
            demand.AllocationError,
            match=f"asks for all devices, but resource pool gpu.example/{what}",
        ):
            solve([*gpus(1), piece], claim)


def test_a_pod_without_requests_needs_nothing() -> None:
    """A claim may be empty."""
    assert chosen([], kit.claim()) == [[]]
