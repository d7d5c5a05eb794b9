"""Devices, CPUs and memory on the same NUMA nodes, as the simulation chooses them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.model import cpuset
from tests.kit import clusters
from tests.kit.clusters import Body, node, pod
from tests.kit.devices import gpu, minors, rdma, report, server, switched, taken, wishing
from tests.kit.numa import STATUS, bound, machine, topology

POLICY = "node.koordinator.sh/numa-topology-policy"
UNALIGNED = "0/1 nodes are available: 1 node(s) NUMA Topology affinity error."
POLICIES = ["SingleNUMANode", "Restricted", "BestEffort"]


def cluster(policy: str, *bodies: Body) -> tuple[Body, ...]:
    """A server of eight cards and eight CPUs, four of each on each of two NUMA nodes."""
    labels = {POLICY: policy} if policy else {}
    return machine("n", labels=labels), topology("n"), server("n"), *bodies


def placed(*bodies: Body, config: Body | None = None) -> dict[str, Any]:
    """What pod ``a`` got: cards, NICs, CPUs."""
    several = clusters.tried(*bodies, config=config)["placements"]
    [placement] = [each for each in several if each["pod"] == "d/a"]
    return {
        "gpu": minors(placement.get("devices")),
        "rdma": minors(placement.get("devices"), "rdma"),
        "cpus": placement["cpuset"],
    }


def cards(cpu: str, gpus: int, rdma: int = 0, *, binds: bool = False, **wishes: Any) -> Body:
    """Pod ``a``: so many CPUs (of its own), cards, NICs."""
    body = wishing("a", gpus, rdma, **wishes)
    body["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    if binds:
        body["metadata"]["labels"] = {"koordinator.sh/qosClass": "LSR"}
    return body


def cpus_taken(name: str, cpus: str) -> Body:
    """A pod that has these CPUs."""
    return bound(name, str(4), {STATUS: {"cpuset": cpus}}, on="n")


@pytest.mark.parametrize("policy", POLICIES)
def test_cpus_go_where_the_cards_are(policy: str) -> None:
    """All four cards of node 0 are taken: CPUs that would come first are passed over."""
    bodies = cluster(policy, taken("x", "gpu", 0, 1, 2, 3), cards("2", 1, binds=True))
    assert placed(*bodies) == {"gpu": [4], "rdma": [], "cpus": "4-5"}


@pytest.mark.parametrize("policy", POLICIES)
def test_cards_go_where_the_cpus_are(policy: str) -> None:
    """Node 0 has no CPUs left; its cards are passed over, and its NICs."""
    bodies = cluster(policy, cpus_taken("x", "0-3"), cards("2", 2, 100, binds=True))
    shares = placed(*bodies)
    assert (shares["gpu"], shares["rdma"], shares["cpus"]) == ([4, 5], [2], "4-5")


@pytest.mark.parametrize("binds", [True, False])
@pytest.mark.parametrize("policy", POLICIES)
def test_cards_on_one_node_and_cpus_on_the_other_fail_the_merge(
    policy: str, *, binds: bool
) -> None:
    """But for a policy that only prefers: it gives both nodes."""
    elsewhere = cpus_taken("x", "4-7"), taken("y", "gpu", 0, 1, 2, 3)
    bodies = cluster(policy, *elsewhere, cards("2", 1, binds=binds))
    if policy == "BestEffort":
        assert placed(*bodies)["gpu"] == [4]
        return
    refusal = clusters.message("a", *bodies)
    assert refusal == UNALIGNED
    assert clusters.tried(*bodies)["preemptions"] == []


def test_restricted_takes_no_more_nodes_than_the_devices_need() -> None:
    """Five cards need two nodes; one card needs one, however many the CPUs would need."""
    assert placed(*cluster("Restricted", cards("2", 5)))["gpu"] == [0, 1, 2, 3, 4]
    assert clusters.message("a", *cluster("Restricted", cards("6", 1))) == UNALIGNED
    assert placed(*cluster("BestEffort", cards("6", 1)))["gpu"] == [0]
    assert clusters.message("a", *cluster("SingleNUMANode", cards("2", 5))) == UNALIGNED


def test_the_node_with_the_cards_that_would_be_chosen_anyway_is_better() -> None:
    """A card that fills a broken switch outweighs CPUs that are emptier elsewhere."""
    bodies = cluster("SingleNUMANode", taken("x", "gpu", 4), cards("1", 1))
    assert placed(*bodies)["gpu"] == [5]
    busy = pod("y", cpu="2", on="n")
    busy["metadata"]["annotations"] = {
        STATUS: '{"numaNodeResources": [{"node": 1, "resources": {"cpu": "2"}}]}'
    }
    assert placed(*bodies, busy)["gpu"] == [5]


def test_a_node_without_a_policy_gives_cards_from_anywhere() -> None:
    """CPUs and cards are chosen apart."""
    elsewhere = cpus_taken("x", "4-7"), taken("y", "gpu", 0, 1, 2, 3)
    shares = placed(*cluster("", *elsewhere, cards("2", 1, binds=True)))
    assert (shares["gpu"], shares["cpus"]) == ([4], "0-1")


def test_the_alignment_can_be_turned_off() -> None:
    """By the argument of the peer's plugin."""
    args = {"disableDeviceNUMATopologyAlignment": True}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "pluginConfig": [{"name": "DeviceShare", "args": args}],
            }
        ],
    }
    elsewhere = cpus_taken("x", "4-7"), taken("y", "gpu", 0, 1, 2, 3)
    bodies = cluster("SingleNUMANode", *elsewhere, cards("2", 1, binds=True))
    shares = placed(*bodies, config=config)
    assert (shares["gpu"], shares["cpus"]) == ([4], "0-1")


def test_devices_that_all_nodes_together_lack_are_said_as_such() -> None:
    """The failure of all NUMA nodes together, not that of the merge."""
    bodies = cluster("SingleNUMANode", *(taken(f"x{n}", "gpu", n) for n in range(7)))
    scoped = cards("1", 1, hint={"gpu": {"requiredTopologyScope": "PCIe"}})
    assert placed(*bodies, scoped)["gpu"] == [7]
    spec = cards("1", 1, partition={})
    assert "missing GPU Partition Table" in clusters.message("a", *bodies, spec)


def test_devices_of_no_numa_node_serve_all_and_of_unknown_place_none() -> None:
    """Unless nothing is known of any of the type: then it has no say."""
    labels = {POLICY: "SingleNUMANode"}
    base = machine("n", labels=labels), topology("n")
    nowhere = {"nodeID": -1, "pcieID": "9"}
    cards_on_1 = [switched(gpu(n), 2) for n in range(2)]
    anywhere = report("n", *cards_on_1, rdma(0, topology=nowhere))
    assert placed(*base, anywhere, cards("1", 1, 100))["rdma"] == [0]
    known = report("n", *cards_on_1, switched(rdma(0), 0), rdma(1))
    assert clusters.message("a", *base, known, cards("1", 1, 100)) == UNALIGNED
    unknown = report("n", *cards_on_1, rdma(1))
    assert placed(*base, unknown, cards("1", 1, 100))["rdma"] == [1]
    too_many = report("n", *cards_on_1, switched(gpu(5), 0), gpu(6, topology=nowhere))
    refusal = clusters.message("a", *base, too_many, cards("1", 4))
    assert "Insufficient NUMA Scoped Devices" in refusal


@pytest.mark.parametrize("first", [0, 8])
def test_many_numa_nodes_are_searched_where_the_devices_are(first: int) -> None:
    """Sixteen nodes of two cards each: eight of them are free, and they are found in time."""
    labels = {POLICY: "Restricted"}
    cards_of_16 = [switched(gpu(n), n // 2, per_numa=1) for n in range(32)]
    others = [minor for minor in range(32) if minor // 2 not in range(first, first + 8)]
    bodies = (
        node("n", labels=labels, cpu="64", allocatable={"memory": "512Gi"}),
        topology("n", cpus=64, sockets=16),
        report("n", *cards_of_16),
        taken("x", "gpu", *others),
        cards("8", 16),
    )
    assert placed(*bodies)["gpu"] == list(range(2 * first, 2 * first + 16))


@given(
    used=st.sets(st.integers(0, 7)),
    networked=st.sets(st.integers(0, 3)),
    busy=st.sets(st.integers(0, 7)),
    cpus=st.integers(1, 4),
    gpus=st.integers(1, 4),
    nics=st.integers(0, 2),
)
def test_one_numa_node_is_found_exactly_where_one_has_everything(
    *, used: set[int], networked: set[int], busy: set[int], cpus: int, gpus: int, nics: int
) -> None:
    """Compared with a look at both nodes; what was given is on one of them, and was free."""
    running = [
        *([taken("x", "gpu", *used)] if used else []),
        *([taken("y", "rdma", *networked)] if networked else []),
        *(
            [bound("z", "1", {STATUS: {"cpuset": ",".join(map(str, busy))}}, on="n")]
            if busy
            else []
        ),
    ]
    pod = cards(str(cpus), gpus, 100 * nics, binds=True)
    free_cards, free_nics = set(range(8)) - used, set(range(4)) - networked
    free_cpus = set(range(8)) - busy
    able = [
        number
        for number in (0, 1)
        if len({n for n in free_cards if n // 4 == number}) >= gpus
        and len({n for n in free_nics if n // 2 == number}) >= nics
        and len({n for n in free_cpus if n // 4 == number}) >= cpus
    ]
    several = clusters.tried(*cluster("SingleNUMANode", *running, pod))["placements"]
    assert bool(several) is bool(able)
    for placement in several:
        got = minors(placement["devices"]), minors(placement["devices"], "rdma")
        own = cpuset.CPUSet.parse(placement["cpuset"])
        assert set(got[0]) <= free_cards
        assert set(got[1]) <= free_nics
        assert set(own) <= free_cpus
        where = {n // 4 for n in got[0]} | {n // 2 for n in got[1]} | {n // 4 for n in own}
        assert len(where) == 1
        assert where <= set(able)
