"""JSON of our own files: numbers that fit, bounded nesting, and never anything but ValueError."""

from __future__ import annotations

import json

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.state import ownfiles
from tests.kit import search


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff",
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"1e999",
        b"18446744073709551616",
        b"-9223372036854775809",
        b"1" + b"0" * 5000,
        b"[" * 65 + b"]" * 65,
        b'{"a":' * 100_000,
    ],
    ids=lambda text: repr(text[:20]),
)
def test_what_we_never_wrote(text: bytes) -> None:
    """Damage, numbers beyond range and deep nesting are one kind of error."""
    with pytest.raises(ValueError, match=r"."):
        ownfiles.load_json(text)


@search.examples(100)
@hypothesis.given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.text(max_size=8)
        | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
        max_leaves=20,
    )
)  # fmt: skip
def test_everything_else_comes_back(document: object) -> None:
    """What ``json.dumps`` makes of plain values is read as it was."""
    assert document == ownfiles.load_json(json.dumps(document).encode())
