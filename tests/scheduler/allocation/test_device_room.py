"""Cards that have more or less memory than before: what of them is kept, handed over, compared."""

from __future__ import annotations

import json

import pytest

from koordlet.scheduler.allocation import device_room
from tests.kit import clusters, reservations
from tests.kit.clusters import node
from tests.kit.device_lives import wish
from tests.kit.devices import (
    ALLOCATED,
    CORE,
    MEMORY,
    PERCENT,
    RATIO,
    asking,
    given,
    gpu,
    having,
    minors,
    report,
)
from tests.kit.reservations import reservation
from tests.scheduler.plugins.test_deviceshare import OWN, held, keeping
from tests.scheduler.test_device_lives import Machine


def test_a_reserved_card_that_shrinks_is_held_as_it_is_now() -> None:
    """Of a whole card of 16 GiB that has 8 from now on, 8 are held and handed over, no more."""
    machine = Machine()
    machine.devices_change("n2", None)
    machine.pod_comes(wish({PERCENT: "30"}), "web", "", ok=True)
    machine.reservation_comes(
        wish({PERCENT: "200"}), "web", once=False, policy="", early=False, taken=True
    )
    machine.devices_change("n1", (gpu(0), gpu(2, memory="8Gi")))
    machine.pod_comes(wish({PERCENT: "30"}), "web", "", ok=False)

    kept = machine.me.reservations.named("r2")
    assert kept is not None
    left = device_room.rest(kept, machine.me.columns.devices["n1"])
    assert left["gpu", 2] == {CORE: 100, RATIO: 100, MEMORY: 8 << 30}
    machine.teardown()


@pytest.mark.parametrize("memory", ["8Gi", "16Gi", "32Gi"])
def test_half_a_card_is_half_of_the_card_that_is_there(memory: str) -> None:
    """Reserved while it had 16 GiB: owners find half of what it has now, strangers the other."""
    bodies = (node("n"), report("n", gpu(0, memory=memory)))
    half = held("r", 0, share=50, allocatePolicy="Restricted")
    owner = asking("a", 50, labels=OWN, meta={"annotations": reservations.affinity()})

    assert given(*bodies, half, asking("z", 50), owner) == {"z": [0], "a": [0]}
    assert given(*bodies, half, asking("z", 51)) == {}


@pytest.mark.parametrize(("memory", "rest"), [("12Gi", 33), ("16Gi", 50), ("32Gi", 75)])
def test_reserved_bytes_are_bytes_of_the_card_that_is_there(memory: str, rest: int) -> None:
    """Reserved by ``gpu-memory``, its share of the card is another when the card is."""
    part = {MEMORY: "8Gi", RATIO: "50"}
    told = {"gpu": [{"minor": 0, "resources": part}]}
    meta = {"annotations": {ALLOCATED: json.dumps(told)}}
    kept = reservation("r", requests={MEMORY: "8Gi"}, on="n", meta=meta)
    bodies = (node("n"), report("n", gpu(0, memory=memory)), kept)

    assert given(*bodies, asking("z", rest, RATIO)) == {"z": [0]}
    assert given(*bodies, asking("z", rest + 1, RATIO)) == {}


def test_a_card_with_less_than_was_given_of_it_is_full_and_no_more() -> None:
    """What it lacks is not taken off the other cards when nodes are compared."""
    outcome = clusters.tried(
        node("a"),
        report("a", gpu(0), gpu(1)),
        having("a1", 0, on="a"),
        having("a2", 1, share=20, on="a"),
        node("b"),
        report("b", gpu(0), gpu(1, memory="8Gi")),
        having("b1", 1, on="b"),
        asking("new", "8Gi", MEMORY),
    )
    assert [(placement["pod"], placement["node"]) for placement in outcome["placements"]] == [
        ("d/new", "b")
    ]


@pytest.mark.parametrize("memory", ["", "8Gi"])
def test_who_runs_on_a_card_that_shrank_is_no_reason_to_wait(memory: str) -> None:
    """A pre-allocation has the card of the pod that it adopted, as the card is now."""
    early = keeping("r", 100, preAllocation=True)
    cards = report("n", gpu(0, memory=memory), gpu(1))
    old = having("old", 0, labels=OWN)
    [kept] = reservations.tried(node("n"), cards, old, early)["reservations"]

    assert kept["phase"] == "Available"
    assert minors(kept["devices"]) == [0]
