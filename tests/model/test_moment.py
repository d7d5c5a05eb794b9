"""Times and durations mean what Go and Kubernetes mean by them."""

from __future__ import annotations

import pytest

from koordlet.model import moment


@pytest.mark.parametrize(
    ("spelled", "seconds"),
    [
        ("1h", 3600),
        ("1h30m", 5400),
        ("0", 0),
        ("0s", 0),
        ("1.5h", 5400),
        ("100ms", 0.1),
        ("-5s", -5),
    ],
)
def test_durations(spelled: str, seconds: float) -> None:
    """All units, fractions, signs."""
    assert moment.duration(spelled) == seconds


@pytest.mark.parametrize("spelled", ["", "5", "h", "1d", "1h 5m", "--1s", "1e9h", "9999999999h"])
def test_no_durations(spelled: str) -> None:
    """What Go refuses is refused."""
    with pytest.raises(ValueError, match="duration"):
        moment.duration(spelled)


def test_times() -> None:
    """With a zone, without one (UTC), and back."""
    assert moment.parse("2023-11-14T22:13:20Z") == 1_700_000_000
    assert moment.parse("2023-11-14T23:13:20+01:00") == 1_700_000_000
    assert moment.parse("2023-11-14T22:13:20") == 1_700_000_000
    assert moment.spell(1_700_000_000.9) == "2023-11-14T22:13:20Z"
    with pytest.raises(ValueError, match="not a time"):
        moment.parse("yesterday")


def test_every_time_that_can_be_read_can_be_written_and_read_again() -> None:
    """Go's zero time is of the year 1; a year beyond either end, in UTC, is no time."""
    for spelled in ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"):
        assert moment.spell(moment.parse(spelled)) == spelled
    for spelled in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"):
        with pytest.raises(ValueError, match="years 1 to 9999"):
            moment.parse(spelled)
