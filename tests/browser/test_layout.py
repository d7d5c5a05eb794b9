"""Pages look as they did: each panel's place, and what a coarse look at its picture shows.

Covers: screenshots of every panel, compared with ``layouts.json``.
Does not cover: that nothing overlaps or sticks out at any size (``test_sizes``).

A picture is not compared pixel by pixel: fonts and their smoothing differ between machines, and so
do heights, by a line more or less. What must not change is where each panel is and how wide, and
the light and dark parts of each: its picture is scaled down to a few cells, whose luminance is
compared with a tolerance that a line of text in another font stays within, and a colour that is
gone or a table that has become a heap does not.

    KOORDLET_LAYOUTS=write make browser ARGS="-k layout"     writes the reference anew; look at it
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser import conftest, looking

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

REFERENCE = Path(__file__).with_name("layouts.json")
COLUMNS, ROWS = 12, 6
WIDTHS = (320, 1280, 2560)
#: Of the width of the page; of the height of a panel; mean and worst cell, of 255.
_ACROSS, _DOWN, _MEAN, _WORST = 0.02, 0.3, 9.0, 60.0
_BOXES = """() => Object.fromEntries(
  [...document.querySelectorAll("section:not([hidden])")].map((one) => {
  const box = one.getBoundingClientRect(), wide = document.documentElement.clientWidth;
  return [one.id,
    [box.left / wide, box.width / wide, box.height, box.top + scrollY]];
}))"""
_SCALED = """async ([data, columns, rows]) => {
  const picture = new Image();
  picture.src = data;
  await picture.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns, rows];
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(picture, 0, 0, columns, rows);
  const { data: rgba } = context.getImageData(0, 0, columns, rows);
  return Array.from({ length: columns * rows }, (_, n) => Math.round(
    0.2126 * rgba[4 * n] + 0.7152 * rgba[4 * n + 1] + 0.0722 * rgba[4 * n + 2]));
}"""

Layout = dict[str, dict[str, Any]]


def layout(browser: Browser, page: Page) -> Layout:
    """Each panel: its place across, its height, its order, its cells."""
    boxes: dict[str, list[float]] = page.evaluate(_BOXES)
    aside = browser.new_page()
    measured: Layout = {}
    for name, (left, width, height, top) in boxes.items():
        shot = page.locator(f"section#{name}").screenshot()
        data = "data:image/png;base64," + base64.b64encode(shot).decode()
        cells = aside.evaluate(_SCALED, [data, COLUMNS, ROWS])
        measured[name] = {
            "across": [round(left, 3), round(width, 3)],
            "height": round(height),
            "top": round(top),
            "cells": cells,
        }
    aside.close()
    return measured


def differences(now: Layout, wanted: Layout) -> list[str]:
    """What is not as it was, in words."""
    if now.keys() != wanted.keys():
        return [f"panels are {sorted(now)}, were {sorted(wanted)}"]
    changes = []
    order, before = (sorted(each, key=lambda n: (each[n]["top"], n)) for each in (now, wanted))
    if order != before:
        changes.append(f"panels come as {order}, came as {before}")
    for name, panel in now.items():
        was = wanted[name]
        if any(abs(a - b) > _ACROSS for a, b in zip(panel["across"], was["across"], strict=True)):
            changes.append(f"{name} is at {panel['across']}, was at {was['across']}")
        if abs(panel["height"] - was["height"]) > _DOWN * was["height"]:
            changes.append(f"{name} is {panel['height']} high, was {was['height']}")
        apart = [abs(a - b) for a, b in zip(panel["cells"], was["cells"], strict=True)]
        mean, worst = sum(apart) / len(apart), max(apart)
        if mean > _MEAN or worst > _WORST:
            changes.append(f"{name} looks different: {mean:.1f} in the mean, {worst} at most")
    return changes


def compared(name: str, measured: Layout) -> list[str]:
    """What differs from the reference of this name, which may be written anew."""
    known = json.loads(REFERENCE.read_text()) if REFERENCE.exists() else {}
    if os.environ.get("KOORDLET_LAYOUTS") == "write":
        known[name] = measured
        REFERENCE.write_text(json.dumps(dict(sorted(known.items()))) + "\n")
    return differences(measured, known[name])


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_layout(
    browser: Browser, page: Page, console: conftest.Console, width: int, theme: looking.Theme
) -> None:
    """The agent's page, from narrow to very wide, light and dark."""
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 900})
    console.show(conftest.owned(console.now, "3"))
    page.wait_for_selector('[data-cpu="3"].lse')
    looking.expect_text(page, "#audit", "bursts")
    page.evaluate("document.getAnimations().forEach((one) => one.finish())")

    assert compared(f"console {width} {theme}", layout(browser, page)) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_layout_of_the_cluster(
    browser: Browser, cluster_page: Page, cluster: conftest.Cluster, theme: looking.Theme
) -> None:
    """The scheduler's page, the same."""
    cluster_page.emulate_media(color_scheme=theme)
    cluster.gang("late", 3)
    looking.expect_text(cluster_page, "#gangs", "child pod not collect enough")
    looking.expect_text(cluster_page, "#decisions", "d/web →")
    looking.expect_text(cluster_page, "#reservations", "room Available")
    looking.expect_text(cluster_page, "#queues", "1 unschedulable")
    for width in WIDTHS:
        cluster_page.set_viewport_size({"width": width, "height": 900})
        measured = layout(browser, cluster_page)
        # How often a pod was tried until now depends on the pace.
        del measured["decided"]
        assert compared(f"cluster {width} {theme}", measured) == []


def test_what_is_noticed() -> None:
    """A panel that moved, grew, went away or lost its colours; not a line more or another font."""
    panel = {"across": [0.0, 0.5], "height": 200, "top": 0, "cells": [200] * 72}
    other = {**panel, "across": [0.5, 0.5], "top": 10}
    was: Layout = {"map": panel, "chart": other}

    def changed(**more: Any) -> list[str]:
        return differences({**was, "map": {**panel, **more}}, was)

    assert changed() == []
    assert changed(height=220, cells=[205] * 72) == []
    assert "is at" in changed(across=[0.1, 0.5])[0]
    assert "high" in changed(height=300)[0]
    assert "come as" in changed(top=20)[0]
    assert "looks different" in changed(cells=[100, *[200] * 71])[0]
    assert "looks different" in changed(cells=[185] * 72)[0]
    assert "panels are" in differences({"map": panel}, was)[0]
