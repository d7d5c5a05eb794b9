"""What the console's pages are made of."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from koordlet.report import console_page

#: What a whole page may weigh.
MOST_BYTES = 150 * 1024

Files = Mapping[str, tuple[str, str]]


@pytest.mark.parametrize("files", [console_page.FILES, console_page.CLUSTER_FILES])
def test_it_is_small(files: Files) -> None:
    """All files of a page together, uncompressed."""
    assert sum(len(console_page.file(path, files).body) for path in files) < MOST_BYTES


@pytest.mark.parametrize("path", [*console_page.FILES, "/cluster.js", "/moves.js"])
def test_nothing_comes_from_elsewhere(path: str) -> None:
    """It works offline: no file names another host; the page has no script or style of its own."""
    files = console_page.FILES if path in console_page.FILES else console_page.CLUSTER_FILES
    body = console_page.file(path, files).body.decode()

    assert "//cdn" not in body
    assert "https://" not in body
    assert "http://" not in body.replace("http://www.w3.org/2000/svg", "")
    assert "innerHTML" not in body
    assert "<style" not in body
    assert " style=" not in body
