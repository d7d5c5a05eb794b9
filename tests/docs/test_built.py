"""The built site: every link and resource of its pages is there, and nothing is from elsewhere.

``make docs`` builds it, then runs this; ``tests/browser/test_site.py`` looks at it in Chromium.
"""

from __future__ import annotations

import html.parser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml

from tests.docs import test_site

SITE = test_site.REPO / "build/site"
#: Where a page takes something from by itself, and with which attribute.
_LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
#: The search and the page for what is not found are the theme's, and in no navigation.
_THEMES = {"404.html", "search.html"}

pytestmark = pytest.mark.site


class Page(html.parser.HTMLParser):
    """What one page points at, loads and can be pointed at."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors = {"", "top"}
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(given[one] for one in ("id", "name") if one in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in _LOADED and _LOADED[tag] in given and given.get("rel") != "canonical":
            self.loads.append(given[_LOADED[tag]])


@pytest.fixture(scope="module")
def pages() -> dict[str, Page]:
    """All of them, by name."""
    found = {one.name: Page(one) for one in sorted(SITE.glob("*.html"))}
    assert found, "make docs builds the site first"
    return found


def test_every_link_leads_somewhere(pages: dict[str, Page]) -> None:
    """To a page, a file or a heading of the site; the navigation's links are among them."""
    broken = []
    for name, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            there = unquote(parts.path).lstrip("/") or name
            target = pages.get("index.html" if there == "." else there)
            known = target is not None or (SITE / there).exists()
            if not known or (target is not None and unquote(parts.fragment) not in target.anchors):
                broken.append(f"{name}: {link}")

    assert broken == []


def test_nothing_is_loaded_from_elsewhere(pages: dict[str, Page]) -> None:
    """Neither by a page nor by a style: the site works without any network."""
    loaded = [(name, one) for name, page in pages.items() for one in page.loads]
    foreign = [(name, one) for name, one in loaded if urlsplit(one).netloc]
    missing = [
        (name, one)
        for name, one in loaded
        if not urlsplit(one).netloc
        and not one.startswith("data:")
        and not (SITE / urlsplit(one).path.lstrip("/")).is_file()
    ]
    styles = [one.name for one in SITE.rglob("*.css") if "//" in _urls(one.read_text())]

    assert len(loaded) > len(pages)
    assert (foreign, missing, styles) == ([], [], [])


def _urls(style: str) -> str:
    parts = style.split("url(")[1:]
    return "\n".join(one.partition(")")[0] for one in parts if "data:" not in one[:8])


def test_every_page_is_built_and_reached(pages: dict[str, Page]) -> None:
    """Each document is a page, and the navigation of each page leads to all of them."""
    nav = yaml.safe_load((test_site.REPO / "mkdocs.yml").read_text())["nav"]
    wanted = {one.removesuffix(".md") + ".html" for one in test_site.named(nav)}

    assert pages.keys() - _THEMES == wanted
    for name in wanted:
        assert wanted - {urlsplit(one).path for one in pages[name].links} <= {name}, name
