"""Keys and types of foreign JSON are read as Go's decoder reads them."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.kubeapi import pod_annotations, shapes
from koordlet.model import wishes

STRUCTURE = {"name": None, "items": [{"id": None}], "inner": {"flag": None}}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"NAME": "a"}, {"name": "a"}),
        ({"name": "a", "Name": "b"}, {"name": "b"}),
        ({"Name": "a", "name": None}, {"name": "a"}),
        ({"other": 1, "inner": {"FLAG": True}}, {"other": 1, "inner": {"flag": True}}),
        ({"items": [{"ID": 1}, 5]}, {"items": [{"id": 1}, 5]}),
        ({"inner": [], "items": {}}, {"inner": [], "items": {}}),
        ("text", "text"),
    ],
)
def test_keys_match_without_regard_to_case_and_the_last_that_says_something_counts(
    body: Any, expected: Any
) -> None:
    """At every depth that the structure names; what it does not name stays as it is."""
    assert shapes.canonical(body, STRUCTURE) == expected


def test_a_record_keeps_what_can_be_read_of_a_key_that_comes_twice() -> None:
    """A later value of a wrong type costs itself, with a problem."""
    problems: list[str] = []
    text = '{"preferredCPUBindPolicy":"FullPCPUs","PreferredCPUBindPolicy":7}'

    expected = wishes.Binding(preferred="FullPCPUs")
    assert pod_annotations.binding(text, problems) == expected
    assert problems == ["preferredCPUBindPolicy: expected a text, found 7"]


@pytest.mark.parametrize("text", ["NaN", "{", "[" * 100_000, f'"{"x" * shapes.MAX_TEXT}"'])
def test_what_is_no_json_or_longer_than_an_annotation_is_refused(text: str) -> None:
    """With one error that says why."""
    with pytest.raises(ValueError, match=r"JSON|longer"):
        shapes.parse(text)


def test_labels_of_a_yaml_file_are_read_as_json_spells_them() -> None:
    """A number and a switch are texts, and each is said; an object is none."""
    problems: list[str] = []
    body = {"a": "x", "b": True, "c": 1.5, "d": None, "e": {}}

    assert shapes.texts(body, problems, "label") == {"a": "x", "b": "true", "c": "1.5", "d": ""}
    assert len(problems) == 4
