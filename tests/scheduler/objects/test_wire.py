"""Fields of decoded JSON: the expected shape, or an error that names the field."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from koordlet.scheduler.objects import wire


def test_labels_of_the_longest_name_and_value_are_taken() -> None:
    """A prefix of 253 characters, a slash and a name of 63; a value of 63."""
    name, value = f"{'p' * 253}/{'n' * 63}", "v" * 63
    assert wire.labels({"labels": {name: value}}) == {name: value}


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"n" * 318: ""}, "labels: a name of 318 characters: 'nnn"),
        ({"n": "v" * 64}, "labels: the value of 'n' is not a string or has 64 characters"),
        ({"n": ["v"]}, "labels: the value of 'n' is not a string or has 5 characters"),
        (["n"], "labels is not an object: ['n']"),
    ],
)
def test_labels_beyond_the_bounds_are_refused(labels: Any, message: str) -> None:
    """One character too many in a name or a value, and what is no text, with the field's name."""
    with pytest.raises(wire.BadObjectError, match=re.escape(message)):
        wire.labels({"labels": labels})


def test_labels_that_yaml_took_for_other_types_are_texts() -> None:
    """A boolean, a number and nothing."""
    assert wire.labels({"labels": {"a": True, "b": 7, "c": None}}) == {
        "a": "true",
        "b": "7",
        "c": "",
    }


@pytest.mark.parametrize(
    ("read", "empty", "value", "message"),
    [
        (wire.mapping, {}, [], "f is not an object: []"),
        (wire.bodies, [], [1], "f has an element that is not an object: 1"),
        (wire.integer, 0, True, "f is not an integer: True"),
        (wire.integer, 0, 1.0, "f is not an integer: 1.0"),
        (wire.flag, False, "true", "f is neither true nor false: 'true'"),
    ],
)
def test_a_missing_field_is_empty_and_a_wrong_one_is_named(
    read: Callable[[wire.Body, str], Any], empty: Any, value: Any, message: str
) -> None:
    """``null`` counts as missing, as in Go."""
    assert (read({}, "f"), read({"f": None}, "f")) == (empty, empty)
    with pytest.raises(wire.BadObjectError, match=re.escape(message)):
        read({"f": value}, "f")
