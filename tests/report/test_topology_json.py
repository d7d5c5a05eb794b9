"""The topology document has the keys and types of the contract."""

from __future__ import annotations

from koordlet.model import cpuset, ledger, topology
from koordlet.report import topology_json

REQUIRED = {
    "version", "cpus", "nodes", "possible", "present", "online", "offline", "isolated",
    "nohz_full", "smt", "vendor", "arch", "warnings",
}  # fmt: skip
CPU = {
    "cpu", "online", "core", "socket", "node", "l3", "core_id", "package_id", "die_id",
    "cluster_id", "l3_id",
}  # fmt: skip


def test_empty_machine() -> None:
    """Every key is there even if nothing is known."""
    document = topology_json.document(topology.Topology())

    assert set(document) >= REQUIRED
    assert tuple(document[key] for key in ("version", "cpus", "nodes", "online", "smt")) == (
        "v1",
        [],
        [],
        "",
        None,
    )


def test_cpu_columns() -> None:
    """Unknown columns are null; optional ones are left out where unknown."""
    rows = (topology.Cpu(cpu=0, core=0), topology.Cpu(cpu=1, online=False, capacity=512))

    cpus = topology_json.document(topology.Topology(cpus=rows))["cpus"]

    assert isinstance(cpus, list)
    assert set(cpus[0]) == CPU
    assert CPU | {"capacity"} == set(cpus[1])
    assert (cpus[0]["core"], cpus[0]["node"], cpus[1]["online"]) == (0, None, False)


def test_node() -> None:
    """A node has its CPUs as a list, its distances in the order of nodes, pages by size."""
    node = topology.Node(
        node=4,
        cpus=cpuset.CPUSet.parse("0-3,8-11"),
        memory_bytes=1 << 30,
        distances=(10, 21),
        hugepages={"2048kB": topology.HugePages(total=2, free=1)},
    )

    nodes = topology_json.document(topology.Topology(nodes=(node,)))["nodes"]

    assert nodes == [
        {
            "node": 4,
            "cpus": "0-3,8-11",
            "memory_bytes": 1 << 30,
            "distances": [10, 21],
            "hugepages": {"2048kB": {"total": 2, "free": 1}},
        }
    ]


def test_unknown_distances_are_null() -> None:
    """A node whose distances are unknown says so."""
    nodes = topology_json.document(topology.Topology(nodes=(topology.Node(node=0),)))["nodes"]

    assert isinstance(nodes, list)
    assert nodes[0]["distances"] is None


def test_caches_and_devices() -> None:
    """Caches and devices are listed as the contract names their columns."""
    machine = topology.Topology(
        caches=(
            topology.Cache(
                level=3, type="Unified", id=1, bytes=4096, ways=None, cpus=cpuset.CPUSet.of([1])
            ),
        ),
        devices=(topology.Device(address="0000:00:01.0", device_class="0x020000", node=1),),
    )

    document = topology_json.document(machine)

    assert document["caches"] == [
        {"level": 3, "type": "Unified", "id": 1, "bytes": 4096, "ways": None, "cpus": "1"}
    ]
    assert document["devices"] == [
        {
            "address": "0000:00:01.0",
            "class": "0x020000",
            "kind": None,
            "driver": None,
            "node": 1,
            "name": None,
        }
    ]


def test_a_cpu_outside_of_the_cgroup_tree_is_not_free() -> None:
    """Nobody has claimed it, and nobody can; one that is offline is offline in the first place."""
    rows = tuple(topology.Cpu(cpu=cpu, online=cpu < 3) for cpu in range(4))
    machine = topology.Topology(
        cpus=rows, online=cpuset.CPUSet.parse("0-2"), present=cpuset.CPUSet.parse("0-3")
    )

    assert topology_json.owners(machine, ledger.Ledger(), cpuset.CPUSet.parse("2-3")) == {
        0: "free",
        1: "free",
        2: "outside",
        3: "offline",
    }
