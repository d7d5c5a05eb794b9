"""Whatever is in the files: null and a warning for what is damaged, and the rest stands."""

from __future__ import annotations

import os
import random
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from koordlet.host import directory
from koordlet.host import topology as discovery
from koordlet.report import topology_json, topology_svg
from tests.kit import machines
from tests.kit.topologies import check_contract, discover, groups, warned

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"


def test_cpu_in_two_nodes() -> None:
    """A CPU that two nodes claim has no node; the warning names the files and what they hold."""
    tree = machines.xeon_2s_smt2()
    tree[f"{NODE}/node1/cpulist"] = "3-7,12-15\n"

    machine = discover(tree)

    assert [None, 0, 1] == [machine.cpus[cpu].node for cpu in (3, 2, 4)]
    assert warned(machine, "node1/cpulist", "3-7,12-15", "more than one node")


def test_one_dissenter_is_outvoted() -> None:
    """A CPU that contradicts the rest of its socket has none; the socket stands."""
    tree = machines.xeon_2s_smt2()
    tree[f"{CPU}/cpu5/topology/package_cpus_list"] = "0-3,5\n"

    machine = discover(tree)

    assert ["0-3,8-11", "4,6-7,12-15"] == groups(machine, "socket")
    assert warned(machine, "cpu5", "0-3,5")


def test_even_votes_decide_nothing() -> None:
    """Two threads that disagree whether they are siblings have no known core."""
    tree = machines.xeon_2s_smt2()
    tree[f"{CPU}/cpu1/topology/core_cpus_list"] = "1\n"

    machine = discover(tree)

    assert (None, None) == (machine.cpus[1].core, machine.cpus[9].core)
    assert 7 == len(groups(machine, "core"))


def test_online_outside_possible() -> None:
    """CPUs that only the online list knows are not there; the rest stands."""
    tree = machines.xeon_2s_smt2()
    tree[f"{CPU}/online"] = "0-15,40-41\n"

    machine = discover(tree)

    assert "0-15" == str(machine.online)
    assert warned(machine, "cpu/online", "0-15,40-41")


@pytest.mark.parametrize("content", ["", "\0\0", "0-", "\x7fELF\x02", "0-3,zebra", "9" * 70_000])
def test_damaged_online_list(content: str) -> None:
    """A list that makes no sense is replaced by what the CPUs say, with a warning."""
    tree = machines.xeon_2s_smt2()
    tree[f"{CPU}/online"] = content

    machine = discover(tree)

    assert "0-15" == str(machine.online)
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

    assert (None, None, ()) == (
        machine.cpus[0].core_id,
        machine.nodes[0].memory_bytes,
        machine.nodes[0].distances,
    )
    for name in ("core_id", "index3/size", "node0/meminfo", "node0/distance"):
        assert warned(machine, name)


def test_pipe_in_a_recording_is_not_waited_for(tmp_path: Path) -> None:
    """A recorded tree that holds a pipe in place of a file is read without it."""
    machines.to_directory(machines.xeon_2s_smt2(), tmp_path)
    (tmp_path / CPU / "online").unlink()
    os.mkfifo(tmp_path / CPU / "online")

    machine = discovery.discover(directory.DirHost(str(tmp_path)))

    assert "0-15" == str(machine.online)
    assert warned(machine, "cpu/online", "not a regular file")


def test_nothing_at_all() -> None:
    """An empty root is a machine without CPUs, and says so."""
    machine = discover({})

    assert ((), ()) == (machine.cpus, machine.nodes)
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
