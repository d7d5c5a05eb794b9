"""A log of changes: each reader goes on where he was, or is told that he cannot; small numbers."""

from __future__ import annotations

import numpy as np
import pytest

from koordlet.scheduler.cluster import vectors


def test_each_reader_gets_what_came_since_his_own_position() -> None:
    """In order; who has seen everything gets nothing."""
    log: vectors.ChangeLog[str] = vectors.ChangeLog()
    log.append("a")
    middle = log.end
    log.append("b")
    assert (log.since(0), log.since(middle), log.since(log.end)) == (["a", "b"], ["b"], [])


def test_a_reader_who_is_far_behind_cannot_go_on() -> None:
    """The log keeps a bounded number; who is near goes on."""
    log: vectors.ChangeLog[int] = vectors.ChangeLog()
    for number in range(3 * vectors.MEMORY):
        log.append(number)
    assert log.since(0) is None
    assert log.since(log.end - 1) == [3 * vectors.MEMORY - 1]


def test_a_log_that_forgets_tells_each_reader_so_once() -> None:
    """Also the one who had seen everything."""
    log: vectors.ChangeLog[str] = vectors.ChangeLog()
    for start in (0, log.end):
        log.forget()
        assert log.since(start) is None
    end = log.end
    log.append("a")
    assert log.since(end) == ["a"]


@pytest.mark.parametrize("least", [0, -1, -(2**7) - 1, -(2**31) - 1, -(2**63)])
@pytest.mark.parametrize("most", [0, 2**8, 2**16, 2**31, 2**32, 2**53 + 1, 2**63 - 1])
def test_numbers_that_are_kept_small_are_the_same(least: int, most: int) -> None:
    """Whole ones, of either sign, however large."""
    kept = vectors.compact(np.array([least, most], np.int64))
    assert np.issubdtype(kept.dtype, np.integer)
    assert kept.astype(np.int64).tolist() == [least, most]
