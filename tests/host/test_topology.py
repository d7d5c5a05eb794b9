"""Discovery reads our fixture machines right, and survives whatever is in the files."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from koordlet.host import archive, root, roots, tarindex
from koordlet.host import topology as discovery
from koordlet.model import cpuset, topology
from koordlet.report import topology_json
from tests.kit import machines

FIXTURES = Path(__file__).parents[2] / "fixtures" / "sysfs"
CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"


def index_of(tree: machines.Tree) -> tarindex.Entry:
    """The tree as an archive's index, without an archive."""
    top = tarindex.Entry(root.Kind.DIRECTORY, inode=1)
    for name, content in tree.items():
        here = top
        *folders, last = name.split("/")
        for part in folders:
            here = here.children.setdefault(part, tarindex.Entry(root.Kind.DIRECTORY, inode=2))
        entry = tarindex.Entry(root.Kind.FILE, inode=3, data=content.encode("utf-8", "replace"))
        if content.startswith("->"):
            entry = tarindex.Entry(root.Kind.LINK, inode=3, link=content[2:])
        here.children[last] = entry
    return top


def host_of(tree: machines.Tree) -> root.HostRoot:
    """A root that answers from the tree, without a disk."""
    return archive.ArchiveHost(index_of(tree))


def discover(tree: machines.Tree) -> topology.Topology:
    """Discovery on a tree."""
    return discovery.discover(host_of(tree))


def groups(machine: topology.Topology, column: str) -> list[str]:
    """A column's groups as lists, in the order of their numbers, which must be dense."""
    members: dict[int, list[int]] = {}
    for one in machine.cpus:
        number = getattr(one, column)
        if number is not None:
            members.setdefault(number, []).append(one.cpu)
    assert list(range(len(members))) == sorted(members)
    return [machines.ranges(members[number]) for number in sorted(members)]


def summary(machine: topology.Topology) -> dict[str, object]:
    """The machine in the form of the hand-written answers."""
    caches: dict[str, int] = {}
    for one in machine.caches:
        name = f"{one.level} {one.type}"
        caches[name] = caches.get(name, 0) + 1
    ids = {one.l3: one.l3_id for one in machine.cpus if one.l3 is not None}
    return {
        "present": str(machine.present),
        "online": str(machine.online),
        "isolated": str(machine.isolated),
        "nohz_full": str(machine.nohz_full),
        "cores": groups(machine, "core"),
        "sockets": groups(machine, "socket"),
        "l3": groups(machine, "l3"),
        "l3_ids": [ids[number] for number in sorted(ids)],
        "nodes": {
            str(one.node): {
                "cpus": str(one.cpus),
                "memory_bytes": one.memory_bytes,
                "distances": list(one.distances),
            }
            for one in machine.nodes
        },
        "memory_nodes": str(machine.memory_nodes),
        "caches": caches,
        "smt": machine.smt,
        "vendor": machine.vendor,
        "arch": machine.arch,
        "warnings": len(machine.warnings),
    }


@pytest.mark.parametrize("name", machines.SHAPES)
def test_fixture(name: str) -> None:
    """Each fixture machine is read as its hand-written answer says."""
    expected = json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))

    machine = discovery.discover(roots.open_root(str(FIXTURES / f"{name}.tar.gz")))

    assert expected == summary(machine)


@pytest.mark.parametrize("name", machines.SHAPES)
def test_fixture_is_what_the_generator_makes(name: str) -> None:
    """The archives on disk hold what the generator makes now."""
    made = host_of(machines.SHAPES[name]())

    kept = discovery.discover(roots.open_root(str(FIXTURES / f"{name}.tar.gz")))

    assert discovery.discover(made) == kept


def test_directory_and_archive_agree(tmp_path: Path) -> None:
    """The same machine as a directory and as an archive is an equal value."""
    tree = machines.xeon_2s_smt2()
    machines.to_directory(tree, tmp_path)

    assert discover(tree) == discovery.discover(root.DirHost(str(tmp_path)))


# Columns ----------------------------------------------------------------------------------------


def test_no_id_is_null() -> None:
    """The ids -1 and 65535 are null, and huge ids are kept."""
    xeon = discover(machines.xeon_2s_smt2()).cpus[0]
    holes = discover(machines.ids_with_holes()).cpus[2]

    assert (None, 0) == (xeon.cluster_id, xeon.package_id)
    assert (None, 3216) == (holes.die_id, holes.package_id)


def test_frequency_governor_capacity() -> None:
    """What tells big CPUs from little ones is read where it exists."""
    hybrid = discover(machines.hybrid_pe()).cpus
    arm = discover(machines.arm_no_nodes()).cpus

    assert (5_000_000, "powersave") == (hybrid[0].max_khz, hybrid[0].governor)
    assert 3_800_000 == hybrid[7].max_khz
    assert [446] * 4 + [1024] * 2 == [one.capacity for one in arm]


def test_books_and_drawers() -> None:
    """The levels above the socket are kept as the kernel numbers them."""
    cpus = discover(machines.s390_books()).cpus

    assert [(0, 0)] * 4 + [(1, 1)] * 2 == [(one.book_id, one.drawer_id) for one in cpus]


def test_hugepages_per_node() -> None:
    """Each node has its own pages of each size."""
    nodes = discover(machines.xeon_2s_smt2()).nodes

    assert {"2048kB": topology.HugePages(total=16, free=1)} == dict(nodes[1].hugepages)


def test_flags_say_what_the_cpu_can_do() -> None:
    """Flags come from the first processor."""
    assert {"cat_l3", "mba"} <= set(discover(machines.xeon_2s_smt2()).flags)


def test_offline_cpu_is_listed_without_place() -> None:
    """An offline CPU is listed, in no core, socket, node or L3."""
    cpu = discover(machines.power_smt4()).cpus[10]

    assert topology.Cpu(cpu=10, online=False) == cpu


# Fallbacks --------------------------------------------------------------------------------------


def test_no_lists_at_all() -> None:
    """Without any list file the directories say what is present, cpuN/online what runs."""
    tree = machines.power_smt4()
    for name in ("possible", "present", "online", "offline"):
        del tree[f"{CPU}/{name}"]

    machine = discover(tree)

    assert ("0-15", "0-9,12-15", "10-11") == (
        str(machine.present),
        str(machine.online),
        str(machine.offline),
    )


def test_ids_serve_where_no_sibling_file_does() -> None:
    """Without sibling files cores and sockets come from ids, which repeat across packages."""
    tree = {
        name: text
        for name, text in machines.xeon_2s_smt2().items()
        if "siblings" not in name and "_cpus" not in name
    }

    machine = discover(tree)

    assert ["0-3,8-11", "4-7,12-15"] == groups(machine, "socket")
    assert ["0,8", "1,9", "2,10", "3,11", "4,12", "5,13", "6,14", "7,15"] == groups(machine, "core")


def test_cpu_without_topology_directory_belongs_to_who_names_it() -> None:
    """An online CPU without a directory of its own is where its siblings say it is."""
    tree = {
        name: text
        for name, text in machines.xeon_2s_smt2().items()
        if not name.startswith(f"{CPU}/cpu8/topology")
    }

    machine = discover(tree)

    assert "0,8" in groups(machine, "core")
    assert ["0-3,8-11", "4-7,12-15"] == groups(machine, "socket")


def test_cpuinfo_is_the_last_resort() -> None:
    """Where sysfs shows no topology at all, the ids of x86 cpuinfo serve."""
    block = "processor\t: {0}\nvendor_id\t: GenuineIntel\nphysical id\t: {1}\ncore id\t: {2}\n\n"
    tree = {
        f"{CPU}/online": "0-3\n",
        **{f"{CPU}/cpu{cpu}/online": "1\n" for cpu in range(4)},
        "proc/cpuinfo": "".join(block.format(cpu, cpu // 2, 0) for cpu in range(4)),
    }

    machine = discover(tree)

    assert (["0-1", "2-3"], ["0-1", "2-3"]) == (groups(machine, "socket"), groups(machine, "core"))


def test_link_gives_the_node_where_no_node_names_the_cpu() -> None:
    """Without cpulist and cpumap the links between CPU and node remain."""
    tree = machines.xeon_2s_smt2()
    for name in ("cpulist", "cpumap"):
        del tree[f"{NODE}/node1/{name}"]

    assert ["0-3,8-11", "4-7,12-15"] == [str(one.cpus) for one in discover(tree).nodes]


def test_old_boot_parameter_names_isolated_cpus() -> None:
    """Before the kernel listed isolated CPUs, the boot parameter did; its flags are no CPUs."""
    tree = machines.power_smt4()
    tree["proc/cmdline"] = "quiet isolcpus=domain,managed_irq,4-7,12 root=x\n"

    assert "4-7,12" == str(discover(tree).isolated)


def test_nul_padding_is_no_damage() -> None:
    """Lists padded with NUL bytes, as old kernels print them, are read without a warning."""
    tree = machines.xeon_2s_smt2()
    tree[f"{NODE}/online"] = "0-1\n\0\0\0"

    machine = discover(tree)

    assert ([0, 1], ()) == ([one.node for one in machine.nodes], machine.warnings)


@pytest.mark.parametrize(
    ("control", "active", "expected"),
    [
        ("forceoff", "0", "forceoff"),
        ("notimplemented", "0", "notimplemented"),
        ("2", "1", "on"),
        (None, "1", "on"),
        (None, "0", None),
        ("\x01", "1", "on"),
    ],
)
def test_smt(control: str | None, active: str, expected: str | None) -> None:
    """The state is the kernel's word, "on" where threads are active, else unknown."""
    tree = {f"{CPU}/present": "0", f"{CPU}/smt/active": active}
    if control is not None:
        tree[f"{CPU}/smt/control"] = control

    assert expected == discover(tree).smt


# Damage -----------------------------------------------------------------------------------------


def warned(machine: topology.Topology, *words: str) -> bool:
    """Whether one warning holds all of these."""
    return any(all(word in warning for word in words) for warning in machine.warnings)


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

    machine = discovery.discover(root.DirHost(str(tmp_path)))

    assert "0-15" == str(machine.online)
    assert warned(machine, "cpu/online", "not a regular file")


def test_nothing_at_all() -> None:
    """An empty root is a machine without CPUs, and says so."""
    machine = discover({})

    assert ((), ()) == (machine.cpus, machine.nodes)
    assert warned(machine, "lists no CPU")


def check_contract(document: dict[str, object]) -> None:
    """The parts of the contract that hold for every machine, damaged or not."""
    text = json.dumps(document)
    again = json.loads(text)
    present = set(cpuset.CPUSet.parse(again["present"]))
    online = set(cpuset.CPUSet.parse(again["online"]))
    assert [one["cpu"] for one in again["cpus"]] == sorted(present)
    for one in again["cpus"]:
        assert one["online"] == (one["cpu"] in online)
    for column in ("core", "socket", "l3"):
        seen: list[int] = []
        for one in again["cpus"]:
            if one[column] is not None and one[column] not in seen:
                seen.append(one[column])
        assert seen == list(range(len(seen)))
    ids = [one["node"] for one in again["nodes"]]
    assert ids == sorted(set(ids))
    for one in again["nodes"]:
        assert one["distances"] is None or len(one["distances"]) == len(ids)
    for one in again["cpus"]:
        assert one["node"] is None or one["node"] in ids


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


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    name=st.sampled_from(sorted(machines.SHAPES)),
    seed=st.integers(0, 2**32),
    hits=st.integers(1, 40),
    extra=st.lists(st.text(max_size=40), max_size=5),
)
def test_random_damage(name: str, seed: int, hits: int, extra: list[str]) -> None:
    """Whatever happens to any of the files, discovery answers within the contract."""
    tree = machines.SHAPES[name]()
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

    check_contract(topology_json.document(discover(tree)))


# Rescan -----------------------------------------------------------------------------------------


class Counting(archive.ArchiveHost):
    """Counts what is read."""

    reads = 0

    def read(self, path: root.HostPath) -> bytes:
        """Read and count."""
        self.reads += 1
        return super().read(path)


def test_rescan_without_change_reads_three_files() -> None:
    """Nothing changed: the very same object, after reading three files."""
    counting = Counting(index_of(machines.xeon_2s_smt2()))
    before = discovery.discover(counting)
    counting.reads = 0

    after = discovery.rescan(counting, before)

    assert before is after
    assert 3 == counting.reads


def test_rescan_sees_a_cpu_go_offline() -> None:
    """A CPU that went offline is in no core any more."""
    tree = machines.xeon_2s_smt2()
    before = discover(tree)
    tree[f"{CPU}/online"] = "0-7,9-15\n"
    tree[f"{CPU}/offline"] = "8\n"

    after = discovery.rescan(host_of(tree), before)

    assert ("8", None) == (str(after.offline), after.cpus[8].core)
    assert "0" == groups(after, "core")[0]


def test_rescan_of_a_contradictory_machine_is_stable() -> None:
    """A machine whose lists contradict each other does not change with each look."""
    tree = machines.xeon_2s_smt2()
    tree[f"{CPU}/online"] = "0-15,40\n"
    before = discover(tree)

    assert before is discovery.rescan(host_of(tree), before)
