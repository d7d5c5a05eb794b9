"""Tests of ``koordlet.scheduler.claims.cel_macros``: by whole expressions."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from koordlet.scheduler.claims import cel_evaluator, cel_syntax, cel_values, selector

_DEVICE = SimpleNamespace(
    attributes={"a": 1, "b": 2, "x.org/a": 3}, capacity={}, allow_multiple_allocations=False
)
_GPU = 'device.attributes["gpu"]'


@pytest.mark.parametrize(
    "expression",
    [
        f'{_GPU}.exists(name, value, name == "b" && value == 2)',
        f"{_GPU}.all(name, value, value < 3) && !{_GPU}.all(name, value, value < 2)",
        'device.attributes.exists(domain, own, domain == "x.org" && own.a == 3)',
        "[5, 6].all(place, value, value == place + 5) && ![5].exists(place, value, place == value)",
        "[1, 2, 1].existsOne(place, value, value == 2) && ![1, 1].existsOne(i, v, v == 1)",
        "[1, 2].transformList(i, v, i + v) == [1, 3]",
        "[1, 2, 3].transformList(i, v, v > 1, v * 2) == [4, 6]",
        f'{_GPU}.transformMap(k, v, v + 1) == {{"a": 2, "b": 3}}',
        f'{_GPU}.transformMap(k, v, v > 1, v) == {{"b": 2}}',
        "{true: 1}.transformMap(k, v, v) == {true: 1} && {true: 1}.all(k, v, k)",
        '{"a": 1}.transformMapEntry(k, v, {v: k}) == {1: "a"}',
        "[1, 2].exists(i, v, v / (v - 1) == 2) && ![1, 2].all(i, v, v / (v - 1) == 3)",
        "cel.bind(x, 1 / 0, true) && cel.bind(x, 1 / 0, x == 1 || true)",
        f'{_GPU}.filter(name, name == "b")[0] == "b"',
    ],
)
def test_macro_is_true(expression: str) -> None:
    """With one variable, and with one for the place or key and one for the value."""
    assert selector.compile(expression).matches(_DEVICE, "gpu") is True


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("[1, 1].exists(i, v, v / (v - 1) == 2)", "division by zero"),
        ("cel.bind(x, 1 / 0, x == 1)", "division by zero"),
        ("[1].all(i, v, dyn(1))", "no such overload"),
        ("[1].existsOne(i, v, dyn(1))", "no such overload"),
        ("dyn(1).all(i, v, true)", "got 'types.Int', expected iterable type"),
        ("[1].transformMapEntry(i, v, dyn(1)) == {}", "no such overload"),
        ("[1, 2].transformMapEntry(i, v, {0: v}) == {}", "insert failed: key 0 already exists"),
    ],
)
def test_macro_without_an_answer_says_why(expression: str, message: str) -> None:
    """Such a selector ends the pod's attempt, as in a kube-scheduler."""
    with pytest.raises(selector.SelectorError) as caught:
        selector.compile(expression).matches(_DEVICE, "gpu")
    assert str(caught.value) == f"CEL runtime error: {message}"


@pytest.mark.parametrize("expression", ["[1].all(x, y, z, true)", "[1].all(1, x, true)"])
def test_variables_are_names_and_no_more_than_two(expression: str) -> None:
    """An API server refuses the class or claim at once."""
    with pytest.raises(selector.SelectorError, match="compilation failed"):
        selector.compile(expression)


@pytest.mark.parametrize(
    "body", [f"[{', '.join(['i'] * 2000)}].size() > 0", " && ".join(["i >= 0"] * 1000)]
)
def test_each_round_costs_all_of_its_expression(body: str) -> None:
    """However flat it is."""
    with pytest.raises(selector.SelectorError, match="actual cost limit exceeded"):
        selector.compile(f"lists.range(600).all(i, {body})").matches(_DEVICE, "gpu")


class _FirstOnly(dict[int, int]):
    """A map of which nobody needs a second entry."""

    def __iter__(self) -> Iterator[int]:
        yield 1
        pytest.fail("all keys are looked at")

    def values(self) -> Any:
        yield 2
        pytest.fail("all values are looked at")


@pytest.mark.parametrize("variables", ["k", "k, v"])
def test_entries_behind_the_deciding_one_are_not_looked_at(variables: str) -> None:
    """They are not paid for."""
    compiler = cel_evaluator.Compiler({"m": "dyn"}, {})
    run, _ = compiler.compile(cel_syntax.parse(f"m.exists({variables}, k == 1)"))
    assert run([100, _FirstOnly(), None, None]) is True


def test_an_error_that_is_met_again_and_again_does_not_grow() -> None:
    """The bound value is an error; each use of it is one of its own."""
    compiler = cel_evaluator.Compiler({"x": "int"}, {})
    error = cel_values.EvaluationError("division by zero")
    run, _ = compiler.compile(cel_syntax.parse("lists.range(50).all(i, x > 0 || true)"))
    assert run([1000, error, None]) is True
    assert error.__traceback__ is None
