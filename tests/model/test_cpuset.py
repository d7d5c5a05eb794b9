"""CPU sets behave as sets of small numbers, and read every form that the kernel prints."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.model import cpuset

CPUS = st.frozensets(st.integers(0, 300), max_size=40)
WIDE = st.frozensets(st.integers(0, cpuset.MAX_CPUS - 1), max_size=20)


def made(members: frozenset[int]) -> cpuset.CPUSet:
    """The set of the members."""
    return cpuset.CPUSet.of(members)


# Against a naive set ----------------------------------------------------------------------------


@given(CPUS, CPUS)
def test_algebra(cpus: frozenset[int], other: frozenset[int]) -> None:
    """Union, intersection, difference and symmetric difference are those of a set."""
    a, b = made(cpus), made(other)

    assert cpus | other == frozenset(a | b)
    assert cpus & other == frozenset(a & b)
    assert cpus - other == frozenset(a - b)
    assert cpus ^ other == frozenset(a ^ b)


@given(CPUS, CPUS)
def test_comparison(cpus: frozenset[int], other: frozenset[int]) -> None:
    """Subset, superset, equality, disjointness and hashing are those of a set."""
    a, b = made(cpus), made(other)

    assert (cpus <= other, cpus < other) == (a <= b, a < b)
    assert (cpus >= other, cpus > other) == (a >= b, a > b)
    assert (cpus == other) == (a == b)
    assert cpus.isdisjoint(other) == a.isdisjoint(b)
    assert hash(a) == hash(made(cpus))


@given(WIDE)
def test_members(members: frozenset[int]) -> None:
    """Iteration is ascending; length, truth, membership and ends follow from it."""
    cpus = made(members)

    assert sorted(members) == list(cpus)
    assert (len(members), bool(members)) == (len(cpus), bool(cpus))
    assert all(cpu in cpus for cpu in members)
    assert (-1 in cpus, "0" in cpus) == (False, False)
    if members:
        assert (min(members), max(members)) == (cpus.first, cpus.last)


@given(WIDE)
def test_list_round_trip(members: frozenset[int]) -> None:
    """A printed list reads back as the same set."""
    assert made(members) == cpuset.CPUSet.parse(str(made(members)))


@given(WIDE)
def test_mask_round_trip(members: frozenset[int]) -> None:
    """A printed bitmap reads back as the same set."""
    assert made(members) == cpuset.CPUSet.parse_mask(made(members).mask())


@given(WIDE)
def test_ranges_are_maximal(members: frozenset[int]) -> None:
    """Ranges cover the set, ascend, and never touch each other."""
    ranges = list(made(members).ranges())

    assert members == frozenset(cpu for a, b in ranges for cpu in range(a, b + 1))
    assert all(left[1] + 1 < right[0] for left, right in itertools.pairwise(ranges))


@given(
    first=st.integers(0, 500),
    span=st.integers(0, 500),
    used=st.integers(1, 70),
    gap=st.integers(0, 70),
)
def test_stride(first: int, span: int, used: int, gap: int) -> None:
    """``a-b:used/group`` takes the first ``used`` of each ``group`` numbers."""
    group = used + gap
    expected = {cpu for cpu in range(first, first + span + 1) if (cpu - first) % group < used}

    assert set(cpuset.CPUSet.parse(f"{first}-{first + span}:{used}/{group}")) == expected


@given(st.lists(CPUS, max_size=5))
def test_union(sets: list[frozenset[int]]) -> None:
    """The union of many sets, and of none."""
    assert frozenset().union(*sets) == frozenset(cpuset.union(made(members) for members in sets))


# Spelling ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("", []),
        ("\n", []),
        ("0", [0]),
        ("0-3,8\n", [0, 1, 2, 3, 8]),
        ("0,2 4\t6", [0, 2, 4, 6]),
        (",,3,,", [3]),
        ("8,0-1,1-2", [0, 1, 2, 8]),
        ("0-15:2/8", [0, 1, 8, 9]),
        ("0-10:1/4", [0, 4, 8]),
        ("5-5", [5]),
        ("007", [7]),
    ],
)
def test_list_forms(text: str, members: list[int]) -> None:
    """Every list form that the kernel prints or accepts."""
    assert members == list(cpuset.CPUSet.parse(text))


@pytest.mark.parametrize(
    ("text", "members"), [("all", [0, 1, 2, 3]), ("ALL", [0, 1, 2, 3]), ("2-N", [2, 3]), ("N", [3])]
)
def test_forms_that_need_the_number_of_cpus(text: str, members: list[int]) -> None:
    """``all`` and ``N`` mean the CPUs that there are, and are refused where nobody knows them."""
    assert members == list(cpuset.CPUSet.parse(text, limit=4))
    with pytest.raises(ValueError, match="number of CPUs"):
        cpuset.CPUSet.parse(text)


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("0", []),
        ("f", [0, 1, 2, 3]),
        ("0x3", [0, 1]),
        ("00000001,00000000", [32]),
        ("1,00000000,80000000\n", [31, 64]),
        ("1,1", [0, 32]),
    ],
)
def test_mask_forms(text: str, members: list[int]) -> None:
    """Words of 32 bits, the most significant first."""
    assert members == list(cpuset.CPUSet.parse_mask(text))


@pytest.mark.parametrize(
    ("members", "text"), [([], ""), ([0], "0"), ([0, 1], "0-1"), ([0, 2, 3, 9], "0,2-3,9")]
)
def test_print(members: list[int], text: str) -> None:
    """The kernel's normal form: two neighbours are a range."""
    cpus = cpuset.CPUSet.of(members)

    assert text == str(cpus)
    assert f"CPUSet({text!r})" == repr(cpus)


@pytest.mark.parametrize(
    ("members", "text"),
    [([], "00000000"), ([0, 31], "80000001"), ([32], "00000001,00000000")],
)
def test_print_mask(members: list[int], text: str) -> None:
    """Full words, as many as needed."""
    assert text == cpuset.CPUSet.of(members).mask()


def test_span() -> None:
    """A span includes both ends; a backward one is empty."""
    assert list(cpuset.CPUSet.span(2, 4)) == [2, 3, 4]
    assert not cpuset.CPUSet.span(4, 2)


def test_empty_set_has_no_ends() -> None:
    """Asking an empty set for its first or last member is an error."""
    with pytest.raises(ValueError, match="no first"):
        _ = cpuset.CPUSet().first
    with pytest.raises(ValueError, match="no last"):
        _ = cpuset.CPUSet().last


# Hostile text -----------------------------------------------------------------------------------

NONSENSE = [
    "3-1",
    "-1",
    "a",
    "1-",
    "1--2",
    "0-3:0/4",
    "0-3:5/4",
    "0-3:1/0",
    "0-3:1",
    "65536",
    "0-99999999999999999999",
    "\u0663",
    "1\u20032",
    "1;2",
    "0x3",
    "\x00",
    "1.5",
    "+1",
]


@pytest.mark.parametrize("text", NONSENSE)
def test_nonsense_list_is_refused(text: str) -> None:
    """What the kernel would refuse is a ``ValueError``."""
    with pytest.raises(ValueError, match=r"CPU"):
        cpuset.CPUSet.parse(text)


@pytest.mark.parametrize(
    "text", ["", "g", "1,,2", "123456789", "0-3", "f" * 9, ",".join(["1"] * 2049)]
)
def test_nonsense_mask_is_refused(text: str) -> None:
    """A bitmap has words of up to eight digits, and not more CPUs than any machine."""
    with pytest.raises(ValueError, match=r"CPU mask"):
        cpuset.CPUSet.parse_mask(text)


@given(st.text(max_size=60) | st.text(alphabet="0123456789-,:/Nal \n", max_size=60))
def test_any_text_is_a_set_or_a_value_error(text: str) -> None:
    """No text raises anything but ``ValueError``."""
    for parse in (cpuset.CPUSet.parse, cpuset.CPUSet.parse_mask):
        try:
            cpus = parse(text)
        except ValueError:
            continue
        assert cpus.bits < 1 << cpuset.MAX_CPUS


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (cpuset.CPUSet.parse, "0-65535:1/2," * 40_000),
        (cpuset.CPUSet.parse, "0-65535," * 60_000),
        (cpuset.CPUSet.parse, "1" * 500_000),
        (cpuset.CPUSet.parse, "1" * 50_000_000),
        (cpuset.CPUSet.parse_mask, "ffffffff," * 50_000 + "1"),
        (cpuset.CPUSet.parse_mask, "f" * 50_000_000),
    ],
)
def test_hostile_text_takes_no_time(parse: Callable[[str], cpuset.CPUSet], text: str) -> None:
    """A megabyte of items that each name all CPUs is read or refused within seconds."""
    before = time.process_time()
    try:
        cpus = parse(text)
    except ValueError:
        cpus = cpuset.CPUSet()

    assert cpus <= cpuset.CPUSet.span(0, cpuset.MAX_CPUS - 1)
    assert time.process_time() - before < 5
