"""Who said what: origins of what was said, and two ways to say the same."""

from __future__ import annotations

import dataclasses

from koordlet.config import loader, sourced

TEXT = "apiVersion: koordlet.io/v1\nkind: Config\nlog: {level: error}\n"


def test_origins() -> None:
    """Of what somebody said; all else is built in."""
    found = loader.from_text(TEXT, "f", {}, {"mode": sourced.Flag("observe", "--observe")})

    assert (found.origin("log.level"), found.origin("mode")) == ("f:3", "--observe")
    assert found.origin("log.format") == sourced.BUILT_IN
    assert "log.format" not in found.origins


def test_the_same_in_other_words() -> None:
    """A comment makes no other configuration; a value does."""
    found = loader.from_text(TEXT, "f", {}, {})

    assert found == dataclasses.replace(found, text=f"{TEXT}# a comment\n")
    assert found != loader.from_text(TEXT.replace("error", "debug"), "f", {}, {})
