"""The section ``manifests``: the usual directory, another one, none."""

from __future__ import annotations

import pytest

from koordlet.config import loader, places, schema
from koordlet.model import errors
from tests.config.refusing import Write


def test_the_usual_directory() -> None:
    """Without a word it is the built-in one, which counts where it exists."""
    assert schema.defaults().manifests.directory == places.MANIFESTS


@pytest.mark.parametrize(
    ("directory", "expected"), [("/srv/pods", "/srv/pods"), ("null", None), ("~", None)]
)
def test_another_or_none(write: Write, directory: str, expected: str | None) -> None:
    """A directory by its path; null is none."""
    config = loader.load(write(f"manifests: {{directory: {directory}}}"), {}, {}).config

    assert config.manifests.directory == expected


@pytest.mark.parametrize("directory", ["7", "[a]", "relative/path", "{a: b}", "true"])
def test_what_is_no_directory(write: Write, directory: str) -> None:
    """One error that names the key."""
    with pytest.raises(errors.ConfigError, match=r"manifests\.directory"):
        loader.load(write(f"manifests: {{directory: {directory}}}"), {}, {})


def test_a_wrong_key(write: Write) -> None:
    """It is refused by its name, with the nearest one."""
    with pytest.raises(errors.ConfigError, match="directory"):
        loader.load(write("manifests: {directori: /srv}"), {}, {})
