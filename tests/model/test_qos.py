"""Classes and priority bands as the peers define them."""

from __future__ import annotations

import pytest

from koordlet.model import qos


@pytest.mark.parametrize(
    ("priority", "band"),
    [
        (None, None),
        (9000, qos.Band.PROD),
        (9999, qos.Band.PROD),
        (10_000, None),
        (7500, qos.Band.MID),
        (6999, None),
        (5000, qos.Band.BATCH),
        (3999, qos.Band.FREE),
        (2999, None),
        (-1, None),
    ],
)
def test_bands(priority: int | None, band: qos.Band | None) -> None:
    """A priority is in the band whose bounds hold it, or in none."""
    assert band is qos.Band.of(priority)


def test_only_two_classes_hold_cpus() -> None:
    """LSE and LSR may hold CPUs of their own."""
    assert {qos.Qos.LSE, qos.Qos.LSR} == {pod_class for pod_class in qos.Qos if pod_class.exclusive}
