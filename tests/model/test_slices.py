"""Names of slices: nesting and escaping, both ways."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.model import slices


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("-.slice", ""),
        ("a.slice", "a.slice"),
        ("a-b-c.slice", "a.slice/a-b.slice/a-b-c.slice"),
        (r"a\x2db.slice", r"a\x2db.slice"),
        ("a--b.slice", None),
        ("-a.slice", None),
        ("a-.slice", None),
        (".slice", None),
        ("a.service", None),
        ("a/b.slice", None),
        ("", None),
    ],
)
def test_nesting(name: str, path: str | None) -> None:
    """Each dash nests; a name that would nest a slice without a name is none."""
    assert path == slices.expand(name)


@pytest.mark.parametrize(
    ("text", "name"),
    [("a-b", r"a\x2db"), ("a/b", "a-b"), (".a", r"\x2ea"), ("ä", r"\xc3\xa4"), ("a:_.9", "a:_.9")],
)
def test_escaping(text: str, name: str) -> None:
    """As systemd-escape writes it."""
    assert name == slices.escape(text)


def _unescaped(name: str) -> str:
    """As systemd reads it."""
    raw = name.encode().replace(b"-", b"/")
    return re.sub(rb"\\x([0-9a-f]{2})", lambda escape: bytes((int(escape[1], 16),)), raw).decode()


@given(st.text())
def test_an_escaped_text_comes_back(text: str) -> None:
    """Whatever is escaped is one part of a name, and is read as it was."""
    text = text.encode("utf-8", "replace").decode()
    assert text == _unescaped(slices.escape(text))


@given(st.text())
def test_nothing_is_refused(text: str) -> None:
    """No text raises."""
    slices.expand(text)
    slices.expand(f"{text}.slice")


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("nginx.service", True),
        (r"user@1\x2d.service", True),
        ("a.scope", True),
        ("nginx", False),
        ("a.timer", False),
        ("a/b.service", False),
        ("a.service\n", False),
        (f"{'a' * 248}.service", False),
    ],
)
def test_units(name: str, *, right: bool) -> None:
    """A unit that has a cgroup, by its full name."""
    assert slices.is_unit(name) is right
