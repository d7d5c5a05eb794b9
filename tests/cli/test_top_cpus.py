"""CPUs in ``koordlet top``: each once, by its owner, by its place; the machine by class."""

from __future__ import annotations

import pytest

from koordlet.cli import top_cpus

NODE = {
    "cpus": {"online": "0-7"},
    "usage": {
        "cpus": {str(cpu): cpu / 7 for cpu in range(7)},
        "shares": {"LS": {"cpuCores": 2.0}, "BE": {"cpuCores": 4.0}, "system": {"cpuCores": None}},
    },
    "pools": {
        "claims": [
            {"owner": "reserved", "cpus": "0"},
            {"owner": "LSE", "holder": "d/db", "cpus": "1"},
        ],
        "shared": [{"kind": "LS", "cpus": "2-7"}, {"kind": "BE", "cpus": "4-7"}],
    },
}
PLACES = {cpu: (cpu // 4, cpu // 2) for cpu in range(8)}


def test_each_cpu_has_one_owner() -> None:
    """A claim before a pool; what both pools have is shared."""
    owned = top_cpus.owners(NODE)

    assert [owned[cpu][0] for cpu in range(8)] == [
        *("reserved", "LSE", "LS", "LS", "shared", "shared", "shared", "shared")
    ]
    assert owned[1] == ("LSE", "d/db")


def test_a_cpu_outside_of_the_cgroup_tree_is_not_others() -> None:
    """No workload can have it; what is reserved there stays reserved."""
    owned = top_cpus.owners({**NODE, "cpus": {"online": "0-9", "outside": "0,9"}})

    assert [owned[cpu][1] for cpu in (0, 8, 9)] == ["reserved", "others", "outside"]


def test_each_cpu_is_drawn_once_by_socket_and_cache() -> None:
    """A line for a socket, a gap between caches; ``?`` where nobody knows."""
    lines = [line.plain for line in top_cpus.grid(NODE, PLACES, 80, bars=True)]

    assert lines == ["socket 0  ▁▂ ▃▄", "socket 1  ▅▆ ▇?"]


@pytest.mark.parametrize(("width", "cpus"), [(80, 256), (80, 2048), (24, 100), (400, 2048)])
def test_many_cpus_take_more_lines(width: int, cpus: int) -> None:
    """No line is longer than the terminal, and no CPU is missing."""
    many = {
        "cpus": {"online": f"0-{cpus - 1}"},
        "usage": {"cpus": {str(cpu): 1.0 for cpu in range(cpus)}},
    }
    where = {cpu: (cpu * 2 // cpus, cpu // 16) for cpu in range(cpus)}
    lines = [line.plain for line in top_cpus.grid(many, where, width, bars=True)]

    assert max(map(len, lines)) <= width
    assert "".join(lines).count("█") == cpus


def test_the_bar_is_as_wide_as_classes_use() -> None:
    """A quarter and a half of eight CPUs; the rest is idle; an unknown class has no part."""
    line = top_cpus.bar(top_cpus.used(NODE), 8, 91, bars=False).plain

    assert len(line) == 90
    assert line.startswith("by class  LS" + "#" * 18 + "BE" + "#" * 38 + ".")


def test_the_past_of_an_agent_is_looks_as_far_apart_as_those_to_come() -> None:
    """The newest row is among them; what is unknown, or of another form, is left out."""
    recorded = {"series": {"LS/cpuCores": [1.0, 2.0, None, 4.0], "BE/cpuCores": "?", "x": [9]}}

    assert list(top_cpus.past(recorded, 1.0)) == [{"LS": 1.0}, {"LS": 2.0}, {}, {"LS": 4.0}]
    assert list(top_cpus.past(recorded, 2.0)) == [{"LS": 2.0}, {"LS": 4.0}]
    assert list(top_cpus.past({}, 1.0)) == []


def test_braille() -> None:
    """Two values to a sign, the newest last; four dots high for each row."""
    assert top_cpus.braille([1.0, 1.0], 2, 1) == ["⠀⣿"]
    assert top_cpus.braille([0.0, 0.25, 0.5, 1.0], 2, 1) == ["⢀⣼"]
    assert top_cpus.braille([0.5, 0.5], 1, 2) == ["⠀", "⣿"]
    assert top_cpus.braille([], 3, 1) == ["⠀⠀⠀"]
    assert top_cpus.braille([7.0, -1.0], 1, 1) == ["⡇"]


def test_values_that_make_no_sense_are_unknown() -> None:
    """Places and uses of another version may be anything."""
    wrong = {"cpus": {"online": "0-1"}, "usage": {"cpus": {"0": "x"}, "shares": {"LS": 7}}}

    assert [line.plain for line in top_cpus.grid(wrong, {0: ("x", None)}, 80, bars=True)]
    assert top_cpus.used(wrong) == {}
    assert top_cpus.places({"cpus": [{"cpu": "no"}, 7]}) == {}


def test_a_class_that_used_nearly_nothing_has_no_line_of_history() -> None:
    """The others have its room; once it did something it keeps its line."""
    quiet = [{"LS": 2.0, "system": 0.01, "BE": 0.0}] * 3

    assert list(top_cpus.lines_of(quiet)) == ["LS lately"]
    assert list(top_cpus.lines_of([*quiet, {"system": 1.0}])) == ["LS lately", "system"]
    rows = [line.plain for line in top_cpus.history(quiet, 4, 20, 2)]
    assert rows == ["LS lately ⠀⠀⠀⠀⠀⠀⠀⠀⠀", "of 4      ⠀⠀⠀⠀⠀⠀⠀⢸⣿"]
