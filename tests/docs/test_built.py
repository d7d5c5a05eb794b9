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
        values = {name: value or "" for name, value in attrs}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in _LOADED and _LOADED[tag] in values and values.get("rel") != "canonical":
            self.loads.append(values[_LOADED[tag]])


@pytest.fixture(scope="module")
def pages() -> dict[str, Page]:
    """All of them, by name."""
    by_name = {path.name: Page(path) for path in sorted(SITE.glob("*.html"))}
    assert by_name, "make docs builds the site first"
    return by_name


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
    loaded = [(name, url) for name, page in pages.items() for url in page.loads]
    foreign = [(name, url) for name, url in loaded if urlsplit(url).netloc]
    missing = [
        (name, url)
        for name, url in loaded
        if not urlsplit(url).netloc
        and not url.startswith("data:")
        and not (SITE / urlsplit(url).path.lstrip("/")).is_file()
    ]
    styles = [path.name for path in SITE.rglob("*.css") if "//" in _urls(path.read_text())]

    assert len(loaded) > len(pages)
    assert (foreign, missing, styles) == ([], [], [])


def _urls(style: str) -> str:
    parts = style.split("url(")[1:]
    return "\n".join(part.partition(")")[0] for part in parts if "data:" not in part[:8])


def test_every_page_is_built_and_reached(pages: dict[str, Page]) -> None:
    """Each document is a page, and the navigation of each page leads to all of them."""
    nav = yaml.safe_load((test_site.REPO / "mkdocs.yml").read_text())["nav"]
    wanted = {document.removesuffix(".md") + ".html" for document in test_site.named(nav)}

    assert pages.keys() - _THEMES == wanted
    for name in wanted:
        assert wanted - {urlsplit(link).path for link in pages[name].links} <= {name}, name
