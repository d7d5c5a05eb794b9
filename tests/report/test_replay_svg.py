"""The picture of a recording."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from koordlet.report import replay_svg as picture

_SVG = "{http://www.w3.org/2000/svg}"


def paths(points: list[picture.Point], title: str = "t") -> dict[str, str]:
    """The lines by name."""
    drawn = ET.fromstring(picture.render(points, 2000, title))  # noqa: S314 -- made here
    return {
        str(path.findtext(f"{_SVG}title")): str(path.get("d")) for path in drawn.iter(f"{_SVG}path")
    }


def test_what_is_not_known_breaks_a_line() -> None:
    """Columns without any value have no line, a missing value is a gap, nothing leaves the box."""
    points = [
        picture.Point(at=1.0, node=0, limit=9000),
        picture.Point(at=2.0, node=None, limit=1000),
        picture.Point(at=3.0, node=2000, limit=-5),
    ]
    lines = paths(points)

    assert set(lines) == {"node", "best-effort limit"}
    assert lines["node"] == "M60.0 340.0 M770.0 40.0"
    assert lines["best-effort limit"] == "M60.0 40.0 L415.0 190.0 L770.0 340.0"


@pytest.mark.parametrize("points", [[], [picture.Point(at=5.0, node=1)]])
def test_short_recordings(points: list[picture.Point]) -> None:
    """None and one moment are pictures, too."""
    assert len(points) == len(paths(points))


def test_titles_are_text() -> None:
    """Whatever was typed is shown and not obeyed."""
    assert paths([], "<script>&") == {}
