"""The walk over the devices of one type, and the order of the trials for GPUs."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.allocation import gpu_partitions, gpu_topology
from koordlet.scheduler.allocation.device_pool import (
    DevicePool,
    GPURules,
    NearbySwitches,
    PooledDevice,
)
from koordlet.scheduler.allocation.device_requests import DeviceRequest
from koordlet.scheduler.allocation.device_room import Candidate, DeviceRefusal
from koordlet.scheduler.allocation.devices import CORE, RATIO, Device, DevicePosition

WHOLE = {CORE: 100, RATIO: 100}
#: Eight of one type on four switches.
SWITCHES = {minor: str(minor // 2) for minor in range(8)}


def pool(
    count: int,
    scores: dict[int, int] | None = None,
    *,
    switches: dict[int, str] | None = None,
    preferred: frozenset[int] = frozenset(),
    broken: bool = False,
) -> DevicePool:
    """Free devices of one type."""
    places = SWITCHES if switches is None else switches
    devices = [
        Device("gpu", minor, "", True, WHOLE, position=DevicePosition(0, switch))  # noqa: FBT003 -- its health
        for minor, switch in places.items()
    ]
    several = [
        PooledDevice(Candidate(device, WHOLE, {RATIO: 100 + (scores or {}).get(device.minor, 50)}))
        for device in devices
    ]
    return DevicePool(
        request=DeviceRequest("gpu", count, WHOLE),
        several=tuple(several),
        used=frozenset(),
        preferred=preferred,
        eligible=() if broken else (*devices, *devices),
    )


def chosen(choice: Any) -> Any:
    """The minors in their order, or the reason."""
    if isinstance(choice, DeviceRefusal):
        return choice.reasons[0]
    return [part.minor for part in choice]


def test_the_walk_takes_what_is_kept_then_the_best_then_the_lowest() -> None:
    """Each rule decides where those before do not."""
    assert chosen(pool(2).walk()) == [0, 1]
    assert chosen(pool(2, {5: 90, 3: 90}).walk()) == [3, 5]
    assert chosen(pool(2, {5: 90}, preferred=frozenset({7})).walk()) == [7, 5]


@pytest.mark.parametrize(
    ("count", "near", "minors"),
    [
        (1, NearbySwitches(frozenset("3")), [6]),
        (1, NearbySwitches(frozenset("13")), [2, 6]),
        (3, NearbySwitches(frozenset("13")), [2, 6, 3]),
        (5, NearbySwitches(frozenset("3")), [6, 7, 0, 1, 2]),
        (1, NearbySwitches(frozenset("39")), [6, 7]),
        (1, NearbySwitches(frozenset("39"), same=True), [6, 7]),
    ],
)
def test_switches_of_other_types_come_in_turn(
    count: int, near: NearbySwitches, minors: list[int]
) -> None:
    """One of each, however many were asked for; then the others."""
    assert chosen(pool(count).walk(near)) == minors


def test_as_many_as_switches_are_needed_only_where_all_must_be_there() -> None:
    """Two devices for three switches are enough for who only prefers."""
    three, few = frozenset("012"), {0: "0", 2: "1"}
    assert chosen(pool(1, switches=few).walk(NearbySwitches(three))) == [0, 2]
    refusal = pool(1, switches=few).walk(NearbySwitches(three, same=True))
    assert refusal == DeviceRefusal(("Insufficient gpu devices",), final=False)


def test_what_an_empty_node_lacks_no_pod_gives_back() -> None:
    """The refusal is final then."""
    refusal = pool(9, broken=True).walk()
    assert refusal == DeviceRefusal(("Insufficient gpu devices",), final=True)


def test_gpus_come_as_a_group_then_by_tree_then_by_themselves() -> None:
    """Each trial has no opinion where it knows nothing."""
    table = gpu_partitions.read('{"2": [{"minors": [3, 6]}]}')
    assert chosen(pool(2).gpus(GPURules(table=table))) == [3, 6]
    assert chosen(pool(1).gpus(GPURules(table=table))) == [0]
    tree = gpu_topology.tree([(n, 0, SWITCHES[n]) for n in range(2, 8)])
    assert chosen(pool(2, {7: 90}).gpus(GPURules(tree=tree))) == [2, 3]
    assert chosen(pool(2, {7: 90}).gpus(GPURules())) == [7, 0]


def test_gpus_beside_other_devices_are_on_their_switches() -> None:
    """In a group where one is demanded, in a scope where one is; else one of each switch."""
    near = NearbySwitches(frozenset("13"), same=True)
    table = gpu_partitions.read('{"2": [{"minors": [0, 1]}, {"minors": [2, 6]}]}')
    assert chosen(pool(2).gpus(GPURules(table=table), near)) == [2, 6]
    assert chosen(pool(2).gpus(GPURules(table=table, honored=True), near)) == [2, 6]
    tree = gpu_topology.tree([(n, n // 4, SWITCHES[n]) for n in range(8)])
    rules = GPURules(tree=tree, scope="PCIe")
    assert chosen(pool(1).gpus(rules, NearbySwitches(frozenset("3")))) == [6]
    assert chosen(pool(2).on({"3"}).gpus(GPURules(tree=tree))) == [6, 7]
    assert pool(2).on({"3"}).used == frozenset(range(6))
