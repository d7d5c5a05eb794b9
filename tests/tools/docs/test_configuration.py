"""The reference page is what the schema says today."""

from __future__ import annotations

from pathlib import Path

from koordlet.config import catalog
from tools.docs import configuration

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_committed_page() -> None:
    """The committed page equals the rendered one (see its head for the command)."""
    assert configuration.render() == PAGE.read_text(encoding="utf-8")


def test_every_field() -> None:
    """Every field and its variable are on the page."""
    page = configuration.render()

    for field in catalog.fields():
        assert f"`{field.path}`" in page
        assert (f"`{field.variable}`" in page) is field.scalar
