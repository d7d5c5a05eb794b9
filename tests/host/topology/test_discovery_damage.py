"""Whatever is in the files: null and a warning for what is damaged, and the rest stands."""

from __future__ import annotations

import os
import random
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from koordlet.host.recording import directory
from koordlet.host.topology import discovery
from koordlet.report import topology_json, topology_svg
from tests.kit import machines
from tests.kit.topologies import check_contract, discover, groups, warned

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"


def test_cpu_in_two_nodes() -> None:
    """Of the nodes that claim a CPU its own link decides, else where the rest of its core is."""
    tree = machines.xeon_2s_smt2()
    tree[f"{NODE}/node1/cpulist"] = "3-7,12-15\n"
    by_core = discover(tree)
    tree[f"{CPU}/cpu3/node1/cpulist"] = ""
    by_link = discover(tree)

    assert [by_core.cpus[cpu].node for cpu in (3, 2, 4)] == [0, 0, 1]
    assert [by_link.cpus[cpu].node for cpu in (3, 2, 4)] == [1, 0, 1]
    assert [str(node.cpus) for node in by_core.nodes] == ["0-3,8-11", "4-7,12-15"]
    assert [str(node.cpus) for node in by_link.nodes] == ["0-2,8-11", "3-7,12-15"]
    assert warned(by_core, "node1/cpulist", "3-7,12-15", "more than one node")


def test_a_core_in_two_nodes() -> None:
    """Without a link, and with the whole core claimed by both, nobody knows the node."""
    tree = machines.xeon_2s_smt2()
    tree[f"{NODE}/node1/cpulist"] = "3-7,11-15\n"

    machine = discover(tree)

    assert [machine.cpus[cpu].node for cpu in (3, 11, 2)] == [None, None, 0]


def test_one_dissenter_goes_by_its_ids() -> None:
    """A CPU that contradicts the rest of its socket is where its ids say, with a warning."""
    tree = machines.xeon_2s_smt2()
    tree[f"{CPU}/cpu5/topology/package_cpus_list"] = "0-3,5\n"

    machine = discover(tree)

    assert groups(machine, "socket") == ["0-3,8-11", "4-7,12-15"]
    assert warned(machine, "cpu5", "0-3,5")


def test_even_votes_are_decided_by_ids() -> None:
    """Two threads that disagree whether they are siblings go by their ids; without, by nothing."""
    tree = machines.xeon_2s_smt2()
    tree[f"{CPU}/cpu1/topology/core_cpus_list"] = "1\n"
    by_ids = discover(tree)
    for cpu in (1, 9):
        del tree[f"{CPU}/cpu{cpu}/topology/core_id"]
    untold = discover(tree)

    assert [group for group in groups(by_ids, "core") if group.startswith("1,")] == ["1,9"]
    assert (untold.cpus[1].core, untold.cpus[9].core) == (None, None)
    assert len(groups(untold, "core")) == 7


def test_sockets_whose_ids_repeat() -> None:
    """Ids that more than one socket has decide nothing about a CPU that was outvoted."""
    tree = machines.xeon_2s_smt2()
    for cpu in range(16):
        tree[f"{CPU}/cpu{cpu}/topology/physical_package_id"] = "0\n"
    tree[f"{CPU}/cpu5/topology/package_cpus_list"] = "0-3,5\n"

    assert groups(discover(tree), "socket") == ["0-3,8-11", "4,6-7,12-15"]


def test_caches_without_levels() -> None:
    """Where levels are missing, the order of a CPU's caches says them; from a gap on nothing."""
    tree = machines.xeon_2s_smt2()
    whole = discover(tree)
    for name in [name for name in tree if name.endswith("/level")]:
        del tree[name]
    ordered = discover(tree)
    for name in [name for name in tree if "/index1/" in name]:
        del tree[name]
    broken = discover(tree)

    assert (groups(whole, "l3"), whole.caches) == (groups(ordered, "l3"), ordered.caches)
    assert warned(ordered, "index3/level", "from the order")
    assert groups(broken, "l3") == []


def test_distances_beside_an_offline_node() -> None:
    """A row has a column for a node that is offline, too: those that run keep their distances."""
    tree = machines.xeon_2s_smt2()
    for name in [name for name in tree if f"{NODE}/node0/" in name]:
        del tree[name]
    tree |= {f"{NODE}/online": "1\n", f"{NODE}/possible": "0-1\n"}
    tree[f"{NODE}/node1/distance"] = "21 10\n"

    assert [(node.node, node.distances) for node in discover(tree).nodes] == [(1, (10,))]


def test_online_outside_possible() -> None:
    """CPUs that only the online list knows are not there; the rest stands."""
    tree = machines.xeon_2s_smt2()
    tree[f"{CPU}/online"] = "0-15,40-41\n"

    machine = discover(tree)

    assert str(machine.online) == "0-15"
    assert warned(machine, "cpu/online", "0-15,40-41")


@pytest.mark.parametrize("content", ["", "\0\0", "0-", "\x7fELF\x02", "0-3,zebra", "9" * 70_000])
def test_damaged_online_list(content: str) -> None:
    """A list that makes no sense is replaced by what the CPUs say, with a warning."""
    tree = machines.xeon_2s_smt2()
    tree[f"{CPU}/online"] = content

    machine = discover(tree)

    assert str(machine.online) == "0-15"
    assert warned(machine, "cpu/online")


def test_damaged_sibling_list_falls_back() -> None:
    """A sibling list that makes no sense is replaced by the next form of the same fact."""
    tree = machines.xeon_2s_smt2()
    tree[f"{CPU}/cpu0/topology/core_cpus_list"] = "0,\xff"

    machine = discover(tree)

    assert "0,8" in groups(machine, "core")
    assert warned(machine, "cpu0/topology/core_cpus_list")


def test_damaged_numbers_are_null() -> None:
    """Ids, sizes, memory, distances that are no numbers are unknown, each with a warning."""
    tree = machines.xeon_2s_smt2()
    tree[f"{CPU}/cpu0/topology/core_id"] = "one"
    tree[f"{CPU}/cpu0/cache/index3/size"] = "big"
    tree[f"{NODE}/node0/meminfo"] = "Node 0 MemFree: 1 kB\n"
    tree[f"{NODE}/node0/distance"] = "10 x"

    machine = discover(tree)

    assert (
        machine.cpus[0].core_id,
        machine.nodes[0].memory_bytes,
        machine.nodes[0].distances,
    ) == (None, None, ())
    for name in ("core_id", "index3/size", "node0/meminfo", "node0/distance"):
        assert warned(machine, name)


def test_pipe_in_a_recording_is_not_waited_for(tmp_path: Path) -> None:
    """A recorded tree that holds a pipe in place of a file is read without it."""
    machines.to_directory(machines.xeon_2s_smt2(), tmp_path)
    (tmp_path / CPU / "online").unlink()
    os.mkfifo(tmp_path / CPU / "online")

    machine = discovery.discover(directory.DirHost(str(tmp_path)))

    assert str(machine.online) == "0-15"
    assert warned(machine, "cpu/online", "not a regular file")


def test_nothing_at_all() -> None:
    """An empty root is a machine without CPUs, and says so."""
    machine = discover({})

    assert (machine.cpus, machine.nodes) == ((), ())
    assert warned(machine, "lists no CPU")


DAMAGE = (
    "",
    "\0",
    "-1",
    "0",
    "1",
    "0-",
    "7-3",
    "0-65535:1/2",
    "0-65535",
    "ffffffff,ffffffff",
    "99999999999999999999",
    "\x7fELF\x01\x02",
    "\u0663",
    "all",
    "(null)",
    "->../../../../etc/passwd",
    "->.",
    "x" * 100_000,
)


#: A device of the second node, so that its files are damaged, too.
NIC = {
    "sys/bus/pci/devices/0000:3b:00.0": "->../../../devices/pci0000:00/0000:3b:00.0",
    "sys/devices/pci0000:00/0000:3b:00.0/class": "0x020000\n",
    "sys/devices/pci0000:00/0000:3b:00.0/numa_node": "1\n",
    "sys/devices/pci0000:00/0000:3b:00.0/driver": "->../../../bus/pci/drivers/ice",
    "sys/class/net/eth0": "->../../devices/pci0000:00/0000:3b:00.0/net/eth0",
}


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    name=st.sampled_from(sorted(machines.SHAPES)),
    seed=st.integers(0, 2**32),
    hits=st.integers(1, 40),
    extra=st.lists(st.text(max_size=40), max_size=5),
)
def test_random_damage(name: str, seed: int, hits: int, extra: list[str]) -> None:
    """Whatever happens to any of the files, the answer keeps the contract and has a picture."""
    tree = machines.SHAPES[name]() | NIC
    chance = random.Random(seed)
    for path in chance.choices(sorted(tree), k=hits):
        how = chance.randrange(4)
        if how == 0:
            tree.pop(path, None)
        elif how == 1 and path in tree:
            tree[path] = tree[path][: chance.randrange(len(tree[path]) + 1)]
        elif how == 2 and path in tree:
            tree[path] = tree[chance.choice(sorted(tree))]
        else:
            tree[path] = chance.choice((*DAMAGE, *extra))

    machine = discover(tree)
    check_contract(topology_json.document(machine))
    assert ET.fromstring(topology_svg.picture(machine)) is not None  # noqa: S314 -- our own


_FACTS = ("topology/core_cpus_list", "topology/package_cpus_list", "cache/index3/level")


@given(
    name=st.sampled_from(("xeon_2s_smt2", "epyc_ccd", "snc_interleaved")),
    fact=st.sampled_from(_FACTS),
    chance=st.randoms(use_true_random=False),
    damage=st.sampled_from((None, "", "x", "0", "0-1", "4096", "-1")),
)
def test_what_is_not_contradictory_is_kept(
    name: str, fact: str, chance: random.Random, damage: str | None
) -> None:
    """One damaged file of one CPU costs no CPU its core, its socket, its node or its cache."""
    tree = getattr(machines, name)()
    whole = discover(tree)
    path = chance.choice(sorted(file for file in tree if file.endswith(fact)))
    if damage is None:
        del tree[path]
    else:
        tree[path] = damage
    machine = discover(tree)

    for column in ("core", "socket", "node", "l3"):
        kept = [getattr(cpu, column) for cpu in machine.cpus]
        assert [getattr(cpu, column) for cpu in whole.cpus] == kept
