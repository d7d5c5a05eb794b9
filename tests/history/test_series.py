"""The history: spaces side by side."""

from __future__ import annotations

from koordlet.history import series
from koordlet.model import meter
from tests.kit import counting


def test_each_reading_goes_to_its_space() -> None:
    """What was read of one kind of subject is not asked of another."""
    past = series.History()
    past.take({"cpus": counting.reading(0, {meter.PIDS: [7.0]}, names=("3",))})

    assert 7 == past.cpus.last("3", meter.PIDS)
    assert past.groups.last("3", meter.PIDS) is None
    assert 7 == past.usage().cpus.value("3", meter.PIDS)
    assert {} == past.usage().node.slots
