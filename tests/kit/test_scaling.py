"""The picture of how cost grows is that of the recorded measurement, with all axes."""

from __future__ import annotations

import json

import pytest

from tests.bench import scaling


def test_a_slope_is_that_of_the_logarithms() -> None:
    """Whatever the unit: nothing, in proportion, with the square."""
    sizes = (10, 20, 40, 80)

    for power in (0, 1, 2):
        points = [(size, 3e-6 * size**power) for size in sizes]
        assert scaling.slope(points) == pytest.approx(power)


def test_the_picture_is_that_of_the_record() -> None:
    """Whoever records anew draws anew, each axis at its sizes."""
    recorded = json.loads(scaling.RECORD.read_text(encoding="utf-8"))

    assert scaling.picture(recorded) == scaling.PICTURE.read_text(encoding="utf-8"), (
        "python -m tests.bench.scaling"
    )
    sizes = {name: [size for size, _ in points] for name, points in recorded.items()}
    assert sizes == {axis.name: list(axis.sizes) for axis in scaling.AXES}


def test_the_page_has_the_slope_of_each_axis() -> None:
    """A slope without its reason would be a number only."""
    page = (scaling.RECORD.parents[1] / "measurements.md").read_text(encoding="utf-8")
    recorded = json.loads(scaling.RECORD.read_text(encoding="utf-8"))

    for axis in scaling.AXES:
        assert f"| {axis.name} | {scaling.slope(recorded[axis.name]):.2f} | " in page
