"""The seconds of a look, and the rest after one that was given up."""

from __future__ import annotations

import pytest

from koordlet.scheduler.claims.demand import AllocationError
from koordlet.scheduler.claims.search_time import SearchTime


def test_a_look_has_its_seconds_and_after_one_given_up_none_begins_for_as_long() -> None:
    """An attempt looks several times: all after the first say at once what that one said."""
    now = [100.0]
    time = SearchTime(lambda: now[0], most_seconds=3.0)
    now[0] = 103.0
    time.check()
    time.begin()
    now[0] = 106.5
    words = "^the search for devices was given up after 3 s: "
    with pytest.raises(AllocationError, match=words):
        time.check()
    now[0] = 109.0
    with pytest.raises(AllocationError, match=words):
        time.check()
    with pytest.raises(AllocationError, match=words):
        time.begin()
    now[0] = 109.5
    time.begin()
    time.check()
