"""Discovery reads our fixture machines right, with whatever fallback their kernels ask for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from koordlet.host.fs import root
from koordlet.host.recording import archive, directory, roots, tarindex
from koordlet.host.topology import discovery
from koordlet.model import topology
from tests.kit import large_machines, machines, topologies
from tests.kit.topologies import discover, groups

FIXTURES = Path(__file__).parents[3] / "fixtures" / "sysfs"
CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"


@pytest.mark.parametrize("name", sorted(path.stem for path in FIXTURES.glob("*.json")))
def test_fixture(name: str) -> None:
    """Each fixture machine is read as its answer says, which was written without koordlet."""
    expected = json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))

    machine = discovery.discover(roots.open_root(str(FIXTURES / f"{name}.tar.gz")))

    summary = topologies.summary(machine)
    assert {key: summary[key] for key in expected} == expected


@pytest.mark.parametrize("name", machines.SHAPES)
def test_fixture_is_what_the_generator_makes(name: str) -> None:
    """The archives on disk hold what the generator makes now."""
    made = machines.to_host(machines.SHAPES[name]())

    kept = discovery.discover(roots.open_root(str(FIXTURES / f"{name}.tar.gz")))

    assert discovery.discover(made) == kept


def test_directory_and_archive_agree(tmp_path: Path) -> None:
    """The same machine as a directory and as an archive is an equal value."""
    tree = machines.xeon_2s_smt2()
    machines.to_directory(tree, tmp_path)

    assert discover(tree) == discovery.discover(directory.DirHost(str(tmp_path)))


# Columns ----------------------------------------------------------------------------------------


def test_no_id_is_null() -> None:
    """The ids -1 and 65535 are null, and huge ids are kept."""
    xeon = discover(machines.xeon_2s_smt2()).cpus[0]
    holes = discover(machines.ids_with_holes()).cpus[2]

    assert (xeon.cluster_id, xeon.package_id) == (None, 0)
    assert (holes.die_id, holes.package_id) == (None, 3216)


def test_frequency_governor_capacity() -> None:
    """What tells big CPUs from little ones is read where it exists."""
    hybrid = discover(machines.hybrid_pe()).cpus
    arm = discover(machines.arm_no_nodes()).cpus

    assert (hybrid[0].max_khz, hybrid[0].governor) == (5_000_000, "powersave")
    assert hybrid[7].max_khz == 3_800_000
    assert [cpu.capacity for cpu in arm] == [446] * 4 + [1024] * 2


def test_books_and_drawers() -> None:
    """The levels above the socket are kept as the kernel numbers them."""
    cpus = discover(machines.s390_books()).cpus

    assert [(cpu.book_id, cpu.drawer_id) for cpu in cpus] == [(0, 0)] * 4 + [(1, 1)] * 2


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

    assert (
        str(machine.present),
        str(machine.online),
        str(machine.offline),
    ) == ("0-15", "0-9,12-15", "10-11")


def test_ids_serve_where_no_sibling_file_does() -> None:
    """Without sibling files cores and sockets come from ids, which repeat across packages."""
    tree = {
        name: text
        for name, text in machines.xeon_2s_smt2().items()
        if "siblings" not in name and "_cpus" not in name
    }

    machine = discover(tree)

    assert groups(machine, "socket") == ["0-3,8-11", "4-7,12-15"]
    assert groups(machine, "core") == ["0,8", "1,9", "2,10", "3,11", "4,12", "5,13", "6,14", "7,15"]


def test_cpu_without_topology_directory_belongs_to_who_names_it() -> None:
    """An online CPU without a directory of its own is where its siblings say it is."""
    tree = {
        name: text
        for name, text in machines.xeon_2s_smt2().items()
        if not name.startswith(f"{CPU}/cpu8/topology")
    }

    machine = discover(tree)

    assert "0,8" in groups(machine, "core")
    assert groups(machine, "socket") == ["0-3,8-11", "4-7,12-15"]


def test_cpuinfo_is_the_last_resort() -> None:
    """Where sysfs shows no topology at all, the ids of x86 cpuinfo serve."""
    block = "processor\t: {0}\nvendor_id\t: GenuineIntel\nphysical id\t: {1}\ncore id\t: {2}\n\n"
    tree = {
        f"{CPU}/online": "0-3\n",
        **{f"{CPU}/cpu{cpu}/online": "1\n" for cpu in range(4)},
        "proc/cpuinfo": "".join(block.format(cpu, cpu // 2, 0) for cpu in range(4)),
    }

    machine = discover(tree)

    assert (groups(machine, "socket"), groups(machine, "core")) == (["0-1", "2-3"], ["0-1", "2-3"])


def test_link_gives_the_node_where_no_node_names_the_cpu() -> None:
    """Without cpulist and cpumap the links between CPU and node remain."""
    tree = machines.xeon_2s_smt2()
    for name in ("cpulist", "cpumap"):
        del tree[f"{NODE}/node1/{name}"]

    assert [str(node.cpus) for node in discover(tree).nodes] == ["0-3,8-11", "4-7,12-15"]


def test_old_boot_parameter_names_isolated_cpus() -> None:
    """Before the kernel listed isolated CPUs, the boot parameter did; its flags are no CPUs."""
    tree = machines.power_smt4()
    tree["proc/cmdline"] = "quiet isolcpus=domain,managed_irq,4-7,12 root=x\n"

    assert str(discover(tree).isolated) == "4-7,12"


def test_nul_padding_is_no_damage() -> None:
    """Lists padded with NUL bytes, as old kernels print them, are read without a warning."""
    tree = machines.xeon_2s_smt2()
    tree[f"{NODE}/online"] = "0-1\n\0\0\0"

    machine = discover(tree)

    assert ([node.node for node in machine.nodes], machine.warnings) == ([0, 1], ())


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

    assert discover(tree).smt == expected


@pytest.mark.parametrize(
    ("place", "text", "expected"),
    [
        ("cpufreq/boost", "1", True),
        ("cpufreq/boost", "0", False),
        ("intel_pstate/no_turbo", "0", True),
        ("intel_pstate/no_turbo", "1", False),
        ("intel_pstate/no_turbo", "2", None),
        ("cpufreq/other", "1", None),
    ],
)
def test_turbo(place: str, text: str, *, expected: bool | None) -> None:
    """One switch says that it is allowed, the other that it is not; neither: unknown."""
    assert discover({f"{CPU}/present": "0", f"{CPU}/{place}": text}).turbo is expected


@pytest.mark.parametrize(("before", "after"), [("1", "0"), ("0", "1")])
def test_renewing_sees_turbo_switched(before: str, after: str) -> None:
    """While the machine runs, and no CPU comes or goes: a CPU's speed depends on it."""
    tree = machines.xeon_2s_smt2() | {f"{CPU}/cpufreq/boost": before}
    first = discover(tree)

    assert discovery.renew(machines.to_host(tree), first) is first
    tree[f"{CPU}/cpufreq/boost"] = after
    assert discovery.renew(machines.to_host(tree), first).turbo is (after == "1")


# Rescan -----------------------------------------------------------------------------------------


class Counting(archive.ArchiveHost):
    """Counts what is read, listed or looked at."""

    calls = 0

    def _find(self, path: root.HostPath, *, follow: bool = True) -> tarindex.ArchiveEntry:
        self.calls += 1
        return super()._find(path, follow=follow)


def test_rescan_without_change_reads_three_files() -> None:
    """Nothing changed: the very same object, after three calls, however large the machine."""
    counting = Counting(machines.to_index(large_machines.full(64)))
    before = discovery.discover(counting)
    assert counting.calls > 1000
    counting.calls = 0

    after = discovery.rescan(counting, before)

    assert before is after
    assert counting.calls == 3


def test_rescan_sees_a_cpu_go_offline() -> None:
    """A CPU that went offline is in no core any more."""
    tree = machines.xeon_2s_smt2()
    before = discover(tree)
    tree[f"{CPU}/online"] = "0-7,9-15\n"
    tree[f"{CPU}/offline"] = "8\n"

    after = discovery.rescan(machines.to_host(tree), before)

    assert (str(after.offline), after.cpus[8].core) == ("8", None)
    assert groups(after, "core")[0] == "0"


def test_rescan_of_a_contradictory_machine_is_stable() -> None:
    """A machine whose lists contradict each other does not change with each look."""
    tree = machines.xeon_2s_smt2()
    tree[f"{CPU}/online"] = "0-15,40\n"
    before = discover(tree)

    assert before is discovery.rescan(machines.to_host(tree), before)
