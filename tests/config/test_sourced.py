"""Who said what: origins of what was said, and two ways to say the same."""

from __future__ import annotations

import dataclasses

from koordlet.config import loader, sourced

TEXT = "apiVersion: koordlet.io/v1\nkind: Config\nlog: {level: error}\n"


def test_origins() -> None:
    """Of what somebody said; all else is built in."""
    effective = loader.from_text(TEXT, "f", {}, {"mode": sourced.Flag("observe", "--observe")})

    assert (effective.origin("log.level"), effective.origin("mode")) == ("f:3", "--observe")
    assert effective.origin("log.format") == sourced.BUILT_IN
    assert "log.format" not in effective.origins


def test_the_same_in_other_words() -> None:
    """A comment makes no other configuration; a value does."""
    effective = loader.from_text(TEXT, "f", {}, {})

    assert effective == dataclasses.replace(effective, text=f"{TEXT}# a comment\n")
    assert effective != loader.from_text(TEXT.replace("error", "debug"), "f", {}, {})
