"""The picture shows the whole machine, is well-formed, and can be read by people and programs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from koordlet.model import cpuset, topology
from koordlet.report import topology_svg
from tests.kit import large_machines, machines
from tests.kit.topologies import discover

SVG = "{http://www.w3.org/2000/svg}"


def picture(machine: topology.Topology, owners: Mapping[int, str] | None = None) -> ET.Element:
    """The picture, parsed: this fails where it is not well-formed."""
    return ET.fromstring(topology_svg.picture(machine, owners))  # noqa: S314


def texts(drawn: ET.Element) -> list[str]:
    """All that is written."""
    return [element.text or "" for element in drawn.iter(f"{SVG}text")]


def cpus(drawn: ET.Element, css_class: str = "cpu") -> list[int]:
    """The numbers of the CPUs that are drawn one by one with this class."""
    return sorted(
        int(group[2].text or "")
        for group in drawn.iter(f"{SVG}g")
        if len(group) == 3 and css_class in group[1].get("class", "").split()
    )


def squares(drawn: ET.Element, css_class: str = "cpu") -> int:
    """How many CPUs are drawn as a square without a number."""
    return sum(
        path.get("d", "").count("M")
        for path in drawn.iter(f"{SVG}path")
        if css_class in path.get("class", "").split()
    )


@pytest.mark.parametrize("name", machines.SHAPES)
def test_every_cpu_is_there_once(name: str) -> None:
    """Each present CPU is drawn exactly once, with its number."""
    machine = discover(machines.SHAPES[name]())

    assert list(machine.present) == cpus(picture(machine))


@pytest.mark.parametrize("count", [256, 2048])
def test_large_machine_is_folded(count: int) -> None:
    """A large machine is a square for each CPU and a box for each L3, in some kilobytes."""
    machine = discover(large_machines.large(count))

    drawn = picture(machine)

    assert ([], count) == (cpus(drawn), squares(drawn))
    assert count // 16 == sum(bool(re.match(r"L3 \d", text)) for text in texts(drawn))
    assert "8 cores × 2" in texts(drawn)  # noqa: RUF001
    assert len(topology_svg.picture(machine)) < 60 * count


def test_many_equal_l3_domains_are_one_box() -> None:
    """Where each core has an L3 of its own, a large machine shows how many there are."""
    builder = machines.Builder()
    builder.lists(possible="0-255", present="0-255", online="0-255")
    for cpu in range(256):
        builder.cpu(cpu, (cpu,), range(256), core_id=cpu, physical_package_id=0)
        builder.cache(3, 3, "Unified", (cpu,), size="4096K")

    drawn = picture(discover(builder.files))

    assert "256 × L3, 4 MiB" in texts(drawn)  # noqa: RUF001
    assert squares(drawn) == 256


def test_levels_are_nested() -> None:
    """A CPU is in its core, in its L3, in its node, in its socket, in the machine."""
    drawn = picture(discover(machines.xeon_2s_smt2()))
    path = next(trail for trail in trails(drawn, ()) if trail[-1] == "12")

    assert path == (
        "GenuineIntel Example CPU x86_64",
        "socket 1: 4 cores, 8 CPUs",
        "NUMA node 1",
        "L3 1, 16 MiB",
        "core 4",
        "12",
    )


def trails(here: ET.Element, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """For each text, the first texts of the groups that hold it."""
    own = [element.text or "" for element in here if element.tag == f"{SVG}text"]
    trail = (*above, own[0]) if own else above
    if own:
        yield trail
    for below in here:
        if below.tag == f"{SVG}g":
            yield from trails(below, trail)


def test_caches_and_memory_have_sizes() -> None:
    """Sizes of caches per core, of the L3 and of the node's memory are written."""
    written = texts(picture(discover(machines.xeon_2s_smt2())))

    assert {"L2 1 MiB", "L1d 32 KiB", "L1i 32 KiB", "L3 0, 16 MiB", "64 GiB"} <= set(written)


def test_l2_of_several_cores_is_a_box() -> None:
    """Cores that share an L2 are in its box; cores with their own have it on their label."""
    drawn = picture(discover(machines.hybrid_pe()))

    inside = {trail[-1] for trail in trails(drawn, ()) if "L2 2 MiB" in trail[:-1]}

    assert inside == {"4", "5", "6", "7", "core 2", "core 3", "core 4", "core 5"}


def test_node_without_cpus_is_shown_apart() -> None:
    """Memory without CPUs stands outside of the sockets, a node without memory says so."""
    written = texts(picture(discover(machines.memory_only_nodes())))

    assert {
        "NUMA node 2: no CPUs",
        "NUMA node 5: no CPUs, no memory",
        "NUMA node 1, no memory",
    } <= set(written)


def test_node_of_two_sockets_shows_its_memory_once() -> None:
    """A node that spans sockets is drawn in each, its memory in the first."""
    written = texts(picture(discover(machines.power_smt4())))

    assert (written.count("8 GiB"), written.count("NUMA node 0, continued")) == (2, 1)


def test_offline_and_isolated_are_marked() -> None:
    """CPUs that are offline, isolated or without a tick have classes of their own, and keys."""
    power = picture(discover(machines.power_smt4()))
    tree = machines.xeon_2s_smt2() | {"sys/devices/system/cpu/nohz_full": "10\n"}
    xeon = picture(discover(tree))

    assert (cpus(power, "offline"), texts(power)[-1]) == ([10, 11], "offline")
    assert (cpus(xeon, "isolated"), cpus(xeon, "nohz_full")) == ([2, 10], [10])
    assert texts(xeon)[-2:] == ["isolated", "nohz_full"]


def device(
    address: str, node: int | None, name: str | None = None, driver: str | None = None
) -> topology.Device:
    """A network device."""
    return topology.Device(
        address=address,
        device_class="0x020000",
        kind="network",
        node=node,
        name=name,
        driver=driver,
    )


def test_devices_hang_on_their_node() -> None:
    """A device is in the box of its node, one without a node in that of the machine."""
    machine = replace(
        discover(machines.xeon_2s_smt2()),
        devices=(device("0000:01:00.0", 1, name="eth0"), device("0000:02:00.0", None)),
    )

    holders = {trail[-1]: trail[-2] for trail in trails(picture(machine), ()) if len(trail) > 1}

    assert holders["network eth0"] == "NUMA node 1"
    assert holders["network"] == "GenuineIntel Example CPU x86_64"


def test_many_devices_are_counted() -> None:
    """Hundreds of virtual functions are one box."""
    many = tuple(device(f"0000:01:{n:02x}.0", 0, driver="vf") for n in range(32))

    written = texts(picture(replace(discover(machines.xeon_2s_smt2()), devices=many)))

    assert "32 × network (vf)" in written  # noqa: RUF001


def test_owners_colour_cpus() -> None:
    """The owner of a CPU is its class; known words keep their colour, the key names all."""
    machine = discover(machines.xeon_2s_smt2())

    drawn = picture(machine, {0: "reserved", 8: "reserved", 1: "Batch & <b>", 99: "nobody"})

    assert (cpus(drawn, "owner-reserved"), cpus(drawn, "owner-batch-b")) == ([0, 8], [1])
    assert texts(drawn)[-3:-1] == ["Batch & <b>", "reserved"]
    style = drawn.findtext(f"{SVG}style") or ""
    assert style.count(".cpu.owner-reserved{") == 2
    assert style.count(".cpu.owner-batch-b{") == 2
    assert "nobody" not in style


def test_folded_cpus_have_owners_too() -> None:
    """Without numbers, the squares still show whose CPUs they are."""
    drawn = picture(discover(large_machines.large(256)), dict.fromkeys(range(10), "lse"))

    assert (squares(drawn), squares(drawn, "owner-lse")) == (256, 10)


def test_text_is_escaped() -> None:
    """What the machine says of itself is text, never markup, and always XML."""
    evil = replace(
        discover(machines.xeon_2s_smt2()),
        model_name="</text><script>x</script>\x1b\x00\ud800 & \"'",
        devices=(device("0000:01:00.0", 0, name="<eth&0>"),),
    )

    drawn = picture(evil)

    assert "network <eth&0>" in texts(drawn)
    assert list(drawn.iter(f"{SVG}script")) == []


def test_title_and_description() -> None:
    """Who cannot see the picture is told the same in words."""
    drawn = picture(discover(machines.power_smt4()))

    assert [f"{SVG}title", f"{SVG}desc"] == [element.tag for element in drawn[:2]]
    assert " ".join(element.get("id", "") for element in drawn[:2]) == drawn.get("aria-labelledby")
    assert "Socket 0 has 1 core, 4 CPUs: 0-3." in (drawn[1].text or "")
    assert "NUMA node 8: 8 GiB, CPUs 8-9,12-15." in (drawn[1].text or "")
    assert "Offline: 10-11." in (drawn[1].text or "")


def test_light_and_dark() -> None:
    """Each colour is there for a light and for a dark page, without variables."""
    style = picture(discover(machines.epyc_ccd())).findtext(f"{SVG}style") or ""
    light, dark = style.split("@media (prefers-color-scheme:dark)")

    coloured = re.compile(r"^([.\w>]+)\{fill:#\w+;stroke:#\w+\}$", re.MULTILINE)
    assert coloured.findall(light) == coloured.findall(dark)
    assert len(coloured.findall(light)) > 8
    assert "var(" not in style


def test_empty_machine_has_a_picture() -> None:
    """A machine of which nothing is known is a box that says so."""
    assert "sockets unknown, cores unknown, 0 CPUs, no NUMA information, SMT unknown" in texts(
        picture(topology.Topology())
    )


def test_unknown_places_are_question_marks() -> None:
    """CPUs of unknown socket, node and L3 are in boxes that say so."""
    cpus_ = (topology.Cpu(cpu=0, core=0, socket=0, node=0, l3=0), topology.Cpu(cpu=1))
    online = cpuset.CPUSet.of((0, 1))
    machine = topology.Topology(
        cpus=cpus_, present=online, online=online, nodes=(topology.Node(node=0),)
    )

    path = next(trail for trail in trails(picture(machine), ()) if trail[-1] == "1")

    assert path[1:] == ("socket ?: 1 CPU", "NUMA node ?", "L3 ?", "core ?", "1")
