"""Half a character in JSON is read as U+FFFD, as Go reads it; everything else stays as it was."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.model import surrogates

#: JSON as somebody sends it, and the text that is read.
SPELLED = {
    rb'"\ud800"': "\ufffd",
    rb'"\uDFFF"': "\ufffd",
    rb'"a\ud83d\ude00b"': "a\U0001f600b",
    rb'"\ud800\ud83d\ude00"': "\ufffd\U0001f600",
    rb'"\ude00\ud83d"': "\ufffd\ufffd",
    rb'"\\ud800"': "\\ud800",
    rb'"\\\ud800"': "\\\ufffd",
    b'"\xff"': "\ufffd",
    rb'"plain\n"': "plain\n",
}


@pytest.mark.parametrize("data", SPELLED)
def test_json(data: bytes) -> None:
    """Pairs, escaped backslashes and all other escapes stay."""
    assert SPELLED[data] == json.loads(surrogates.mended(data))


@pytest.mark.parametrize("data", SPELLED)
def test_it_is_as_long_as_before(data: bytes) -> None:
    """So a place in the mended list is the same place in the list as it came."""
    assert len(data) == len(surrogates.spelled(data))


def test_items_as_they_came() -> None:
    """Each from its own place, also where two look alike once they are mended."""
    items = [rb'"\ufffd"', rb'"\ud800"', b"1"]
    data = b"[" + b",".join(items) + b"]"
    mended = [surrogates.spelled(item) for item in items]

    assert items == list(surrogates.parts(mended, surrogates.spelled(data), data))


def test_values() -> None:
    """Keys and values at every depth: two halves that belong together are one character."""
    mended = surrogates.whole({"\ud800": ["a\ud83d\ude00", {"b": ("c", 1, None)}], "é": "\udc00x"})

    assert mended == {"\ufffd": ["a\U0001f600", {"b": ("c", 1, None)}], "é": "\ufffdx"}


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_every_text(text: str) -> None:
    """Whatever JSON spells can be sent on afterwards, and is the same either way."""
    spelled = json.dumps(text)
    by_value, by_bytes = surrogates.whole(text), json.loads(surrogates.mended(spelled.encode()))

    assert by_value == by_bytes == by_value.encode().decode()
    assert by_value == text or surrogates.suspect(spelled)
