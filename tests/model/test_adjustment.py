"""What several policies want for one container becomes one answer."""

from __future__ import annotations

from koordlet.model import cpuset
from koordlet.model.adjustment import Adjustment

ONE = Adjustment(cpus=cpuset.CPUSet.of([1]), unified={"a": "1"}, reasons={"x": "because"})
OTHER = Adjustment(cpus=cpuset.CPUSet.of([2]), cpu_milli=-1, unified={"a": "2", "b": "3"})


def test_the_first_counts_and_the_second_fills_in() -> None:
    """Each field is of the first that says something; files and reasons are joined."""
    both = ONE.over(OTHER)

    assert (str(both.cpus), both.cpu_milli) == ("1", -1)
    assert (both.unified, both.reasons) == ({"a": "1", "b": "3"}, {"x": "because"})


def test_nothing_to_say() -> None:
    """A reason alone changes nothing."""
    assert Adjustment(reasons={"x": "no need"}).empty
    assert not ONE.empty
