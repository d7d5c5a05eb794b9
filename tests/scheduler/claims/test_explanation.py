"""Why a node has no solution: which request is short, and which rule keeps it off devices."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.claims import demand, devices_in_use, explanation, pools
from koordlet.scheduler.objects import device_classes, resource_claims, resource_slices
from tests.kit import claim_search as search
from tests.kit import device_claims as kit
from tests.kit.device_claims import held

Body = dict[str, Any]
TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}
DEVICES = [
    kit.device("a"),
    kit.device("b", {"kind": "nic"}),
    kit.device("c", taints=[TAINT]),
    kit.device("d", consumesCounters=kit.consumes(slots="5")),
    kit.device("e", {"numa": 0}, capacity=kit.capacity(memory="1")),
    kit.device("f", {"numa": 1}, capacity=kit.capacity(memory="2")),
]
NODE = [
    kit.resource_slice(DEVICES, name="d", node="n1", pool="p", count=2),
    kit.resource_slice(
        name="c",
        node="n1",
        pool="p",
        count=2,
        sharedCounters=[{"name": "set", "counters": kit.capacity(slots="4")}],
    ),
]
MEMORY = {"requests": {"memory": "2"}}


def lines(*claims: Body, slices: list[Body] | None = None) -> list[str]:
    """For a node where device a is in use."""
    book, in_use = pools.PoolBook(), devices_in_use.DevicesInUse()
    for piece in NODE if slices is None else slices:
        book.put(resource_slices.decode(piece))
    in_use.add(held("a"))
    classes = {body["metadata"]["name"]: device_classes.decode(body) for body in CLASSES}
    wanted = demand.prepare(list(map(resource_claims.decode, claims)), classes, search.Kind)
    return explanation.lines(wanted, book.view("n1", {}), in_use, search.ENDLESS)


CLASSES = (search.GPU, search.NIC)


@pytest.mark.parametrize(
    ("request_of_claim", "line"),
    [
        (
            kit.request(count=3),
            (
                "claim d/c, request r: asks for 3, 2 of 6 devices usable,"
                " 1 in use, 1 not selected, 1 short of counters, 1 tainted"
            ),
        ),
        (
            kit.request(count=2, capacity=MEMORY),
            (
                "claim d/c, request r: asks for 2, 1 of 6 devices usable,"
                " 1 in use, 1 not selected, 1 short of capacity, 1 short of counters, 1 tainted"
            ),
        ),
        (
            kit.request(device_class="nic", count=2),
            ("claim d/c, request r: asks for 2, 1 of 6 devices usable, 5 not selected"),
        ),
        (
            kit.request(allocationMode="All"),
            (
                "claim d/c, request r: asks for all, 2 of 6 devices usable,"
                " 1 in use, 1 not selected, 1 short of counters, 1 tainted"
            ),
        ),
        (kit.request("r", "bad"), "claim d/c: selector #0: CEL runtime error: no such key: bad"),
    ],
)
def test_a_request_that_is_short_is_told_with_what_keeps_it_off_devices(
    request_of_claim: Body, line: str
) -> None:
    """What a request does not select first: nobody's leaving would make it usable."""
    assert lines(kit.claim(request_of_claim)) == [line]


def test_a_request_with_wishes_is_short_where_all_of_them_are() -> None:
    """Each wish has its line."""
    short = kit.wish("x", count=3), kit.wish("y", count=4)
    short_lines = lines(kit.claim(kit.first_available("r", *short)))
    assert [line.partition(",")[0] for line in short_lines] == ["claim d/c"] * 2
    assert ["r/x" in short_lines[0], "r/y" in short_lines[1]] == [True, True]
    claim = kit.claim(kit.first_available("r", *short, kit.wish("z")), kit.request("s", count=9))
    assert ["request s" in line for line in lines(claim)] == [True]


def test_requests_that_could_be_served_alone_compete_or_disagree() -> None:
    """Constraints are named, because they may be the reason."""
    claim = kit.claim(kit.request(count=2), constraints=[{"matchAttribute": f"{kit.DRIVER}/numa"}])
    together = "claims d/c: each request could be served alone, but not together"
    apart = "claim d/c, request r: asks for 2, but no devices or shares have room together"
    assert lines(claim) == [f"{apart} or agree on gpu.example/numa"]
    assert lines(kit.claim(kit.request(count=2), kit.request("s"))) == [together]


def test_pools_whose_devices_do_not_count_are_told_first() -> None:
    """With the reason where there is one."""
    twice = "gpu.example/twice is invalid (duplicate device name a)"
    slices = [
        kit.resource_slice(["a", "a"], node="n1", pool="twice"),
        kit.resource_slice(["a"], node="n1", pool="part", count=2),
    ]
    assert lines(kit.claim(kit.request()), slices=slices) == [
        "resource pool gpu.example/part is being updated: its devices do not count",
        f"resource pool {twice}: its devices do not count",
        "claim d/c, request r: asks for 1, 0 of 0 devices usable",
    ]
