"""The site of the documents in Chromium: readable on a telephone and on a desk, by itself."""

from __future__ import annotations

import functools
import http.server
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

REPO = Path(__file__).resolve().parents[2]
#: The widest tables, the pictures, blocks of code, the longest page.
PAGES = (
    "index",
    "tour",
    "policies",
    "configuration",
    "topology",
    "resctrl",
    "api-objects",
    "replace",
)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing about it."""

    def log_message(self, *_: object) -> None:
        """Nobody wants to read it."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the site, built as ``make docs`` builds it; its search needs a server."""
    folder = tmp_path_factory.mktemp("site")
    words = [".venv/docs/bin/python", "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir"]
    subprocess.run([*words, str(folder)], cwd=REPO, check=True, timeout=120)
    serve = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def view(browser: Browser, site: str) -> Iterator[Page]:
    """A page that asks for nothing elsewhere; what it complains about fails the test."""
    context = browser.new_context()
    context.set_default_timeout(20_000)
    made = context.new_page()
    complaints: list[str] = []
    made.on(
        "console",
        lambda message: complaints.append(message.text) if message.type == "error" else None,
    )
    made.on("pageerror", lambda error: complaints.append(str(error)))
    made.on(
        "request",
        lambda request: None if request.url.startswith(site) else complaints.append(request.url),
    )
    yield made
    context.close()
    assert complaints == []


@pytest.mark.parametrize("width", [320, 1280])
def test_a_page_fits(view: Page, site: str, width: int) -> None:
    """Nothing is wider than the page; wide tables scroll inside of themselves, pictures fit."""
    view.set_viewport_size({"width": width, "height": 900})
    for name in PAGES:
        view.goto(f"{site}/{name}.html")
        assert view.locator("h1").count() >= 1
        assert view.evaluate("document.documentElement.scrollWidth") <= width, name
        wide = view.evaluate(
            "[...document.querySelectorAll('[role=main] :is(p, li, h1, h2, img, pre, table)')]"
            ".filter((one) => !one.closest('table, pre') || one.matches('table, pre'))"
            ".filter((one) => one.getBoundingClientRect().right > innerWidth + 1)"
            ".map((one) => one.outerHTML.slice(0, 80))"
        )
        assert wide == [], name


def test_navigation(view: Page, site: str) -> None:
    """From the first page to a policy and back, by what is shown."""
    view.set_viewport_size({"width": 1280, "height": 900})
    view.goto(f"{site}/index.html")
    view.get_by_role("link", name="Five-minute tour", exact=True).first.click()
    assert view.url.endswith("/tour.html")
    view.get_by_role("link", name="what each policy does").click()
    assert view.url.endswith("/policies.html")
    view.locator("table a", has_text="adaptive").first.click()
    assert view.url.endswith("/policies.html#adaptive")


def test_search(view: Page, site: str) -> None:
    """A word of a page is found there, without asking anybody else."""
    view.goto(f"{site}/search.html?q=handover")
    view.wait_for_selector("#mkdocs-search-results article a")
    assert view.locator("#mkdocs-search-results article").count() >= 1
