"""How much of what it asked for best-effort work may have, against the peer's formula."""

from __future__ import annotations

import pytest

from koordlet.policy.best_effort import satisfaction
from koordlet.policy.best_effort.satisfaction import Bounds, Sample

BOUNDS = Bounds(lower=60, upper=80, usage=90)


def seen(limit: float, request: float, used: float, at: float = 0.0) -> Sample:
    """One moment."""
    return Sample(at=at, limit=limit, request=request, used=used)


@pytest.mark.parametrize(
    ("limit", "asked", "used", "amount"),
    [
        # 2 of 4 CPUs: half; to 80 % of 4 CPUs 1.2 are missing.
        (2000, 4000, 2000, 1200),
        # Exactly at the lower percent it is done, above not.
        (2400, 4000, 2400, 800),
        (2401, 4000, 2401, 0),
        # The limit must be used up, from a core on.
        (2000, 4000, 1800, 1200),
        (2000, 4000, 1799, 0),
        (999, 4000, 0, 2201),
        (1000, 4000, 0, 0),
        (0, 4000, 0, 0),
        (2000, 0, 2000, 0),
    ],
)
def test_one_moment(limit: float, asked: float, used: float, amount: int) -> None:
    """Limit, requests and use in thousandths of a core to what must be released."""
    assert satisfaction.release([seen(limit, asked, used)], BOUNDS, 1.0) == amount


def test_average_and_newest_must_agree() -> None:
    """The smaller of both is released; none where one of them is satisfied."""
    starved, half, fine = seen(1000, 4000, 1000), seen(2000, 4000, 2000), seen(4000, 4000, 4000)

    assert satisfaction.release([starved, half], BOUNDS, 2.0) == 1200
    assert satisfaction.release([half, starved], BOUNDS, 2.0) == 1700
    assert satisfaction.release([starved, fine], BOUNDS, 2.0) == 0
    assert satisfaction.release([fine, fine, starved], BOUNDS, 3.0) == 0


def test_a_window_of_which_too_little_was_seen() -> None:
    """Less than a third says nothing."""
    sample = seen(2000, 4000, 2000)
    assert satisfaction.release([sample] * 3, BOUNDS, 10.0) == 0
    assert satisfaction.release([sample] * 4, BOUNDS, 10.0) == 1200
    assert satisfaction.release([], BOUNDS, 1.0) == 0


@pytest.mark.parametrize(
    ("lower", "upper", "word"),
    [(0, 80, "Lower"), (61, 80, "Lower"), (60, 100, "Upper"), (60, 59, "above"), (60, 60, "")],
)
def test_bounds(lower: int, upper: int, word: str) -> None:
    """Within the peer's ranges, and in order."""
    problem = Bounds(lower=lower, upper=upper, usage=90).problem
    assert word in problem
    assert bool(word) == bool(problem)
