"""The whole cluster as a picture: each node once, no name cut."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.sim import picture
from tests.kit.clusters import node, pod

_SVG = "{http://www.w3.org/2000/svg}"


def drawn(names: list[str], *pods: dict[str, object]) -> ET.Element:
    """The picture of nodes of these names."""
    loaded = inventory.load([*(node(name) for name in names), *pods])
    return ET.fromstring(picture.svg(loaded.columns))  # noqa: S314 -- ours


@pytest.mark.parametrize("number", [1, 200, 201, 1234])
def test_each_node_is_drawn_once(number: int) -> None:
    """Whatever their number: by a label, or by a cell that names it."""
    names = [f"node-{n}" for n in range(number)]
    shown = drawn(names)
    texts = [text.text or "" for text in shown.iter(f"{_SVG}text")]
    titles = [title.text or "" for title in shown.iter(f"{_SVG}title")]

    cells = [title.split(":")[0] for title in titles if title.split(":")[0] in set(names)]
    labels = [text for text in texts if text in set(names)]
    assert sorted([*cells, *labels]) == sorted(names)
    assert texts[0].startswith(f"{number} nodes; requested: cpu 0%")


def test_a_long_name_has_room() -> None:
    """It begins within the picture."""
    name = "ip-10-0-12-200.eu-central-1.compute.internal." + "x" * 18
    shown = drawn([name])
    (label,) = (text for text in shown.iter(f"{_SVG}text") if text.text == name)

    assert float(label.attrib["x"]) >= 7 * len(name)
    assert float(label.attrib["x"]) < float(shown.attrib["width"])


def test_the_fullest_resource_gives_the_colour() -> None:
    """A node that is full differs from one that is empty."""
    names = [f"n{n}" for n in range(300)]
    shown = drawn(names, pod("p", on="n7", cpu="4"))
    colours = {
        (title.text or "").split(":")[0]: rect.attrib["fill"]
        for rect in shown.iter(f"{_SVG}rect")
        for title in rect.iter(f"{_SVG}title")
    }

    assert colours["n7"] != colours["n8"] == colours["n0"]
    assert "prefers-color-scheme: dark" in ET.tostring(shown, encoding="unicode")
