"""Concrete devices, as the simulation decides them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.reservation.cache import ReservationCache
from tests.kit import clusters, reservations
from tests.kit.clusters import Body, node, pod
from tests.kit.devices import (
    ALLOCATED,
    CORE,
    MEMORY,
    RATIO,
    RDMA,
    asking,
    given,
    gpu,
    having,
    minors,
    rdma,
    report,
)
from tests.kit.reservations import reservation

OWN: Body = {"app": "web"}


def test_shares_and_whole_cards() -> None:
    """The emptier card first; what is left of each is exact in cores and in memory."""
    outcome = clusters.tried(
        node("n"),
        report("n"),
        asking("half", 50),
        asking("whole"),
        pod("rest", requests={CORE: "50", MEMORY: "8Gi"}),
        asking("more", 10),
    )
    devices = {placement["pod"]: placement.get("devices") for placement in outcome["placements"]}

    amounts = {CORE: "50", RATIO: "50", MEMORY: "8Gi"}
    assert devices["d/half"] == {"gpu": [{"minor": 0, "id": "GPU-0", "resources": amounts}]}
    assert minors(devices["d/whole"]) == [1]
    assert devices["d/rest"] == devices["d/half"]
    [pending] = outcome["pending"]
    assert pending["message"].startswith("0/1 nodes are available: 1 Insufficient GPU Devices.")


def test_nodes_without_a_device_object_count_amounts() -> None:
    """As before: no annotation, and what the node says that it has."""
    bodies = (node("n", allocatable={"nvidia.com/gpu": "2"}), asking("a", 2, "nvidia.com/gpu"))

    assert given(*bodies) == {"a": []}
    message = clusters.message("b", *bodies, asking("b", 1, "nvidia.com/gpu"))
    assert message == "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."


def test_whole_cards_of_a_vendor_s_name() -> None:
    """They are counted by the node, and chosen one by one where it reports them."""
    bodies = (node("n", allocatable={"nvidia.com/gpu": "2"}), report("n"))
    assert given(*bodies, asking("a", 2, "nvidia.com/gpu")) == {"a": [0, 1]}


def test_what_a_node_says_itself_counts() -> None:
    """Less than its devices have in all is the most that it gives."""
    server = node("n", allocatable={"koordinator.sh/gpu": "100"})
    message = clusters.message("b", server, report("n"), asking("a"), asking("b"))
    assert message == "0/1 nodes are available: 1 Insufficient koordinator.sh/gpu."


def test_no_card_has_enough_although_all_together_have() -> None:
    """Amounts would fit: single devices decide."""
    bodies = (node("n"), report("n"), having("x", 0, share=60), having("y", 1, share=60))

    assert given(*bodies, asking("a", 40)) == {"a": [0]}
    assert clusters.message("a", *bodies, asking("a", 50)) == (
        "0/1 nodes are available: 1 Insufficient GPU Devices."
    )


def test_memory_is_kept_in_both_units() -> None:
    """Bytes and per cent are one account; a card that tells no memory is given by the ratio."""
    by_memory = asking("a", "12Gi", MEMORY)
    bodies = (node("n"), report("n", gpu(0)), by_memory)
    assert given(*bodies, asking("b", 25, RATIO)) == {"a": [0], "b": [0]}
    assert given(*bodies, asking("b", 26, RATIO)) == {"a": [0]}

    silent = (node("n"), report("n", gpu(0, memory="")))
    assert given(*silent, asking("b", 100)) == {"b": [0]}
    assert "Insufficient koordinator.sh/gpu-memory" in clusters.message("a", *silent, by_memory)


def test_an_annotation_in_one_unit_counts_in_both() -> None:
    """Other schedulers may write the ratio alone, or the bytes: together they fill the card."""

    def other(name: str, kind: str, amount: str) -> Body:
        told = {"gpu": [{"minor": 0, "resources": {kind: amount}}]}
        meta = {"annotations": {ALLOCATED: json.dumps(told)}}
        return asking(name, amount, kind, on="n", meta=meta)

    bodies = (node("n"), report("n", gpu(0)), other("x", RATIO, "50"), other("y", MEMORY, "6Gi"))
    assert given(*bodies, asking("a", 12, RATIO)) == {"a": [0]}
    assert given(*bodies, asking("a", 13, RATIO)) == {}
    assert given(*bodies, asking("a", "3Gi", MEMORY)) == {}


def test_the_fuller_card_where_it_is_configured() -> None:
    """MostAllocated packs."""
    strategy = {"scoringStrategy": {"type": "MostAllocated"}}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "pluginConfig": [{"name": "DeviceShare", "args": strategy}],
            }
        ],
    }
    bodies = (node("n"), report("n"), having("x", 1, share=30), asking("a", 30))

    assert given(*bodies) == {"a": [0]}
    assert given(*bodies, config=config) == {"a": [1]}


def test_several_types_at_once() -> None:
    """Cards and RDMA devices, each by itself."""
    bodies = (node("n"), report("n", gpu(0), rdma(0), rdma(1)))
    both = asking("a", 100, requests={RDMA: "200"})

    assert given(*bodies, both) == {"a": [0]}
    assert given(*bodies, both, kind="rdma") == {"a": [0, 1]}
    taken = clusters.message("b", *bodies, both, asking("b", 1, RDMA))
    assert taken == "0/1 nodes are available: 1 Insufficient koordinator.sh/rdma."


def test_unhealthy_devices_are_given_to_nobody() -> None:
    """Who has one has it; the others are judged without it."""
    sick = report("n", gpu(0, health=False), gpu(1))

    assert given(node("n"), sick, asking("a")) == {"a": [1]}
    assert given(node("n"), sick, having("x", 0), asking("a")) == {"a": [1]}
    message = clusters.message("b", node("n"), sick, asking("a"), asking("b"))
    assert message == "0/1 nodes are available: 1 Insufficient GPU Devices."


def test_a_device_that_is_gone_harms_nobody() -> None:
    """A pod that names it has nothing else; a card that became smaller gives what is left."""
    assert given(node("n"), report("n"), having("x", 7, share=50), asking("a")) == {"a": [0]}
    small = report("n", gpu(0, memory="4Gi"))
    half = having("x", 0, share=50)
    assert given(node("n"), small, half, asking("a", 10)) == {}


@pytest.mark.parametrize(
    "note",
    [
        "",
        "{",
        "[]",
        '{"gpu": 7}',
        '{"gpu": [{"minor": -1}]}',
        '{"gpu": [{"minor": 0, "resources": {"koordinator.sh/gpu-core": "-5"}}]}',
        '{"rdma": [{"minor": 0, "resources": {}}]}',
    ],
)
def test_who_names_none_has_as_many_all_the_same(note: str) -> None:
    """A broken annotation, or another scheduler's pod: so many cards less for others."""
    other = asking("x", 100, on="n", meta={"annotations": {ALLOCATED: note}})
    bodies = (node("n"), report("n"), other)

    assert len(given(*bodies, asking("a"))["a"]) == 1
    assert given(*bodies, asking("a", 200)) == {}
    unread = asking("x", 2, "nvidia.com/gpu", on="n")
    assert given(node("n"), report("n"), unread, asking("a", 1)) == {}


def test_more_than_there_is_in_all_is_no_end() -> None:
    """Whoever runs there although there is no room for him: nobody else comes."""
    bodies = (node("n"), report("n"), asking("x", 500, on="n"), having("y", 0, 0, 1))
    assert given(*bodies, asking("a", 1)) == {}


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        ({"koordinator.sh/gpu": "150"}, "invalid resource unit koordinator.sh/gpu: 150"),
        ({CORE: "50"}, "invalid resource device requests: [koordinator.sh/gpu-core]"),
        ({"koordinator.sh/gpu": "100000000000000000000"}, "invalid resource unit"),
        ({"nvidia.com/gpu": "100000000000000000000"}, "Insufficient nvidia.com/gpu"),
        ({RATIO: "-1"}, "is negative"),
    ],
)
def test_absurd_requests(asked: Body, refusal: str) -> None:
    """Refused, with the reason."""
    assert refusal in clusters.message("a", node("n"), report("n"), pod("a", requests=asked))


@pytest.mark.parametrize(
    ("key", "text", "refusal"),
    [
        ("device-allocate-hint", "{", "invalid DeviceAllocateHint annotation, err: "),
        ("device-joint-allocate", "[]", "invalid DeviceJointAllocate annotation, err: "),
        ("gpu-partition-spec", "", "invalid GPUPartitionSpec annotation, err: "),
        (
            "device-allocate-hint",
            '{"gpu": {"selector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}}',
            "invalid Selector of DeviceHint, deviceType: gpu, err: ",
        ),
    ],
)
def test_a_pod_whose_wishes_cannot_be_read_waits_with_the_reason(
    key: str, text: str, refusal: str
) -> None:
    """Before any node is looked at; a pod without devices is none of this."""
    meta = {"annotations": {f"scheduling.koordinator.sh/{key}": text}}
    bodies = (node("n"), report("n"))
    assert refusal in clusters.message("a", *bodies, asking("a", meta=meta))
    assert clusters.places(*bodies, pod("a", meta=meta)) == {"a": "n"}


def test_cards_that_come_in_groups_are_not_given_singly() -> None:
    """A node that demands groups and lists none is refused for whole cards, not for shares."""
    honor = report("n", labels={"node.koordinator.sh/gpu-partition-policy": "Honor"})
    refusal = clusters.message("a", node("n"), honor, asking("a"))
    assert refusal == "0/1 nodes are available: 1 node(s) missing GPU Partition Table."
    assert given(node("n"), honor, asking("a", 50)) == {"a": [0]}


def test_the_emptier_node() -> None:
    """By what is left of its devices."""
    bodies = (node("a"), node("b"), report("a"), report("b"), having("x", 0, on="a"))
    assert clusters.places(*bodies, asking("p", 10)) == {"p": "b"}


def test_a_victim_gives_its_card_back() -> None:
    """Preemption sees single devices."""
    low = having("low", 0, 1, priority=1)
    outcome = clusters.tried(node("n"), report("n"), low, asking("high", priority=9))
    assert outcome["preemptions"] == [{"pod": "d/high", "node": "n", "victims": ["d/low"]}]
    assert [minors(placement["devices"]) for placement in outcome["placements"]] == [[0]]


# Reservations.


def keeping(name: str, amount: int = 100, **more: Any) -> Body:
    """A reservation of cards."""
    asked = {"koordinator.sh/gpu": str(amount)}
    return reservation(name, requests=asked, **{"allocateOnce": False, **more})


def held(name: str, *cards: int, share: int = 100, **more: Any) -> Body:
    """One that has its cards."""
    part = {CORE: str(share), RATIO: str(share), MEMORY: str(share * (16 << 30) // 100)}
    told = {"gpu": [{"minor": minor, "resources": part} for minor in cards]}
    meta = {"annotations": {ALLOCATED: json.dumps(told)}}
    return keeping(name, share * len(cards), on="n", meta=meta, **more)


def test_a_reservation_gets_cards_and_hands_them_over() -> None:
    """Its owner has exactly them; a stranger, who comes first, has others."""
    outcome = reservations.tried(
        node("n"),
        report("n"),
        keeping("r"),
        asking("stranger"),
        asking("late"),
        asking("owner", labels=OWN),
    )
    devices = {
        placement["pod"]: minors(placement["devices"]) for placement in outcome["placements"]
    }

    [kept] = outcome["reservations"]
    assert minors(kept["devices"]) == [0]
    assert devices == {"d/stranger": [1], "d/owner": [0]}
    assert kept["allocated"] == {"koordinator.sh/gpu": "100"}


def test_an_owner_gets_the_cards_that_were_written_down() -> None:
    """Also where other cards are emptier, and each only once."""
    bodies = (node("n"), report("n", *map(gpu, range(4))), held("r", 2, 3))

    assert given(*bodies, asking("a", labels=OWN)) == {"a": [2]}
    assert given(*bodies, asking("a", 200, labels=OWN)) == {"a": [2, 3]}
    cards = given(*bodies, asking("a", labels=OWN), asking("b", labels=OWN))
    assert cards == {"a": [2], "b": [3]}
    assert given(*bodies, asking("z", 200)) == {"z": [0, 1]}
    assert given(*bodies, asking("z", 300)) == {}


def test_aligned_goes_on_with_the_node_restricted_does_not() -> None:
    """What is more than reserved comes from free cards, or not at all."""
    bodies = (node("n"), report("n", *map(gpu, range(3))))
    more = asking("a", 200, labels=OWN)
    required = asking("a", 200, labels=OWN, meta={"annotations": reservations.affinity()})

    assert given(*bodies, held("r", 1, allocatePolicy="Aligned"), more) == {"a": [0, 1]}
    restricted = held("r", 1, allocatePolicy="Restricted")
    refusal = reservations.message("a", *bodies, restricted, required)
    assert "Reservation(s) Insufficient koordinator.sh/gpu" in refusal


def test_restricted_means_single_cards() -> None:
    """Two halves of two cards are no card; nobody falls back to others in silence."""
    bodies = (node("n"), report("n", *map(gpu, range(3))))
    halves = held("r", 0, 1, share=50, allocatePolicy="Restricted")
    note = reservations.affinity()
    wants = asking("a", labels=OWN, meta={"annotations": note})

    refusal = reservations.message("a", *bodies, halves, wants)
    assert refusal == "0/1 nodes are available: 1 Reservation(s) Insufficient GPU Devices."
    fits = asking("a", 50, labels=OWN, meta={"annotations": note})
    assert given(*bodies, halves, fits) == {"a": [0]}


def test_of_several_reservations_one_that_has_the_cards() -> None:
    """The fuller one could not give a card: the other does."""
    bodies = (node("n"), report("n", *map(gpu, range(3))))
    full = held("full", 0, 1, share=50, allocatePolicy="Restricted")
    good = held("good", 2, allocatePolicy="Restricted")
    outcome = reservations.tried(*bodies, full, good, asking("a", labels=OWN))

    [placed] = outcome["placements"]
    assert (placed["reservation"], minors(placed["devices"])) == ("good", [2])


def test_what_is_used_once_is_free_again() -> None:
    """An owner that needs less: the rest belongs to everybody when the reservation is over."""
    bodies = (node("n"), report("n"), held("r", 0, 1, allocateOnce=True))
    cards = given(*bodies, asking("a", labels=OWN), asking("z"))
    assert cards == {"a": [0], "z": [1]}


def test_who_ignores_reservations_has_their_cards() -> None:
    """He may; what he has nobody else is given, the owner neither."""
    bodies = (node("n"), report("n", gpu(0)), held("r", 0))
    label = {"scheduling.koordinator.sh/reservation-ignored": "true"}
    rude = asking("rude", labels=label)

    assert given(*bodies, rude) == {"rude": [0]}
    assert given(*bodies, rude, asking("a", labels=OWN)) == {"rude": [0]}


def test_a_reservation_that_names_no_cards_holds_as_many() -> None:
    """Bound before anybody chose devices, or its annotation is broken: the amount is kept."""
    bodies = (node("n"), report("n"), keeping("r", on="n"))

    assert len(given(*bodies, asking("z"))["z"]) == 1
    assert given(*bodies, asking("z", 200)) == {}
    assert len(given(*bodies, asking("a", 100, labels=OWN), asking("z"))) == 2


def test_what_was_chosen_is_not_lost_on_its_way_to_the_store() -> None:
    """An edit of the object that does not know the annotation yet changes no card."""
    loaded = inventory.load([node("n")])
    cache = ReservationCache(loaded.columns, loaded.decoder)
    cache.put(held("r", 1))
    before = cache.named("r")
    assert before is not None
    cache.put(keeping("r", on="n", unschedulable=True))

    assert before.spec.unschedulable
    assert before.reserve_pod is not None
    assert [device.minor for device in before.reserve_pod.devices] == [1]


def test_a_pre_allocation_has_the_cards_of_who_runs() -> None:
    """It waits for its room; then the card of the pod that it adopted is part of what it has."""
    early = keeping("r", 200, preAllocation=True)
    bodies = (node("n"), report("n", *map(gpu, range(3))), having("old", 2, labels=OWN), early)
    [kept] = reservations.tried(*bodies)["reservations"]

    assert kept["phase"] == "Available"
    assert sorted(minors(kept["devices"])) == [0, 2]
    [waits] = reservations.tried(*bodies, having("other", 0))["reservations"]
    assert (waits["phase"], "devices" in waits) == ("Waiting", False)
