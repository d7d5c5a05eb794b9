"""Dividing one resource among siblings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.scheduler.quotas.runtime import Claim, runtimes, scaled_minimums


def test_the_worked_example_comes_out_to_the_thousandth() -> None:
    """Idle minimums are lent, who does not lend keeps its own, the rest goes by weight."""
    claims = [
        Claim("a", 40_000, 5_000, 100_000),
        Claim("b", 20_000, 50_000, 50_000),
        Claim("c", 30_000, 80_000, 100_000),
        Claim("d", 10_000, 10_000, 0, lends=False),
    ]
    assert runtimes(100_000, claims) == [5_000, 31_667, 53_333, 10_000]


def test_the_unit_that_does_not_divide_goes_to_the_largest_remainder() -> None:
    """35 whole units by 50 to 100 are 11 and 23; the one that is left goes to remainder 100."""
    claims = [Claim("b", 20, 50, 50), Claim("c", 30, 80, 100)]
    assert runtimes(85, claims) == [32, 53]


def test_equal_remainders_are_decided_by_name() -> None:
    """Three equals share four: the first by name gets the unit, wherever it stands in the list."""
    claims = [Claim("c", 0, 9, 1), Claim("a", 0, 9, 1), Claim("b", 0, 9, 1)]
    assert runtimes(4, claims) == [1, 2, 1]


def test_surplus_beyond_a_request_is_shared_again() -> None:
    """Half of 100 is beyond a request of 10: the other, who wants 95, gets all but 10."""
    assert runtimes(100, [Claim("a", 0, 10, 1), Claim("b", 0, 95, 1)]) == [10, 90]


def test_weight_zero_gets_its_floor_alone() -> None:
    """Nothing is shared with who has no weight, even where nobody else wants anything."""
    assert runtimes(100, [Claim("a", 10, 60, 0), Claim("b", 0, 20, 3)]) == [10, 20]


def test_minimums_beyond_the_total_are_scaled_in_proportion() -> None:
    """200 of minimums in a total of 100 are halved, rounded down; each works beyond 64 bits."""
    claims = [Claim("a", 150, 999, 1), Claim("b", 50, 999, 1)]
    assert scaled_minimums(100, claims) == [75, 25]
    huge = [Claim("a", 2**61 + 1, 2**63, 1), Claim("b", 2**61 - 1, 2**63, 1)]
    assert scaled_minimums(2**61, huge) == [2**60, 2**60 - 1]


def test_what_does_not_scale_is_taken_off_first() -> None:
    """Those that scale share what the others leave, which may be nothing."""
    claims = [Claim("a", 80, 999, 1, scales=False), Claim("b", 80, 999, 1)]
    assert scaled_minimums(100, claims) == [80, 20]
    assert scaled_minimums(50, claims) == [80, 0]


def test_a_guarantee_wins_over_the_total() -> None:
    """What is guaranteed is not scaled: the sum may be more than there is, and nobody gets more."""
    claims = [Claim("a", 50, 90, 1, guaranteed=70), Claim("b", 50, 90, 1, guaranteed=60)]
    assert runtimes(100, claims) == [70, 60]


def test_a_trace_tells_each_number_of_a_sibling() -> None:
    """The sentences end with the amounts that they lead to; the last one is the runtime."""
    steps: list[tuple[str, str]] = []
    claims = [Claim("a", 40, 5, 100), Claim("b", 20, 50, 50), Claim("c", 30, 80, 100)]
    shares = runtimes(100, claims, trace=lambda name, step: steps.append((name, step)))
    assert shares == [5, 35, 60]
    assert [step for name, step in steps if name == "b"] == [
        "min 20, request 50: the floor, and shares what is left = 20",
        "45 left, weight 50 of 150: +15 = 35",
    ]
    last = {name: int(step.rpartition("= ")[2]) for name, step in steps}
    assert last == {"a": 5, "b": 35, "c": 60}


@pytest.mark.parametrize(
    ("weight", "guaranteed", "expected"),
    [(80, 0, [5, 20, 35, 40]), (0, 0, [5, 20, 40, 15]), (0, 45, [5, 20, 30, 45])],
)
def test_four_teams_of_the_peers_own_test_share_a_hundred(
    weight: int, guaranteed: int, expected: list[int]
) -> None:
    """The fourth wants 70: by weight, without one, and with a guarantee above its minimum."""
    claims = [
        Claim("node1", 10, 5, 40),
        Claim("node2", 15, 20, 60),
        Claim("node3", 20, 40, 50),
        Claim("node4", 15, 70, weight, guaranteed=guaranteed),
    ]
    assert runtimes(100, claims) == expected


def test_a_few_devices_that_many_want_are_all_given() -> None:
    """A team lends its 3; ten others of equal weight share them one by one, as the peer does."""
    floors = [8] * 8 + [7] * 2
    borrowers = [Claim(f"b{place}", least, 100, 1) for place, least in enumerate(floors)]
    shares = runtimes(81, [Claim("donor", 3, 0, 1), *borrowers])
    assert shares == [0, 9, 9, 9, 8, 8, 8, 8, 8, 7, 7]


@pytest.mark.parametrize(
    ("total", "expected"), [(200, [50, 50, 50]), (100, [50, 25, 25]), (50, [50, 0, 0])]
)
def test_the_one_that_does_not_scale_keeps_its_minimum(total: int, expected: list[int]) -> None:
    """Three minimums of 50, the first of which does not scale."""
    claims = [Claim(name, 50, 99, 1, scales=name != "1") for name in "123"]
    assert scaled_minimums(total, claims) == expected


_AMOUNT = st.integers(0, 2**70)


@st.composite
def _claims(draw: st.DrawFn) -> list[Claim]:
    return [
        Claim(f"q{place}", draw(_AMOUNT), draw(_AMOUNT), draw(_AMOUNT), draw(st.booleans()))
        for place in range(draw(st.integers(0, 8)))
    ]


@given(_AMOUNT, _claims())
def test_no_more_than_the_total_is_given_and_no_want_is_left_beside_rest(
    total: int, claims: list[Claim]
) -> None:
    """Σ runtime ≤ total; who asks has its scaled minimum; rest means that nobody wants more."""
    shares, minimums = runtimes(total, claims), scaled_minimums(total, claims)
    assert sum(shares) <= total
    for share, minimum, claim in zip(shares, minimums, claims, strict=True):
        assert share >= min(minimum, claim.request)
        assert share <= max(minimum, claim.request)
    wanting = any(
        share < claim.request and claim.weight for share, claim in zip(shares, claims, strict=True)
    )
    assert not (wanting and sum(shares) < total)
