"""Partitions: nobody outside of one uses its ways, and its classes share them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from koordlet.model import resctrl
from koordlet.policy.resctrl import values

SHARES = st.lists(st.integers(1, 50), min_size=1, max_size=6).filter(lambda all_: sum(all_) <= 100)


def cache(ways: int, least: int = 1) -> resctrl.Cache:
    """A cache of so many ways."""
    return resctrl.Cache(name="L3", mask=(1 << ways) - 1, min_bits=least, domains=(0,))


@given(SHARES, st.integers(1, 32), st.integers(1, 2), st.data())
def test_partitions_never_overlap(
    shares: list[int], ways: int, least: int, data: st.DataObject
) -> None:
    """Whatever their classes ask for inside; a mask is contiguous and not too small, or refused."""
    parts = values.stacked((str(i), share, 100, ()) for i, share in enumerate(shares))
    taken = 0
    for part in parts:
        start = data.draw(st.integers(0, 99))
        value = part.mask(cache(ways, least), start, data.draw(st.integers(start + 1, 100)))
        if value.number is None:
            continue
        assert value.number.bit_count() >= least
        assert value.number < 1 << ways
        assert value.number & taken == 0
        assert f"partition {part.name}" in value.how
        whole = part.mask(cache(ways, least), 0, 100).number or 0
        assert value.number | whole == whole
        taken |= whole


def test_a_class_has_its_share_of_the_partition() -> None:
    """60 % and 40 % of 20 ways; half of the upper one is its lower four; bandwidth likewise."""
    low, high = values.stacked([("a", 60, 100, ["LS"]), ("b", 40, 50, ["BE"])])

    assert (
        low.mask(cache(20), 0, 100).number,
        high.mask(cache(20), 0, 50).number,
    ) == (0xFFF, 0x0F000)
    assert (high.percent(50), high.percent(5)) == (25, 3)
    assert high == values.partition_of((low, high), "BE")
    assert values.partition_of((low, high), "LSR") is None


def test_a_partition_smaller_than_a_mask() -> None:
    """10 % of 4 ways is one, and two are the least: refused, and not widened into another's."""
    (part,) = values.stacked([("tiny", 10, 100, ["BE"])])

    value = part.mask(cache(4, 2), 0, 100)
    assert value.number is None
    assert "partition tiny (1 of 4 ways) has fewer ways" in value.how
