"""The pictures and the page about topology are what the program draws and prints today."""

from __future__ import annotations

import re

import pytest

from koordlet.host.topology import discovery
from koordlet.report import topology_json
from tests.kit import machines, pictures

PAGE = (pictures.IMAGES.parent / "topology.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_picture_is_up_to_date(name: str) -> None:
    """What is committed is what would be drawn: else run ``python -m tests.kit.pictures``."""
    kept = (pictures.IMAGES / f"{name}.svg").read_text(encoding="utf-8")

    assert pictures.draw(name) == kept


def test_page_shows_every_picture() -> None:
    """The page has each picture once, with a text in its place, and no other."""
    shown = re.findall(r"!\[[^\]]{20,}\]\(images/(topology-[\w-]+)\.svg\)", PAGE)

    assert sorted(pictures.PICTURES) == sorted(shown)


def keys(value: object) -> set[str]:
    """All keys of a document; those of ``hugepages`` are page sizes."""
    if isinstance(value, list):
        return {key for element in value for key in keys(element)}
    if isinstance(value, dict):
        inner = {key for name, child in value.items() if name != "hugepages" for key in keys(child)}
        return set(value) | inner
    return set()


def test_page_explains_every_key() -> None:
    """Each key of the document is explained in a table of the page."""
    hosts = [machines.to_host(shape()) for shape in machines.SHAPES.values()]
    hosts.append(pictures.PICTURES["topology-nodes-in-sockets"]())
    documents = [topology_json.document(discovery.discover(host)) for host in hosts]
    rows = re.findall(r"^\| (.+?) \|", PAGE, re.MULTILINE)

    present = {key for document in documents for key in keys(document)}
    explained = {word for row in rows for word in re.findall(r"`(\w+)`", row)}

    assert {"address", "governor", "book_id", "capacity"} <= present
    assert set() == present - explained
