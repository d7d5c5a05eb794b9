"""Every page is in the site once, every link leads somewhere, every generated page is fresh."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tools.docs import custom_resources as crds
from tools.docs import grpc_api as grpc
from tools.docs import policies

REPO = Path(__file__).resolve().parents[2]
DOCS = REPO / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *(REPO / name for name in ("README.md", "CONTRIBUTING.md"))])
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def named(nav: object) -> Iterator[str]:
    """The pages that a navigation names, in its order."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for entry in nav.values():
            yield from named(entry)
    elif isinstance(nav, list):
        for entry in nav:
            yield from named(entry)


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """What a link may point at inside a page."""
    heads = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def test_every_page_is_in_the_site() -> None:
    """Once, and no page is named that is not there."""
    nav = yaml.safe_load((REPO / "mkdocs.yml").read_text())["nav"]

    assert sorted(named(nav)) == sorted(path.name for path in DOCS.glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.name))
def test_links(page: Path) -> None:
    """To files that are there, and to headings that they have."""
    for target in _LINK.findall(prose(page)):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        assert not anchor or there.suffix != ".md" or anchor in anchors(there), target


@pytest.mark.parametrize(
    ("name", "render"),
    [
        ("api-grpc.md", grpc.page),
        ("api-objects.md", crds.page),
        ("policies.md", policies.page),
    ],
)
def test_generated_pages(name: str, render: Callable[[], str]) -> None:
    """They are what their sources say today; the head of each has the command that makes it."""
    assert (DOCS / name).read_text() == render()


def test_every_message_and_kind_is_there() -> None:
    """No service, message or custom resource is forgotten by its page."""
    sources = "".join(path.read_text() for path in grpc.SOURCES.glob("*.proto"))
    page = grpc.page()
    for name in re.findall(r"^\s*(?:service|message|enum) (\w+)", sources, re.MULTILINE):
        assert re.search(rf"^### \w+ (\w+\.)?{name}$", page, re.MULTILINE), name
    for name in re.findall(r"^\s*rpc (\w+)", sources, re.MULTILINE):
        assert f"| `{name}` |" in page
