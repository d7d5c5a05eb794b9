"""``koordlet topology`` shows a machine at a glance, within 80 columns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet import cli
from koordlet.cli import topology as command
from koordlet.host.topology import discovery
from koordlet.model import cpuset, topology
from koordlet.report import topology_words
from tests.kit import large_machines, machines


def render(tree: machines.Tree) -> list[str]:
    """Render the table of a machine."""
    machine = discovery.discover(machines.to_host(tree))
    return [command.plain(line) for line in command.lines(machine)]


def test_table() -> None:
    """Sockets, nodes, L3, cores, CPUs, each below the one that holds it."""
    assert render(machines.xeon_2s_smt2()) == [
        "2 sockets, 8 cores, 16 CPUs, 2 NUMA nodes, SMT on",
        "GenuineIntel Example CPU x86_64",
        "isolated 2,10",
        "",
        "socket 0: 4 cores, 8 CPUs",
        "  node 0: 64 GiB, CPUs 0-3,8-11, distances 10 21",
        "    huge pages 16 x 2048kB",
        "    L3 0, 16 MiB, 11 ways: 4 cores, 8 CPUs",
        "      4 cores x 2: 0,8  1,9  2,10  3,11",
        "socket 1: 4 cores, 8 CPUs",
        "  node 1: 64 GiB, CPUs 4-7,12-15, distances 21 10",
        "    huge pages 16 x 2048kB",
        "    L3 1, 16 MiB, 11 ways: 4 cores, 8 CPUs",
        "      4 cores x 2: 4,12  5,13  6,14  7,15",
    ]


def test_core_kinds_are_apart() -> None:
    """Big and little cores are told apart by threads and speed."""
    table = render(machines.hybrid_pe())

    assert "      2 cores x 2, 5.0 GHz: 0-1  2-3" in table
    assert "      4 cores x 1, 3.8 GHz: 4  5  6  7" in table


def test_unknown_is_a_question_mark() -> None:
    """What the machine does not say is ``?``, and the warnings say why."""
    table = render(machines.arm_no_nodes())

    assert "    L3 ?: 6 cores, 6 CPUs" in table
    assert [line.startswith("warning: ") for line in table[-2:]] == [True, True]


def test_nodes_without_cpus_are_shown() -> None:
    """Memory that belongs to no CPU is listed after the sockets."""
    table = render(machines.memory_only_nodes())

    assert table[-3:] == [
        "2 nodes without online CPUs",
        "  node 2: 64 GiB, no CPUs, distances 14 24 10 20",
        "  node 5: no memory, no CPUs, distances 20 20 20 10",
    ]


@pytest.mark.parametrize("cpus", [256, 2048])
def test_large_machine_fits(cpus: int) -> None:
    """A large machine has a line for each L3 and its cores, none wider than 80 columns."""
    table = render(large_machines.large(cpus))

    assert max(len(line) for line in table) <= 80
    assert cpus // 16 == sum(line.lstrip().startswith("L3 ") for line in table)


def test_control_characters_do_not_reach_the_terminal() -> None:
    """A processor name cannot move the cursor."""
    tree = machines.xeon_2s_smt2()
    tree["proc/cpuinfo"] = "processor: 0\nmodel name: \x1b[2Jevil\n"

    assert not any("\x1b" in line for line in render(tree))


def test_empty_machine_is_shown() -> None:
    """A machine of which nothing is known has a table."""
    assert (
        command.plain(next(command.lines(topology.Topology())))
    ) == "sockets unknown, cores unknown, 0 CPUs, no NUMA information, SMT unknown"


@pytest.mark.parametrize(
    ("turbo", "words"), [(True, ", turbo on"), (False, ", turbo off"), (None, "")]
)
def test_turbo_is_shown_where_the_machine_says_it(words: str, *, turbo: bool | None) -> None:
    """Few machines say it."""
    rows = [line for line in command.lines(topology.Topology(turbo=turbo)) if line.level == 0]
    summary = " ".join(command.plain(line).strip() for line in rows)

    assert summary.endswith(f"SMT unknown{words}")


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("0-3,8", 40, "0-3,8"),
        ("0,4,8,12,16,20,24", 10, "0-24:1/4"),
        ("0-1,8-9,16-17,31", 12, "0-17:2/8,31"),
        ("0,3,7,8,10,20,21,30", 18, "0,... (8 CPUs)"),
    ],
)
def test_compact(text: str, width: int, expected: str) -> None:
    """A set is written shorter only where it must be."""
    assert topology_words.compact(cpuset.CPUSet.parse(text), width) == expected


@given(st.frozensets(st.integers(0, 200)), st.integers(30, 60))
def test_compact_is_exact_or_says_so(members: frozenset[int], width: int) -> None:
    """What is written is the set itself, or ends with how many there are; it always fits."""
    cpus = cpuset.CPUSet.of(members)

    text = topology_words.compact(cpus, width)

    assert len(text) <= width
    assert f"({len(cpus)} CPUs)" in text or cpus == cpuset.CPUSet.parse(text)


def test_json_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``-o json`` prints one document, the version first."""
    machines.to_directory(machines.epyc_ccd(), tmp_path)

    status = cli.main(["topology", "--root", str(tmp_path), "-o", "json"])

    document = json.loads(capsys.readouterr().out)
    assert (status, next(iter(document)), len(document["cpus"])) == (0, "version", 16)


def test_table_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not on a terminal the table is plain text."""
    machines.to_directory(machines.epyc_ccd(), tmp_path)

    status = cli.main(["topology", "--root", str(tmp_path)])

    assert (
        status,
        capsys.readouterr().out.splitlines()[0],
    ) == (0, "1 socket, 8 cores, 16 CPUs, 1 NUMA node, SMT on")


def test_no_machine_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A root that does not exist is exit status 2, as JSON where JSON was asked for."""
    missing = str(tmp_path / "none")

    status = cli.main(["topology", "--root", missing, "-o", "json"])

    assert status == 2
    assert missing == json.loads(capsys.readouterr().err)["error"]["culprit"]


def test_devices_are_listed_by_node() -> None:
    """PCI devices come after the CPUs, those of one kind and driver on one line."""
    tree = machines.xeon_2s_smt2()
    for number, node in ((1, 1), (2, 1), (3, -1)):
        at = f"sys/bus/pci/devices/0000:0{number}:00.0"
        tree[f"{at}/class"] = "0x020000\n"
        tree[f"{at}/numa_node"] = f"{node}\n"
        tree[f"{at}/driver"] = "->../../drivers/ice"

    assert render(tree)[-5:] == [
        "3 PCI devices",
        "  node 1",
        "    network (ice): 0000:01:00.0  0000:02:00.0",
        "  node ?",
        "    network (ice): 0000:03:00.0",
    ]


def test_svg_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``-o svg`` prints one picture and nothing else."""
    machines.to_directory(machines.epyc_ccd(), tmp_path)

    status = cli.main(["topology", "--root", str(tmp_path), "-o", "svg"])

    written = capsys.readouterr().out
    assert (status, written.startswith("<svg "), written.endswith("</svg>\n")) == (0, True, True)
