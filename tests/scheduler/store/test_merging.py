"""Patches on plain values: tables, and the rules that hold for any value."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.kubeapi import refusals
from koordlet.scheduler.store import merging, ownership

KEYS = {"conditions": ("type",), "ports": ("containerPort", "protocol")}

_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)
    ),
    max_leaves=8,
)
_bodies = st.dictionaries(st.sampled_from("abcd"), _values, max_size=4)


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"a": "foo"}, None, None),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_examples_of_the_standard(target: Any, patch: Any, result: Any) -> None:
    """RFC 7386, appendix A."""
    assert merging.merge(target, patch) == result


@hypothesis.given(_bodies, _bodies)
def test_a_merge_is_idempotent(target: dict[str, Any], patch: dict[str, Any]) -> None:
    """A patch that is applied twice changes nothing the second time."""
    once = merging.merge(target, patch)

    assert merging.merge(once, patch) == once


def test_keyed_lists() -> None:
    """Elements with equal keys are merged, others are appended, deleted where asked."""
    old = {"conditions": [{"type": "A", "status": "1", "x": 1}, {"type": "B"}]}
    patch = {"conditions": [{"type": "A", "status": "2"}, {"type": "C"}]}
    gone = {"conditions": [{"type": "A", "$patch": "delete"}]}

    assert merging.strategic(old, patch, KEYS) == {
        "conditions": [{"type": "A", "status": "2", "x": 1}, {"type": "B"}, {"type": "C"}]
    }
    assert merging.strategic(old, gone, KEYS) == {"conditions": [{"type": "B"}]}
    assert old["conditions"][0] == {"type": "A", "status": "1", "x": 1}


def test_directives() -> None:
    """What kubectl sends beside the fields is obeyed, and never kept as a field."""
    old = {"a": {"b": 1, "c": 2}, "finalizers": ["x", "y"], "list": [1, 2]}

    assert merging.strategic(old, {"a": {"$patch": "replace", "d": 1}}, KEYS)["a"] == {"d": 1}
    assert merging.strategic(old, {"a": {"$retainKeys": ["c"]}}, KEYS)["a"] == {"c": 2}
    assert merging.strategic(old, {"finalizers": ["z", "x"]}, KEYS)["finalizers"] == [*"xyz"]
    patch = {"$deleteFromPrimitiveList/finalizers": ["x"], "$setElementOrder/list": [2, 1]}
    assert merging.strategic(old, patch, KEYS) == {**old, "finalizers": ["y"]}
    with pytest.raises(refusals.Malformed):
        merging.strategic(old, {"$patch": "explode"}, KEYS)


@pytest.mark.parametrize("bad", [[1], [{"status": "x"}]])
def test_elements_without_keys(bad: list[Any]) -> None:
    """An element of a keyed list that lacks its key is refused."""
    with pytest.raises(refusals.Malformed):
        merging.strategic({}, {"conditions": bad}, KEYS)


@hypothesis.given(_bodies)
def test_owners_are_read_as_they_are_written(body: dict[str, Any]) -> None:
    """The published notation loses no path."""
    owner = ownership.FieldManager("one", "Apply")
    owned = {owner: frozenset(ownership.fields(body, KEYS))} if body else {}

    entries = ownership.write(owned, None, "v1", "2026-01-01T00:00:00Z")

    assert ownership.read(entries) == owned


@hypothesis.given(_bodies, _bodies)
def test_an_apply_of_nothing_removes_what_was_applied(
    base: dict[str, Any], body: dict[str, Any]
) -> None:
    """Only what others have owned before is left, unless the apply had changed it."""
    hypothesis.assume(not base.keys() & body.keys())
    owner = ownership.FieldManager("one", "Apply")
    other = ownership.FieldManager("two", "Update")
    mine = {other: frozenset(ownership.fields(base, KEYS))}
    applied, owned = ownership.apply(base, body, mine, owner, KEYS, force=False)

    after, _ = ownership.apply(applied, {}, owned, owner, KEYS, force=False)

    assert after == base


def test_managed_fields_of_any_shape() -> None:
    """Entries that cannot be read belong to nobody."""
    assert ownership.read("x") == {}
    assert ownership.read([1, {"fieldsV1": 7}, {"manager": "a"}]) == {}


class CountedElement(dict[str, Any]):
    """An element of a list that counts how often anybody asks for a key of it."""

    asked = 0

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key."""
        CountedElement.asked += 1
        return super().get(key, default)


def test_long_lists_are_merged_in_the_sum_of_their_lengths() -> None:
    """A pod of a megabyte has 25 000 variables: a profile that adds some must not take minutes."""
    target = {"env": [CountedElement(name=f"e{at}", value="") for at in range(2_000)]}
    patch = {"env": [{"name": f"f{at}", "value": ""} for at in range(1_000)]}
    merged = merging.strategic(target, patch, {"env": ("name",)})
    assert [item["name"] for item in merged["env"]] == [
        *(f"e{at}" for at in range(2_000)),
        *(f"f{at}" for at in range(1_000)),
    ]
    assert CountedElement.asked <= 2 * 2_000


def test_an_element_that_is_deleted_may_come_again_at_the_end() -> None:
    """In the order of the patch; the others keep their places."""
    target = {"env": [{"name": name, "value": "1"} for name in "abc"]}
    patch = {
        "env": [
            {"name": "a", "$patch": "delete"},
            {"name": "gone", "$patch": "delete"},
            {"name": "c", "value": "2"},
            {"name": "a", "value": "3"},
        ]
    }
    merged = merging.strategic(target, patch, {"env": ("name",)})
    assert [(item["name"], item["value"]) for item in merged["env"]] == [
        ("b", "1"),
        ("c", "2"),
        ("a", "3"),
    ]


@pytest.mark.parametrize("key", [[1], {"a": 1}])
def test_an_element_is_identified_by_plain_values(key: object) -> None:
    """A list as a name is no name."""
    with pytest.raises(refusals.Malformed, match="lacks its key 'name'"):
        merging.strategic({}, {"env": [{"name": key}]}, {"env": ("name",)})
