"""Devices of several types on one node, as the simulation chooses them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kit import clusters, reservations
from tests.kit.clusters import Body, node
from tests.kit.devices import (
    ALLOCATED,
    RDMA,
    asking,
    functions,
    given,
    gpu,
    minors,
    rdma,
    report,
    server,
    switched,
    taken,
    wishing,
)
from tests.kit.reservations import reservation

SAME: Body = {"deviceTypes": ["gpu", "rdma"], "requiredScope": "SamePCIe"}
NEAR: Body = {"deviceTypes": ["gpu", "rdma"]}
APART = "0/1 nodes are available: 1 node(s) Device Joint-Allocate rules violation."


def both(*bodies: Body) -> tuple[list[int], list[int]]:
    """The cards and the NICs of pod ``a`` on the node ``n``."""
    several = node("n"), *bodies
    return given(*several).get("a", []), given(*several, kind="rdma").get("a", [])


def buses(*bodies: Body) -> list[str]:
    """The virtual functions of pod ``a`` on the node ``n``."""
    [placed] = clusters.tried(node("n"), *bodies)["placements"]
    return [
        function["busID"]
        for each in placed["devices"]["rdma"]
        for function in each["extension"]["vfs"]
    ]


def why(*bodies: Body) -> str:
    """Why pod ``a`` is pending."""
    return clusters.message("a", node("n"), *bodies)


# Types that are allocated together.


@pytest.mark.parametrize("joint", [NEAR, SAME])
@pytest.mark.parametrize(
    ("gpus", "cards", "nics"),
    [
        (1, [0], [0]),
        (2, [0, 1], [0]),
        (3, [0, 1, 2], [0, 1]),
        (4, [0, 1, 2, 3], [0, 1]),
        (6, [0, 1, 2, 3, 4, 5], [0, 1, 2]),
        (8, [0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3]),
    ],
)
def test_cards_get_a_nic_on_each_of_their_switches(
    joint: Body, gpus: int, cards: list[int], nics: list[int]
) -> None:
    """However many NICs were asked for, when that is fewer."""
    assert both(server("n"), wishing("a", gpus, 1, joint=joint)) == (cards, nics)


@pytest.mark.parametrize("joint", [NEAR, SAME])
def test_nics_of_pods_that_run_and_their_cards_move_the_choice(joint: Body) -> None:
    """Two cards of one switch need the NIC of that switch; a card alone fills what is broken."""
    running = taken("x", "gpu", 0), taken("y", "rdma", 0)
    assert both(server("n"), *running, wishing("a", 2, 100, joint=joint)) == ([2, 3], [1])
    assert both(server("n"), taken("x", "gpu", 0), wishing("a", 1, 100, joint=joint)) == ([1], [0])


def test_four_cards_on_four_switches_get_four_nics() -> None:
    """One of each switch before a second one of any, each with the amount that was asked for."""
    cards = [switched(gpu(n), n, per_numa=4) for n in range(4)]
    nics = [switched(rdma(n), max(0, n - 2), per_numa=4) for n in range(6)]
    both_types = report("n", *cards, *nics)
    for joint in (NEAR, SAME):
        assert both(both_types, wishing("a", 4, 100, joint=joint)) == ([0, 1, 2, 3], [0, 3, 4, 5])
    assert both(both_types, wishing("a", 1, 200, joint=SAME)) == ([0], [0, 1])


def test_the_same_switch_is_required_where_the_pod_says_so() -> None:
    """Without, the nearest will do; the switches of both types must be equal."""
    only = server("n", ("rdma", 1), ("rdma", 2), ("rdma", 3))
    assert both(only, wishing("a", 4, 1, joint=NEAR)) == ([0, 1, 2, 3], [0])
    assert "Insufficient rdma devices" in why(only, wishing("a", 4, 1, joint=SAME))
    assert why(server("n"), wishing("a", 1, 200, joint=SAME)) == APART
    assert both(server("n"), wishing("a", 1, 200, joint=NEAR)) == ([0], [0, 1])


def test_the_first_type_moves_to_the_switches_that_have_the_others() -> None:
    """A card beside a NIC that is taken is no reason to wait while another pair is free."""
    running = taken("x", "rdma", 0)
    assert both(server("n"), running, wishing("a", 1, 100, joint=SAME)) == ([2], [1])
    assert both(server("n"), running, wishing("a", 4, 100, joint=SAME)) == ([4, 5, 6, 7], [2, 3])
    every = taken("x", "rdma", 0, 1, 2), taken("y", "gpu", 6, 7)
    assert why(server("n"), *every, wishing("a", 1, 100, joint=SAME)) == APART


def test_the_first_type_may_be_the_nic() -> None:
    """Its switch decides, whichever cards are emptier or come first."""
    joint = {**SAME, "deviceTypes": ["rdma", "gpu"]}
    running = taken("x", "rdma", 0), taken("y", "gpu", 2)
    assert both(server("n"), *running, wishing("a", 1, 100, joint=joint)) == ([3], [1])
    assert both(server("n"), wishing("a", 2, 200, joint=joint)) == ([0, 2], [0, 1])


def test_too_few_of_the_first_type_is_said_of_the_first_type() -> None:
    """What the node lacks altogether is said as it is."""
    cards = [taken(f"x{n}", "gpu", n) for n in (0, 2, 4, 6)]
    scoped = wishing("a", 2, 1, joint=NEAR, hint={"gpu": {"requiredTopologyScope": "PCIe"}})
    assert why(server("n"), *cards, scoped) == (
        "0/1 nodes are available: 1 node(s) Insufficient primary device."
    )
    spec = wishing("a", 2, 1, joint=NEAR, partition={})
    assert "node(s) missing GPU Partition Table" in why(server("n"), spec)


def test_types_that_are_asked_of_all_devices_or_not_at_all_are_not_joined() -> None:
    """A pod of one type asks for nothing together."""
    every = {"rdma": {"allocateStrategy": "ApplyForAll"}}
    pod = wishing("a", 1, 1, joint=SAME, hint=every)
    assert both(server("n"), pod) == ([0], [0, 1, 2, 3])
    assert both(server("n"), wishing("a", 1, joint=SAME)) == ([0], [])
    fpga = {"deviceTypes": ["fpga", "rdma"], "requiredScope": "SamePCIe"}
    assert both(server("n"), wishing("a", 1, 1, joint=fpga)) == ([0], [0])


def test_devices_of_unknown_place_are_beside_nobody() -> None:
    """They are taken where nothing must be on one switch."""
    bare = report("n", gpu(0, topology=None), rdma(0))
    for joint in (NEAR, SAME):
        assert both(bare, wishing("a", 1, 100, joint=joint)) == ([0], [0])


# Virtual functions, labels, whole switches, numbers.

ANY_FUNCTION: Body = {"rdma": {"vfSelector": {}}}


def test_each_pod_gets_a_virtual_function_of_its_own() -> None:
    """The lowest bus address that nobody has; the next device when one has none left."""
    device = report("n", switched(rdma(0, vfGroups=functions(0)), 0))
    pods = [wishing(f"a{n}", 0, 1, hint=ANY_FUNCTION) for n in range(3)]
    outcome = clusters.tried(node("n"), device, *pods)
    buses = [each["devices"]["rdma"][0]["extension"] for each in outcome["placements"]]
    assert buses == [
        {"vfs": [{"busID": "0000:0f:00.2", "minor": 0}]},
        {"vfs": [{"busID": "0000:0f:00.3", "minor": 1}]},
    ]
    [pending] = outcome["pending"]
    assert "1 Insufficient rdma devices." in pending["message"]


def test_functions_of_pods_that_run_are_not_given_again() -> None:
    """By the annotations of the pods; those of other groups do not matter."""
    running = taken("x", "rdma", 0, bus="0000:0f:00.2")
    both_groups = functions(0, type="fast") + functions(1, type="slow")
    nic = report("n", switched(rdma(0, vfGroups=both_groups), 0))
    slow = {"rdma": {"vfSelector": {"matchLabels": {"type": "slow"}}}}
    assert buses(nic, running, wishing("a", 0, 1, hint=ANY_FUNCTION)) == ["0000:0f:00.3"]
    assert buses(nic, running, wishing("a", 0, 1, hint=slow)) == ["0000:1f:00.2"]


def test_the_manifest_of_the_documents_gets_a_function_on_each_switch() -> None:
    """Two cards of one NUMA node, and a virtual function for each of their switches."""
    hint = {**ANY_FUNCTION, "gpu": {"requiredTopologyScope": "NUMANode"}}
    pod = wishing("a", 2, 100, joint=SAME, hint=hint)
    broken = [taken(f"x{n}", "gpu", n) for n in (0, 2, 4, 6)]
    assert both(server("n"), *broken, pod) == ([1, 3], [0, 1])
    assert len(buses(server("n"), pod)) == 1


def test_nodes_without_functions_or_without_devices_are_refused_for_good() -> None:
    """No pod that goes would help."""
    bare = report("n", rdma(0))
    asks = wishing("a", 0, 1, hint=ANY_FUNCTION)
    assert why(bare, asks) == "0/1 nodes are available: 1 Insufficient rdma VirtualFunctions."
    none = {"rdma": {"allocateStrategy": "ApplyForAll", "selector": {"matchLabels": {"a": "b"}}}}
    refusal = "0/1 nodes are available: 1 Insufficient rdma devices."
    assert why(bare, wishing("a", 0, 1, hint=none)) == refusal


@pytest.mark.parametrize(
    ("hint", "amount", "nics"),
    [
        ({}, 100, [0]),
        ({}, 200, [0, 1]),
        ({"selector": {"matchLabels": {"type": "b"}}}, 1, [2]),
        ({"selector": {}}, 1, [0]),
        ({"allocateStrategy": "ApplyForAll"}, 1, [0, 1, 2, 3]),
        ({"allocateStrategy": "ApplyForAll"}, 200, [0, 1]),
        (
            {"allocateStrategy": "ApplyForAll", "selector": {"matchLabels": {"type": "b"}}},
            *(5, [2, 3]),
        ),
        ({"allocateStrategy": "RequestsAsCount"}, 3, [0, 1, 2]),
        ({"allocateStrategy": "RequestsAsCount", "exclusivePolicy": "DeviceLevel"}, 2, [0, 1]),
    ],
)
def test_hints_choose_the_devices_and_their_number(
    hint: Body, amount: int, nics: list[int]
) -> None:
    """By labels; one of each, or so many."""
    network = [rdma(n, labels={"type": "b" if n > 1 else "a"}) for n in range(4)]
    pod = wishing("a", 0, amount, hint={"rdma": hint})
    assert both(report("n", *network), pod) == ([], nics)


def test_a_pod_of_whole_devices_gets_none_that_is_in_use() -> None:
    """``DeviceLevel`` with a count asks for all of each."""
    hint = {"rdma": {"allocateStrategy": "RequestsAsCount", "exclusivePolicy": "DeviceLevel"}}
    bodies = report("n", rdma(0), rdma(1)), asking("x", 1, RDMA)
    cards = given(node("n"), *bodies, wishing("a", 0, 1, hint=hint), kind="rdma")
    assert cards == {"x": [0], "a": [1]}
    alone = wishing("a", 0, 2, hint=hint)
    assert why(*bodies, alone) == "0/1 nodes are available: 1 Insufficient rdma devices."


@pytest.mark.parametrize("hint", [{}, {"selector": {}}])
def test_a_pod_alone_on_its_switch_shares_it_with_no_device_of_its_type(hint: Body) -> None:
    """With and without a selector; a NIC that is in use is another type."""
    alone = {"gpu": {**hint, "exclusivePolicy": "PCIeLevel"}}
    half = [taken("x", "gpu", 0), taken("y", "rdma", 1)]
    assert both(server("n"), *half, wishing("a", 1, hint=alone)) == ([2], [])
    busy = [taken(f"x{n}", "gpu", n) for n in (0, 2, 4, 6)]
    assert "Insufficient GPU Devices" in why(server("n"), *busy, wishing("a", 1, hint=alone))
    sick = server("n", ("gpu", 0))
    sick["spec"]["devices"].append(switched(gpu(0, health=False), 0))
    assert both(sick, taken("x", "gpu", 0), wishing("a", 1, hint=alone)) == ([2], [])


# Groups and the tree.

HONOR = {"node.koordinator.sh/gpu-partition-policy": "Honor"}
MODEL = {"node.koordinator.sh/gpu-model": "H100"}


def test_a_known_machine_gives_groups_where_it_can_and_others_where_it_must() -> None:
    """Preferred by the node's model, demanded by the pod or by the node's policy."""
    broken = [taken(f"x{n}", "gpu", n) for n in (0, 2, 4, 6)]
    hopper = node("n", labels=MODEL)
    assert given(hopper, server("n"), *broken, wishing("a", 2)) == {"a": [1, 3]}
    demands = wishing("a", 2, partition={})
    refusal = "0/1 nodes are available: 1 Insufficient Partitioned GPU Devices."
    assert clusters.message("a", hopper, server("n"), *broken, demands) == refusal
    honors = node("n", labels={**MODEL, **HONOR})
    assert clusters.message("a", honors, server("n"), *broken, wishing("a", 2)) == refusal
    assert given(honors, server("n"), taken("x", "gpu", 4), wishing("a", 1)) == {"a": [5]}
    three = wishing("a", 3, partition={})
    assert "Unsupported number of GPU requests" in clusters.message("a", honors, server("n"), three)
    assert given(hopper, server("n"), wishing("a", 3)) == {"a": [0, 1, 2]}


def test_the_table_of_the_report_comes_before_that_of_the_model() -> None:
    """The pairs are others here; a share of a card is no group."""
    notes = {"scheduling.koordinator.sh/gpu-partitions": '{"2": [{"minors": [1, 6]}]}'}
    hopper = node("n", labels=MODEL)
    told = server("n", annotations=notes, labels=HONOR)
    assert given(hopper, told, wishing("a", 2)) == {"a": [1, 6]}
    assert given(hopper, told, asking("a", 50)) == {"a": [0]}


@pytest.mark.parametrize(
    ("scope", "refusal"),
    [
        ("PCIe", "Insufficient Topology Scoped GPU Devices"),
        ("Device", "Insufficient Topology Scoped GPU Devices"),
        ("NUMANode", ""),
    ],
)
def test_a_required_scope_is_kept_or_refused(scope: str, refusal: str) -> None:
    """Four fragments on four switches of two NUMA nodes."""
    broken = [taken(f"x{n}", "gpu", n) for n in (0, 2, 4, 6)]
    pod = wishing("a", 2, hint={"gpu": {"requiredTopologyScope": scope}})
    if refusal:
        assert why(server("n"), *broken, pod) == f"0/1 nodes are available: 1 {refusal}."
    else:
        assert both(server("n"), *broken, pod) == ([1, 3], [])


def test_a_scope_needs_a_tree_and_whole_cards() -> None:
    """A card of unknown place costs all of them the tree; without a scope nobody asks for one."""
    scoped: dict[str, Any] = {"hint": {"gpu": {"requiredTopologyScope": "PCIe"}}}
    bare = report("n", gpu(0), gpu(1, topology=None))
    assert "node(s) missing GPU Device Topology Tree" in why(bare, wishing("a", 1, **scoped))
    assert both(bare, wishing("a", 2)) == ([0, 1], [])
    shares = wishing("a", 1, **scoped)
    asked = {"koordinator.sh/gpu.shared": "2", "koordinator.sh/gpu-memory-ratio": "100"}
    shares["spec"]["containers"][0]["resources"]["requests"] = asked
    assert "node(s) Unsupported Multi-Shared GPU" in why(server("n"), shares)
    shares["metadata"]["annotations"] = {}
    assert both(server("n"), shares) == ([0, 1], [])


# Reservations, planned servers, preemption.

OWN: Body = {"app": "web"}


def held(**devices: list[int]) -> Body:
    """A reservation of whole devices of the server."""
    asked = {"gpu": "koordinator.sh/gpu", "rdma": RDMA}
    amounts = {asked[kind]: str(100 * len(several)) for kind, several in devices.items()}
    kept = [taken("x", kind, *several) for kind, several in devices.items()]
    notes = [pod["metadata"]["annotations"][ALLOCATED][1:-1] for pod in kept]
    meta = {"annotations": {ALLOCATED: "{" + ", ".join(notes) + "}"}}
    return reservation("r", requests=amounts, on="n", meta=meta, allocateOnce=False)


def test_who_draws_on_a_reservation_gets_its_devices_before_better_ones() -> None:
    """Two reserved cards of two switches come before a switch that is free."""
    owner = wishing("a", 2, labels=OWN)
    outcome = reservations.tried(node("n"), server("n"), held(gpu=[3, 4]), owner)
    assert [minors(each["devices"]) for each in outcome["placements"]] == [[3, 4]]
    more = wishing("a", 4, labels=OWN)
    outcome = reservations.tried(node("n"), server("n"), held(gpu=[3, 4]), more)
    assert [minors(each["devices"]) for each in outcome["placements"]] == [[0, 1, 2, 3]]


def test_joint_devices_come_from_a_reservation_of_both_types() -> None:
    """The pair that is kept, though others come first."""
    owner = wishing("a", 1, 100, joint=SAME, labels=OWN)
    kept = held(gpu=[5], rdma=[2])
    [placed] = reservations.tried(node("n"), server("n"), kept, owner)["placements"]
    assert (minors(placed["devices"]), minors(placed["devices"], "rdma")) == ([5], [2])
    stranger = wishing("z", 1, 100, joint=SAME)
    [placed] = reservations.tried(node("n"), server("n"), kept, stranger)["placements"]
    assert (minors(placed["devices"]), minors(placed["devices"], "rdma")) == ([6], [3])


def test_functions_that_a_reservation_keeps_are_its_owners() -> None:
    """A stranger gets the others; an owner gets that one, and the next owner one of the node's."""
    device = report("n", switched(rdma(0, vfGroups=functions(0, 3)), 0))
    meta = {"annotations": taken("x", "rdma", 0, bus="0000:0f:00.3")["metadata"]["annotations"]}
    kept = reservation("r", requests={RDMA: "2"}, on="n", meta=meta, allocateOnce=False)
    pods = [wishing(name, 0, 1, hint=ANY_FUNCTION) for name in ("y", "z")]
    owners = [wishing(name, 0, 1, hint=ANY_FUNCTION, labels=OWN) for name in ("a", "b")]
    outcome = reservations.tried(node("n"), device, kept, *pods, owners[0])
    assert {
        each["pod"]: each["devices"]["rdma"][0]["extension"]["vfs"][0]["busID"]
        for each in outcome["placements"]
    } == {"d/y": "0000:0f:00.2", "d/a": "0000:0f:00.3", "d/z": "0000:0f:00.4"}
    outcome = reservations.tried(node("n"), device, kept, *owners)
    buses = [each["devices"]["rdma"][0]["extension"]["vfs"] for each in outcome["placements"]]
    assert [each[0]["busID"] for each in buses] == ["0000:0f:00.3", "0000:0f:00.2"]


def test_restricted_owners_get_no_function_beyond_the_reservation() -> None:
    """One is kept, though more than one amount is."""
    device = report("n", switched(rdma(0, vfGroups=functions(0, 3)), 0))
    extension = {"vfs": [{"busID": "0000:0f:00.3", "minor": 1}]}
    slices = {"rdma": [{"minor": 0, "resources": {RDMA: "2"}, "extension": extension}]}
    meta = {"annotations": {ALLOCATED: json.dumps(slices)}}
    more = {"allocateOnce": False, "allocatePolicy": "Restricted"}
    kept = reservation("r", requests={RDMA: "2"}, on="n", meta=meta, **more)
    owners = [wishing(name, 0, 1, hint=ANY_FUNCTION, labels=OWN) for name in ("a", "b")]
    for owner in owners:
        owner["metadata"]["annotations"] |= reservations.affinity()
    outcome = reservations.tried(node("n"), device, kept, *owners)
    assert [each["pod"] for each in outcome["placements"]] == ["d/a"]


def test_planned_servers_are_asked_for_the_first_type_alone_until_devices_are_taken() -> None:
    """One NIC for each card is planned, so nobody counts them before."""
    planned = server("n", labels={"node.koordinator.sh/secondary-device-well-planned": "true"})
    pod = wishing("a", 2, 1, joint=SAME)
    assert both(planned, pod) == ([0, 1], [0])
    busy = [taken(f"x{n}", "rdma", n, bus=f"0000:{n}f:00.2") for n in range(4)]
    assert both(planned, *busy, pod) == ([0, 1], [0])


def test_a_victim_gives_back_the_pair_that_must_be_on_one_switch() -> None:
    """Preemption sees joint devices; a group that no pod can give back has no victims."""
    low = [taken("x", "rdma", n) for n in range(4)]
    for number, pod in enumerate(low):
        pod["metadata"]["name"] = f"x{number}"
        pod["spec"]["priority"] = number
    high = wishing("a", 1, 100, joint=SAME, priority=9)
    outcome = clusters.tried(node("n"), server("n"), *low, high)
    assert [each["victims"] for each in outcome["preemptions"]] == [["d/x0"]]
    demands = wishing("a", 3, partition={}, priority=9)
    outcome = clusters.tried(node("n", labels=MODEL), server("n"), *low, demands)
    assert outcome["preemptions"] == []
