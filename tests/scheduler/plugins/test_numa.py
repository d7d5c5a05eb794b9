"""Concrete CPUs and NUMA nodes, as the simulation decides them."""

from __future__ import annotations

import json
import types
from typing import Any, cast

import pytest

from koordlet.model import cpuset
from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.plugins import numa
from koordlet.scheduler.sim import simulation
from tests.kit import clusters, reservations
from tests.kit.clusters import pod
from tests.kit.numa import SPEC, STATUS, bound, cpusets, machine, topology

Body = dict[str, Any]
NUMA = "scheduling.koordinator.sh/numa-topology-spec"


def test_bound_pods_get_whole_cores_of_their_own() -> None:
    """Two pods on one machine never share a CPU, nor a core; others get none."""
    sets = cpusets(machine("n"), topology("n"), bound("a", "2"), bound("b", "2"), pod("c", cpu="1"))
    assert sets == {"d/a": "0-1", "d/b": "4-5", "d/c": None}


def test_cpus_that_somebody_has_are_not_given_again() -> None:
    """Those that a running pod's annotation names, the node's, the kubelet's."""
    holder = bound("h", "2", {STATUS: {"cpuset": "0-1"}}, on="n")
    kubelet = {"kubelet.koordinator.sh/cpu-manager-policy": {"reservedCPUs": "2"}}
    note = {"node.koordinator.sh/reservation": json.dumps({"reservedCPUs": "4-5"})}
    keeper = machine("n")
    keeper["metadata"]["annotations"] = note
    bodies = (keeper, topology("n", notes=kubelet), holder)

    assert cpusets(*bodies, bound("a", "2")) == {"d/a": "6-7"}
    message = clusters.message("b", *bodies, bound("b", "4"))
    assert "1 not enough cpus available to satisfy request." in message


@pytest.mark.parametrize(
    ("first", "second", "cpus"),
    [
        ("PCPULevel", "PCPULevel", "4,6"),
        ("PCPULevel", "None", "1,3"),
        ("None", "PCPULevel", "1,3"),
        ("NUMANodeLevel", "NUMANodeLevel", "1,3"),
        ("unknown", "unknown", "1,3"),
    ],
)
def test_preferred_exclusive_policy_keeps_pods_of_one_policy_on_cores_of_their_own(
    first: str, second: str, cpus: str
) -> None:
    """The first pod spreads over the cores of 0 and 2; only a pod of the same policy avoids them.

    One NUMA node is all there is, so that exclusion from it is given up.
    """

    def spread(name: str, exclusive: str) -> Body:
        policies = {
            "preferredCPUBindPolicy": "SpreadByPCPUs",
            "preferredCPUExclusivePolicy": exclusive,
        }
        return bound(name, "2", {SPEC: policies})

    sets = cpusets(machine("n"), topology("n", sockets=1), spread("a", first), spread("b", second))
    assert sets == {"d/a": "0,2", "d/b": cpus}


def test_messages_are_the_peers() -> None:
    """No topology, broken CPUs, no whole cores left."""
    required = {SPEC: {"requiredCPUBindPolicy": "FullPCPUs"}}
    assert (
        clusters.message("a", machine("n"), bound("a", "2"))
        == "0/1 nodes are available: 1 node(s) invalid CPU Topology."
    )
    assert (
        clusters.message("a", machine("n"), topology("n"), bound("a", "1500m"))
        == "0/1 nodes are available: the requested CPUs must be integer."
    )
    assert (
        clusters.message("a", machine("n"), topology("n"), bound("a", "3", required))
        == "0/1 nodes are available: 1 node(s) requested cpus not multiple cpus per core."
    )
    assert (
        clusters.message(
            "a",
            machine("n"),
            topology("n"),
            bound("h", "4", {STATUS: {"cpuset": "0,2,4,6"}}, on="n"),
            bound("a", "2", required),
        )
        == "0/1 nodes are available: 1 not enough cpus available to satisfy request."
    )


def test_one_numa_node_or_none() -> None:
    """SingleNUMANode refuses what only two nodes together could hold."""
    label = {"node.koordinator.sh/numa-topology-policy": "SingleNUMANode"}
    bodies = (machine("n", labels=label), topology("n"))

    assert cpusets(*bodies, bound("a", "4")) == {"d/a": "0-3"}
    assert "not enough cpus" in clusters.message("a", *bodies, bound("a", "6"))


def test_policies_of_pod_and_node_must_agree() -> None:
    """Another policy than the node's is refused for good."""
    label = {"node.koordinator.sh/numa-topology-policy": "Restricted"}
    wants = {NUMA: {"numaTopologyPolicy": "SingleNUMANode"}}
    message = clusters.message(
        "a", machine("n", labels=label), topology("n"), bound("a", "2", wants)
    )
    assert message == "0/1 nodes are available: 1 node(s) NUMA Topology policy not match."


def test_a_node_may_bind_everybody() -> None:
    """With a bind policy of the node, a pod without labels gets whole cores."""
    label = {"node.koordinator.sh/cpu-bind-policy": "FullPCPUsOnly"}
    bodies = (machine("n", labels=label), topology("n"))

    assert cpusets(*bodies, pod("a", cpu="2")) == {"d/a": "0-1"}
    assert "must be integer" in clusters.message("a", *bodies, pod("a", cpu="500m"))


def test_cpus_that_count_more_than_once() -> None:
    """A bound pod counts as often as the node's CPUs are multiplied."""
    amplified = machine("n")
    amplified["metadata"]["annotations"] = {
        "node.koordinator.sh/resource-amplification-ratio": json.dumps({"cpu": 2.0})
    }
    assert "1 Insufficient amplified cpu" in clusters.message(
        "a", amplified, topology("n"), bound("a", "6")
    )
    assert cpusets(amplified, topology("n"), bound("a", "4")) == {"d/a": "0-3"}


def test_what_a_node_keeps_for_itself_is_not_allocatable() -> None:
    """Amounts are taken off; with ReservedCPUsOnly they are not."""
    reserving, other = machine("n"), machine("n")
    kept = {"reservedCPUs": "0-1", "resources": {"cpu": "7", "memory": "1Gi"}}
    reserving["metadata"]["annotations"] = {"node.koordinator.sh/reservation": json.dumps(kept)}
    only = json.dumps({**kept, "applyPolicy": "ReservedCPUsOnly"})
    other["metadata"]["annotations"] = {"node.koordinator.sh/reservation": only}

    assert clusters.places(reserving, pod("p", cpu="6", memory="31Gi")) == {"p": "n"}
    assert "Insufficient cpu" in clusters.message("p", reserving, pod("p", cpu="7"))
    assert clusters.places(other, pod("p", cpu="8", memory="32Gi")) == {"p": "n"}


def kept(name: str, cpu: str, *, cpus: str = "", app: str = "web", **more: Any) -> Body:
    """A reservation of CPUs by number, for pods of an application."""
    notes = {STATUS: json.dumps({"cpuset": cpus})} if cpus else {}
    meta = {"annotations": notes, "labels": {"koordinator.sh/qosClass": "LSR"}}
    owners = [{"labelSelector": {"matchLabels": {"app": app}}}]
    where = {"on": "a"} if cpus else {}
    return reservations.reservation(
        name, cpu=cpu, owners=owners, meta=meta, **{"allocateOnce": False, **where, **more}
    )


def owner(name: str, cpu: str, app: str = "web", **more: Any) -> Body:
    """A pod that wants CPUs of its own, and may draw on what is kept."""
    body = bound(name, cpu, **more)
    body["metadata"]["labels"] = {**body["metadata"]["labels"], "app": app}
    return body


def test_an_owner_gets_the_cpus_of_its_reservation() -> None:
    """They are its own first; others get none of them, and what is used is used once."""
    here = (machine("a"), topology("a"), kept("r", "4", cpus="2-5"))

    assert cpusets(*here, owner("x", "2")) == {"d/x": "2-3"}
    assert cpusets(*here, owner("x", "2"), owner("y", "2")) == {"d/x": "2-3", "d/y": "4-5"}
    assert cpusets(*here, owner("z", "2", app="job")) == {"d/z": "0-1"}
    assert cpusets(*here, owner("z", "6", app="job")) == {}


def test_restricted_gives_nothing_else() -> None:
    """Aligned goes on with CPUs of the node; Restricted says that there is no room."""
    here = (machine("a"), topology("a"))
    aligned = kept("r", "2", cpus="2-3", allocatePolicy="Aligned")
    restricted = kept("r", "4", cpus="2-3", allocatePolicy="Restricted")

    [taken] = cpusets(*here, aligned, owner("x", "4")).values()
    assert cpuset.CPUSet.parse("2-3") <= cpuset.CPUSet.parse(taken)
    wanted = owner("x", "4")
    wanted["metadata"]["annotations"] |= reservations.affinity(name="r")
    assert "cannot be allocated within its NUMA scope" in reservations.message(
        "x", *here, restricted, wanted
    )


def test_cpus_are_chosen_for_a_reservation() -> None:
    """Its stand-in is bound as a pod would be; a stranger finds the rest, its owner finds them."""
    here = (machine("a"), topology("a"), kept("r", "4"))

    assert cpusets(*here, owner("z", "4", app="job")) == {"d/z": "4-7"}
    assert cpusets(*here, owner("x", "4")) == {"d/x": "0-3"}
    assert cpusets(*here, owner("z", "6", app="job")) == {}


def test_an_owner_that_was_there_before() -> None:
    """What it has of the reservation is not held twice, nor given again."""
    there = owner("x", "2", on="a", notes={STATUS: {"cpuset": "2-3"}})
    there["metadata"]["annotations"] |= reservations.drawn("r")
    here = (machine("a"), topology("a"), kept("r", "4", cpus="2-5"), there)

    assert cpusets(*here, owner("y", "2")) == {"d/y": "4-5"}
    assert cpusets(*here, owner("z", "4", app="job")) == {"d/z": "0-1,6-7"}


def test_amounts_of_a_numa_node_are_handed_over() -> None:
    """14 of 16 GiB of node 0 are reserved: a stranger has to go to node 1, an owner fits on 0."""
    part = {"numaNodeResources": [{"node": 0, "resources": {"cpu": "1", "memory": "14Gi"}}]}
    here = (
        machine("a", labels={"node.koordinator.sh/numa-topology-policy": "SingleNUMANode"}),
        topology("a"),
        reservations.reservation(
            "r",
            cpu="1",
            memory="14Gi",
            on="a",
            allocateOnce=False,
            meta={"annotations": {STATUS: json.dumps(part)}},
        ),
        pod(
            "full",
            on="a",
            memory="14Gi",
            meta={
                "annotations": {
                    STATUS: json.dumps(
                        {"numaNodeResources": [{"node": 1, "resources": {"memory": "14Gi"}}]}
                    )
                }
            },
        ),
    )
    stranger = pod("z", cpu="1", memory="4Gi")
    mine = pod("x", cpu="1", memory="4Gi", labels={"app": "web"})

    assert clusters.places(*here, mine) == {"x": "a"}
    assert clusters.places(*here, stranger) == {}


LABEL = "node.koordinator.sh/numa-topology-policy"
ONE = {LABEL: "SingleNUMANode"}


def parts(*several: tuple[int, str, str]) -> Body:
    """What a running pod was given: NUMA node, CPU, memory."""
    resources = [
        {"node": number, "resources": {"cpu": cpu, "memory": memory}}
        for number, cpu, memory in several
    ]
    return {STATUS: {"numaNodeResources": resources}}


def there(name: str, notes: Body, *, cpu: str = "1", node_name: str = "n") -> Body:
    """A pod that runs, with what was written to it."""
    meta = {"annotations": {key: json.dumps(value) for key, value in notes.items()}}
    return pod(name, on=node_name, cpu=cpu, memory="1Gi", meta=meta)


def room(name: str, *bodies: Body) -> dict[str, int]:
    """What the plugin says of each node for a pod that was placed."""
    loaded = inventory.load(bodies)
    explanation = simulation.Simulation(loaded, explain=f"d/{name}").run().explanation
    assert explanation is not None
    return {
        node: verdict["scores"]["NodeNUMAResource"]["score"]
        for node, verdict in explanation["nodes"].items()
        if verdict["scores"]
    }


def zoned(name: str, cpu: str, memory: str, notes: Body | None = None) -> Body:
    """A pod without CPUs of its own."""
    meta = {"annotations": {key: json.dumps(value) for key, value in (notes or {}).items()}}
    return pod(name, cpu=cpu, memory=memory, meta=meta)


def test_a_node_is_scored_by_the_numa_node_that_would_be_chosen() -> None:
    """Both have as much left; on one of them a NUMA node is empty, and that one counts."""
    bodies = [
        *(machine(name, labels=ONE) for name in ("even", "odd")),
        *(topology(name) for name in ("even", "odd")),
        there("e0", parts((0, "1", "4Gi")), node_name="even"),
        there("e1", parts((1, "1", "4Gi")), node_name="even"),
        there("o0", parts((0, "2", "8Gi")), cpu="2", node_name="odd"),
    ]
    # Of four CPUs and 16 GiB two and eight are left there; on the empty one three and twelve.
    assert room("a", *bodies, zoned("a", "1", "4Gi")) == {"even": 50, "odd": 75}


def test_a_node_without_a_policy_is_scored_as_a_whole() -> None:
    """Eight CPUs and 32 GiB there, four and 16 where NUMA nodes count; for whoever comes."""
    bodies = (machine("n"), machine("z", labels=ONE), topology("n"), topology("z"))
    assert room("a", *bodies, zoned("a", "1", "4Gi")) == {"n": 87, "z": 75}
    assert room("b", *bodies, with_memory(bound("b", "1"), "4Gi")) == {"n": 87, "z": 75}


def with_memory(body: Body, memory: str) -> Body:
    """The same pod, asking for memory too."""
    body["spec"]["containers"][0]["resources"]["requests"]["memory"] = memory
    return body


def test_the_emptier_numa_node_is_taken_or_the_fuller() -> None:
    """As the scorer says; the node's label says otherwise."""
    full = {**ONE, "node.koordinator.sh/numa-allocate-strategy": "MostAllocated"}
    holder = there("h", parts((0, "1", "1Gi")))

    assert cpusets(machine("n", labels=ONE), topology("n"), holder, bound("a", "2")) == {
        "d/a": "4-5"
    }
    assert cpusets(machine("n", labels=full), topology("n"), holder, bound("a", "2")) == {
        "d/a": "0-1"
    }


def test_cpus_are_distributed_evenly_where_the_node_says_so() -> None:
    """Without a NUMA policy from all NUMA nodes in turn; with one from the emptiest set."""
    even = {"node.koordinator.sh/numa-allocate-strategy": "DistributeEvenly"}
    spread = cpusets(machine("n", labels=even), topology("n"), bound("a", "4"), bound("b", "4"))
    assert spread == {"d/a": "0-1,4-5", "d/b": "2-3,6-7"}
    holder = there("h", parts((0, "1", "1Gi")))
    inside = cpusets(machine("n", labels={**ONE, **even}), topology("n"), holder, bound("a", "2"))
    assert inside == {"d/a": "4-5"}


def test_cpu_time_of_a_numa_node_is_given_once() -> None:
    """Three of four CPUs' time is spoken for on node 0, two on node 1: nobody is bound to four."""
    here = (
        machine("n", labels=ONE),
        topology("n"),
        there("h", parts((0, "3", "1Gi")), cpu="3"),
    )
    assert cpusets(*here, bound("a", "4")) == {"d/a": "4-7"}
    also = there("i", {STATUS: {"cpuset": "4-5"}}, cpu="1")
    assert "not enough cpus" in clusters.message("a", *here, also, bound("a", "4"))
    assert clusters.message("a", *here, also, zoned("a", "3", "1Gi")) == (
        "0/1 nodes are available: 1 node(s) NUMA Topology affinity error."
    )
    assert clusters.message("a", *here, also, zoned("a", "4", "1Gi")) == (
        "0/1 nodes are available: 1 Unsatisfied NUMA cpu, 1 Unsatisfied NUMA memory."
    )


def test_who_wants_to_be_alone_sits_on_no_shared_numa_node() -> None:
    """A pod that spans both makes both shared; one that only prefers it comes in."""
    spans = there("h", parts((0, "1", "1Gi"), (1, "1", "1Gi")), cpu="2")
    here = (machine("n"), topology("n"), spans)
    insists = {NUMA: {"numaTopologyPolicy": "SingleNUMANode"}}
    prefers = {
        NUMA: {"numaTopologyPolicy": "SingleNUMANode", "singleNUMANodeExclusive": "Preferred"}
    }
    assert "NUMA Topology affinity" in clusters.message("a", *here, zoned("a", "1", "1Gi", insists))
    assert clusters.places(*here, zoned("a", "1", "1Gi", prefers)) == {"a": "n"}


def test_who_wants_to_be_alone_spans_no_single_numa_node() -> None:
    """Restricted would span both; somebody has one of them and no other."""
    here = (machine("n"), topology("n"), there("h", parts((0, "1", "1Gi"))))
    wide = {NUMA: {"numaTopologyPolicy": "Restricted"}}
    loose = {NUMA: {"numaTopologyPolicy": "Restricted", "singleNUMANodeExclusive": "Preferred"}}
    assert "NUMA Topology affinity" in clusters.message("a", *here, zoned("a", "5", "1Gi", wide))
    assert clusters.places(*here, zoned("a", "5", "1Gi", loose)) == {"a": "n"}


def test_cpus_of_a_numa_node_count_as_often_as_the_nodes() -> None:
    """Twice: eight of a NUMA node's four; two that are bound take four of them, two are kept."""
    amplified = machine("n", labels=ONE)
    amplified["status"]["allocatable"]["cpu"] = "16"
    ratio = {"node.koordinator.sh/resource-amplification-ratio": json.dumps({"cpu": 2.0})}
    amplified["metadata"]["annotations"] = ratio
    binder = there("h", {STATUS: {"cpuset": "0-1"}}, cpu="2")
    kubelet = {"kubelet.koordinator.sh/cpu-manager-policy": {"reservedCPUs": "4-5"}}
    here = (amplified, topology("n", notes=kubelet), binder)

    assert clusters.places(*here, zoned("a", "4", "1Gi")) == {"a": "n"}
    assert "NUMA Topology affinity" in clusters.message("a", *here, zoned("a", "5", "1Gi"))
    assert clusters.places(amplified, topology("n"), zoned("a", "8", "1Gi")) == {"a": "n"}


def test_a_pod_on_a_machine_without_nodes_is_told_its_cpus_alone() -> None:
    """-1 stands for no node at all: no agent would take it for the number of one."""
    placed = types.SimpleNamespace(cpus=cpuset.CPUSet.parse("0-1"), parts={-1: {"cpu": 2000}})

    assert numa.spelled(cast("Any", placed)) == {"cpuset": "0-1"}
