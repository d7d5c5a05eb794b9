"""Tests of ``koordlet.scheduler.claims.cel_lists``: by whole expressions."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from koordlet.scheduler.claims import cel_lists, selector

_DEVICE = SimpleNamespace(
    attributes={"index": 2, "model": "a"}, capacity={}, allow_multiple_allocations=False
)
#: Few lists of few lists, of the same elements: 64 million when they are flat.
_MANY = (
    "cel.bind(a, lists.range(400), cel.bind(b, a.map(x, a), cel.bind(c, a.map(x, b),"
    " c.flatten(2).size() > 0)))"
)


@pytest.mark.parametrize(
    "expression",
    [
        "[1, 2, 3].sum() == 6 && [1u, 2u].sum() == 3u && [0.5, 1.0].sum() == 1.5",
        "[].sum() == 0 && [dyn(1)].sum() == 1",
        '[3, 1, 2].min() == 1 && [3, 1].max() == 3 && ["a", "b"].max() == "b"',
        '[dyn(1), dyn("a")].max() == dyn(1) && [dyn(1), dyn("a")].isSorted()',
        "[true, false].min() == false && [1.5, 0.5].min() == 0.5",
        '[1, 1, 2].isSorted() && !["b", "a"].isSorted() && [].isSorted()',
        'device.attributes["gpu"].map(name, name).isSorted()',
        "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(2) == -1",
        '[1, 2].indexOf(device.attributes["gpu"].index) == 1',
        "sets.contains([1, 2], [2, 2]) && !sets.contains([1], [2]) && sets.contains([], [])",
        "sets.equivalent([1, 2], [2, 1, 1]) && !sets.equivalent([1, 2], [1])",
        "sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [2]) && !sets.intersects([], [])",
        "[1, 2, 3].slice(1, 3) == [2, 3] && [1].slice(0, 0) == [] && [1, 2].reverse() == [2, 1]",
        '["b", "a"].sort() == ["a", "b"] && [2, 1, 2].distinct() == [2, 1]',
        "[[1], [2, [3]]].flatten() == [1, 2, [3]] && [[1], [[3]]].flatten(2) == [1, 3]",
        "lists.range(3) == [0, 1, 2] && lists.range(-1) == []",
        "[1, 2].first().value() == 1 && [1, 2].last().value() == 2 && !dyn([]).first().hasValue()",
        'sets.contains(["a", "b"], [device.attributes["gpu"].model])',
    ],
)
def test_expression_over_lists_is_true(expression: str) -> None:
    """What Kubernetes' lists and CEL's sets say."""
    assert selector.compile(expression).matches(_DEVICE, "gpu") is True


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("dyn([]).min() == 1", "min called on empty list"),
        ("[dyn(1)].filter(x, false).max() == 1", "max called on empty list"),
        ("[dyn([1])].max() == 1", "no such overload"),
        ('[dyn("a")].sum() == 1', "no such overload"),
        ("[9223372036854775807, 1].sum() > 0", "integer overflow"),
        ("[1].slice(0, 2) == []", "cannot slice(0, 2), list is length 1"),
        ("[1].slice(-1, 2) == []", "cannot slice(-1, 2), negative indexes not supported"),
        (
            "[1].slice(1, 0) == []",
            "cannot slice(1, 0), start index must be less than or equal to end index",
        ),
        ("[1].flatten(-1) == []", "level must be non-negative"),
        (_MANY, "actual cost limit exceeded"),
        ("lists.range(2000000).size() > 0", "actual cost limit exceeded"),
        ('[dyn(1), dyn("a")].sort() == []', "no such overload"),
    ],
)
def test_list_without_an_answer_says_why(expression: str, message: str) -> None:
    """Such a selector ends the pod's attempt, as in a kube-scheduler."""
    with pytest.raises(selector.SelectorError) as caught:
        selector.compile(expression).matches(_DEVICE, "gpu")
    assert str(caught.value) == f"CEL runtime error: {message}"


@pytest.mark.parametrize("expression", ['["a"].sum() == "a"', "[[1]].isSorted()", "1.sum() == 1"])
def test_elements_without_a_sum_or_an_order_do_not_compile(expression: str) -> None:
    """An API server refuses the class or claim at once."""
    with pytest.raises(selector.SelectorError, match="compilation failed"):
        selector.compile(expression)


def test_comparing_many_elements_is_paid_for() -> None:
    """Two lists of a thousand: half a million comparisons for each of four sets."""
    numbers = "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"
    many = f"{numbers}.map(a, {numbers}.map(b, {numbers}.map(c, 1)))"
    expression = f"cel.bind(m, {many}, cel.bind(n, m + m + m + m, !sets.contains(n, [[[2]]])))"
    assert selector.compile(expression).matches(_DEVICE, "gpu") is True
    dear = " && ".join(["!sets.intersects(n + n + n + n, n.map(x, [x]))"] * 40)
    expression = f"cel.bind(m, {many}, cel.bind(n, m + m + m + m, {dear}))"
    with pytest.raises(selector.SelectorError, match="actual cost limit exceeded"):
        selector.compile(expression).matches(_DEVICE, "gpu")


@pytest.mark.parametrize(
    "expression",
    [
        'cel.bind(x, lists.range(9000).map(i, ""), lists.range(3000).all(i, x.join() == ""))',
        (
            "cel.bind(x, lists.range(9000).map(i, optional.none()),"
            " lists.range(3000).all(i, optional.unwrap(x).size() == 0))"
        ),
        (
            'cel.bind(a, lists.range(9000).map(i, "0123456789").join(), cel.bind(b, a + "1",'
            ' cel.bind(c, a + "2", lists.range(500).all(i, b < c))))'
        ),
    ],
)
def test_what_is_gone_through_in_vain_is_paid_for(expression: str) -> None:
    """Of many elements nothing is left, and of long texts nothing but their order."""
    with pytest.raises(selector.SelectorError, match="actual cost limit exceeded"):
        selector.compile(expression).matches(_DEVICE, "gpu")


class _FromTheEnd(list[int]):
    def __iter__(self) -> Iterator[int]:
        pytest.fail("all elements are looked at")


def test_the_last_place_is_looked_for_from_the_end() -> None:
    """It costs what was looked at, and no more is."""
    assert cel_lists.last_index_of([2], _FromTheEnd([1, 2, 3]), 3) == 2
