"""Annotations that hold JSON: whatever was written there, an object or a list comes out."""

from __future__ import annotations

import pytest

from koordlet.scheduler.objects import json_annotations, wire

_DEEP = "[" * 100_000


@pytest.mark.parametrize("spelled", [None, 5, "", "{", "5", "null", "[]", '"x"', _DEEP])
def test_nonsense_is_nothing(spelled: object) -> None:
    """Where nobody is to be told, there is no object."""
    assert json_annotations.body(spelled) == {}
    assert json_annotations.bodies(spelled) == []


def test_what_is_there() -> None:
    """An object, and the objects of a list; what else is in the list is passed over."""
    assert (
        {"a": 1}
        == json_annotations.body('{"a": 1}')
        == json_annotations.meant({"k": '{"a": 1}'}, "k")
    )
    assert json_annotations.bodies('[{"a": 1}, 5, null, [], {}]') == [{"a": 1}, {}]
    assert {} == json_annotations.meant({}, "k") == json_annotations.meant({"k": ""}, "k")


@pytest.mark.parametrize(("spelled", "why"), [("{", "is not JSON"), (_DEEP, "JSON"), ("5", "5")])
def test_what_must_be_right_is_named(spelled: str, why: str) -> None:
    """The annotation and what is wrong with it."""
    with pytest.raises(wire.BadObjectError, match=f"annotation example/k .*{why}"):
        json_annotations.meant({"example/k": spelled}, "example/k")
