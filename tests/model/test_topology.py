"""The topology value answers what policies ask of it."""

from __future__ import annotations

from koordlet.model import cpuset, topology


def machine(*cpus: topology.Cpu) -> topology.Topology:
    """A machine of these CPUs."""
    return topology.Topology(cpus=cpus)


def two_nodes() -> topology.Topology:
    """CPUs 0-3, siblings 0,2 and 1,3, one node each; CPU 4 offline, CPU 5 without a node."""
    rows = [
        topology.Cpu(cpu=cpu, core=cpu % 2, socket=0, node=cpu % 2 * 8, l3=0) for cpu in range(4)
    ]
    return machine(*rows, topology.Cpu(cpu=4, online=False), topology.Cpu(cpu=5))


def test_by_node_loses_nothing() -> None:
    """A split by node covers the set, CPUs without a node included, ordered by lowest CPU."""
    parts = two_nodes().by_node(cpuset.CPUSet.parse("0-5"))

    assert [(socket, node, str(cpus)) for socket, node, cpus in parts] == [
        (0, 0, "0,2"),
        (0, 8, "1,3"),
        (None, None, "4-5"),
    ]


def test_cores_are_online_siblings() -> None:
    """Cores come in order; a CPU of unknown core stands alone, an offline one in none."""
    assert [str(core) for core in two_nodes().cores()] == ["0,2", "1,3", "5"]


def test_equal_machines_are_equal() -> None:
    """Two readings of the same machine are one value."""
    assert two_nodes() == two_nodes()
