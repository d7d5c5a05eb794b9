"""Groups from what each CPU claims never overlap, and contradictions cost only who made them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from koordlet.host.topology import cpu_groups
from koordlet.model import cpuset


def form(**claims: str) -> cpu_groups.Groups:
    """Groups from ``c0="0-1"``."""
    return cpu_groups.form(
        {int(name[1:]): cpuset.CPUSet.parse(text) for name, text in claims.items()}
    )


def test_equal_sets_are_one_group() -> None:
    """Numbers are dense and follow the lowest CPU."""
    assert form(c1="1,3", c3="1,3", c0="0,2", c2="0,2").number == {0: 0, 1: 1, 2: 0, 3: 1}


def test_silent_cpu_is_where_others_say() -> None:
    """A CPU without a claim belongs to the set that names it."""
    assert form(c0="0-1").number == {0: 0, 1: 0}


def test_majority_stands() -> None:
    """Of overlapping sets the one that most agree on stands; who said otherwise is out."""
    formed = form(c0="0-2", c1="0-2", c2="2-3", c3="3")

    assert (formed.number, formed.refused) == ({0: 0, 1: 0}, (2, 3))


def test_no_majority_no_group() -> None:
    """Two against two is unknown for all four."""
    formed = form(c0="0-1", c1="1", c2="2")

    assert (formed.number, formed.refused) == ({2: 0}, (0, 1))


def test_thousands_of_contradictions_end() -> None:
    """Each of 4 096 CPUs claiming something else is answered at once: nobody is right."""
    claims = {cpu: cpuset.CPUSet.span(0, cpu) for cpu in range(4096)}

    assert cpu_groups.form(claims).number == {}


@given(st.dictionaries(st.integers(0, 20), st.frozensets(st.integers(0, 20)), max_size=20))
def test_groups_are_dense_and_ordered(claims: dict[int, frozenset[int]]) -> None:
    """Whatever is claimed, numbers are dense by lowest CPU, and the same each time."""
    sets = {cpu: cpuset.CPUSet.of({cpu, *others}) for cpu, others in claims.items()}

    formed = cpu_groups.form(sets)
    first = [formed.number[cpu] for cpu in sorted(formed.number)]

    assert sorted(set(first)) == list(dict.fromkeys(first)) == list(range(len(set(first))))
    assert formed == cpu_groups.form(dict(reversed(sets.items())))
