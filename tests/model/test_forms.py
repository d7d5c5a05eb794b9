"""Texts of kernel files: what is read is what was written, and nothing empty is ever written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.model import forms, knob

BYTES = forms.Number(low=0, high=2**63 - 1, unlimited="max", pages=(4096,))


@pytest.mark.parametrize(
    ("row", "wanted", "current", "same"),
    [
        ("cpuset.cpus", "0,1,2", "0-2", True),
        ("cpuset.cpus", "0-2", "damage", False),
        # The kernel cuts shares to their range, and rounds bytes down to pages.
        ("cpu.shares", "1", "2", True),
        ("cpu.shares", "300000", "262144", True),
        ("cpu.weight", "1", "2", False),
        ("memory.max", "4097", "4096", True),
        # 16 and 64 KiB pages, as on arm64 and ppc64; without any memory is never what was meant.
        ("memory.high", "104865792", "104857600", True),
        ("memory.high", "104890368", "104857600", True),
        ("memory.high", "104857600", "104865792", False),
        ("memory.low", "8192", "0", False),
        ("memory.limit_in_bytes", "-1", "9223372036854710272", True),
        ("memory.max", "max", "max", True),
        # The most pages that the kernel counts are no limit to it.
        ("memory.max", "9223372036854775807", "max", True),
        ("memory.max", "9223372036854644736", "max", False),
        ("memory.max", "0", "max", False),
        ("memory.limit_in_bytes", "-1", "9223372036854771712", True),
        ("memory.limit_in_bytes", "-1", "4096", False),
        ("cpu.cfs_quota_us", "-1", "-1", True),
        ("cpu.max", "max 100000", "max 100000", True),
        ("cpu.max", "50000", "50000 100000", True),
        ("cpu.max", "50000 100000", "50000 50000", False),
        ("io.max", "8:0 rbps=1048576", "8:0 rbps=1048576 wbps=max riops=max wiops=max", True),
        ("io.max", "8:0 rbps=max", "", True),
        ("io.max", "8:0 rbps=1", "8:16 rbps=1", False),
        ("blkio.throttle.read_bps_device", "8:0 1048576", "8:0 1048576", True),
        ("blkio.throttle.read_bps_device", "8:0 0", "", True),
        ("pids.max", "max", "max", True),
    ],
)
def test_what_the_kernel_shows_is_compared_by_meaning(
    row: str, wanted: str, current: str, *, same: bool
) -> None:
    """The kernel's own normal form equals what was asked for; anything else does not."""
    assert same is knob.TABLE[row].same(wanted, current)


@given(st.none() | st.integers(-(2**70), 2**70))
def test_a_number_is_written_whole_or_refused(value: int | None) -> None:
    """What is written can be read back, and is never empty."""
    numbers = [row.form for row in knob.TABLE.values() if isinstance(row.form, forms.Number)]

    assert numbers
    for form in numbers:
        try:
            text = form.text(value)
        except ValueError:
            continue
        assert text.strip()
        assert form.parse(text) == value or form.also_unlimited is not None


@given(st.text(max_size=30))
def test_no_text_breaks_a_form(text: str) -> None:
    """Whatever a file says is compared and measured; it equals itself."""
    for row in knob.TABLE.values():
        assert row.form.measure(text) is not None
        assert isinstance(row.same(text, "1"), bool)


@given(
    st.none() | st.integers(1_000, 17_592_186_044_415),
    st.integers(1_000, 1_000_000),
)
def test_bandwidth_is_read_back(usec: int | None, period: int) -> None:
    """Both fields are always written."""
    form = forms.Bandwidth()
    quota = forms.Quota(usec, period)

    assert quota == form.parse(form.text(quota))
    assert len(form.text(quota).split()) == 2


@pytest.mark.parametrize("quota", [forms.Quota(999), forms.Quota(1000, 999), forms.Quota(0)])
def test_bandwidth_that_the_kernel_refuses_is_not_written(quota: forms.Quota) -> None:
    """Less than a millisecond is EINVAL, so it is an error here."""
    with pytest.raises(ValueError, match="not in"):
        forms.Bandwidth().text(quota)


@pytest.mark.parametrize(("device", "fields"), [("8:0", {}), ("sda", {"rbps": 1}), ("8", {"": 1})])
def test_a_line_without_a_device_or_a_limit_is_refused(
    device: str, fields: dict[str, int | None]
) -> None:
    """An empty line would change something else."""
    with pytest.raises(ValueError, match="device"):
        forms.Keyed().text(device, fields)


def test_measures_follow_what_a_text_grants() -> None:
    """More is larger, no limit is the largest, damage is the least."""
    bandwidth = forms.Bandwidth()

    assert BYTES.measure("max") > BYTES.measure("4096") > BYTES.measure("0")
    assert BYTES.measure("damage") == 0.0
    assert bandwidth.measure("max 100000") > bandwidth.measure("50000 50000")
    assert bandwidth.measure("50000 50000") > bandwidth.measure("50000 100000")
