"""Tests of ``koordlet.scheduler.claims.selector``: whole expressions over a device."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.scheduler.claims import selector

_DEVICE = SimpleNamespace(
    attributes={"model": "a", "x.org/numa": 1, "v": SimpleNamespace(text="1.2.3")},
    capacity={"memory": SimpleNamespace(value=Fraction(80 * 2**30))},
    allow_multiple_allocations=False,
)
_GPU = 'device.attributes["gpu"]'


@pytest.mark.parametrize(
    "expression",
    [
        f'device.driver == "gpu" && {_GPU}.model == "a" && !device.allowMultipleAllocations',
        'device.attributes["x.org"]["numa"] == 1',
        f'{_GPU}.v.isGreaterThan(semver("1.2.0")) && {_GPU}.v.major() == 1',
        'device.capacity["gpu"].memory.compareTo(quantity("80Gi")) == 0',
        'quantity("1000m") == quantity("1")',
        'quantity("9e400").asApproximateFloat() > 1.0 && quantity("-9e400").sign() < 0',
        'quantity("-9e400").asApproximateFloat() == -1.0 / 0.0',
        f'"1.2.3" != {_GPU}.v && {_GPU}.v != null',
        '!("x" in device.attributes["unknown"]) && !has(device.attributes["unknown"].x)',
        "!(false && 1 / 0 > 0) && (1 / 0 > 0 || true) && !(1 / 0 > 0 && false)",
        "-9223372036854775808 < 0 && -5 / 2 == -2 && -5 % 3 == -2",
        "[1, 2].map(x, x + 1) == [2, 3] && [1, 2].map(x, x > 1, x) == [2]",
        "[0, 1].exists(x, 1 / x == 1) && {1: 2}[1u] == 2 && {true: 1, 1: 2}[true] == 1",
        "[1, 2, 1].filter(x, x == 1).size() == 2 && ![1, 1].exists_one(x, x == 1)",
        '"abc".indexOf("b", 9) == -1 && "abc".lastIndexOf("b", 3) == -1',
        '{"a": 1}.all(k, k == "a") && cel.bind(n, 2, n * n == 4)',
        r'"\u00e9".size() == 1 && r"\n" == "\\n" && b"\xff".size() == 1',
        'semver("1.0.0-rc.2").isLessThan(semver("1.0.0-rc.10")) && semver("v1", true).minor() == 0',
    ],
)
def test_expression_is_true_of_the_device(expression: str) -> None:
    """What CEL's specification and Kubernetes' libraries say of values."""
    assert selector.compile(expression).matches(_DEVICE, "gpu") is True


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ('device.attributes["unknown"].x == 1', "CEL runtime error: no such key: x"),
        (
            f"{_GPU}.model.all(x, true)",
            "CEL runtime error: got 'types.String', expected iterable type",
        ),
        (
            f"{_GPU}.model",
            "CEL runtime error: must evaluate to bool or the unknown type, not string",
        ),
        (f"{_GPU}.model.x == 1", "CEL runtime error: no such key: x"),
        (f'{_GPU}.v == "1.2.3"', "CEL runtime error: no such overload"),
        (
            'semver("1.0") == semver("1.0.0")',
            "CEL runtime error: No Major.Minor.Patch elements found",
        ),
        ("[1][dyn(0.5)] == 1", "CEL runtime error: unsupported index value 0.5 in list"),
        ("9223372036854775807 + 1 > 0", "CEL runtime error: integer overflow"),
        ("0u - 1u > 0u", "CEL runtime error: unsigned integer overflow"),
        ("1 / 0 > 0", "CEL runtime error: division by zero"),
        ("dyn(-9223372036854775808) % -1 == 0", "CEL runtime error: integer overflow"),
        (
            (
                "[1,1,1,1,1,1,1,1,1,1].all(a, [1,1,1,1,1,1,1,1,1,1].all(b, [1,1,1,1,1,1,1,1,1,1]"
                ".all(c, [1,1,1,1,1,1,1,1,1].all(d, [1,1,1,1,1,1,1,1,1,1].all(e, [1,1,1,1,1,1,1,1]"
                ".all(f, f == 1))))))"
            ),
            "CEL runtime error: actual cost limit exceeded",
        ),
    ],
)
def test_evaluation_without_an_answer_says_why(expression: str, message: str) -> None:
    """The words are those of a kube-scheduler, which ends the pod's attempt."""
    compiled = selector.compile(expression)
    with pytest.raises(selector.SelectorError) as caught:
        compiled.matches(_DEVICE, "gpu")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("1", "must evaluate to bool or the unknown type, not int"),
        ("includes(1)", "undeclared reference to 'includes' (in container '')"),
        ('"a" == 1', "'_==_' applied to '(string, int)'"),
        ("device.foo == 1", "<input>:1:7: undefined field 'foo'"),
        ("true &&", "Syntax error"),
        ("(" * 60 + "true" + ")" * 60, "expression recursion limit exceeded"),
        ("true ||" * 2000 + "true", "expression is longer than 10240 bytes"),
        ("9223372036854775808 > 0", "invalid int literal"),
    ],
)
def test_expression_that_means_nothing_does_not_compile(expression: str, message: str) -> None:
    """Nobody has to see a device for it."""
    with pytest.raises(selector.SelectorError) as caught:
        selector.compile(expression)
    assert message in str(caught.value)


def test_attribute_of_a_type_that_is_not_served_is_named() -> None:
    """Lists of values are not served."""
    device = SimpleNamespace(
        attributes={"n": object()}, capacity={}, allow_multiple_allocations=False
    )
    with pytest.raises(selector.SelectorError, match="attribute n: unsupported attribute value"):
        selector.compile("true").matches(device, "gpu")


_WORDS = st.sampled_from(
    [
        "1",
        "2u",
        "1.5",
        '"a"',
        'b"a"',
        "true",
        "null",
        "device",
        ".driver",
        ".attributes",
        '["gpu"]',
        ".model",
        "x",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ":",
        "?",
        ",",
        ".",
        "!",
        "-",
        "+",
        "*",
        "/",
        "%",
        "<",
        "==",
        "&&",
        "||",
        "in",
        "has(",
        "size(",
        ".all(x,",
        ".map(x,",
        ".size()",
        "quantity(",
        "semver(",
    ]
)


@given(st.lists(_WORDS, max_size=12).map(" ".join) | st.text(max_size=30))
def test_no_expression_raises_anything_but_a_selector_error(expression: str) -> None:
    """Anybody who makes a claim writes an expression."""
    try:
        selector.compile(expression).matches(_DEVICE, "gpu")
    except selector.SelectorError:
        return


def test_of_many_expressions_the_most_recent_are_kept_compiled() -> None:
    """Each claim may have others, as long as an API server takes them."""
    compiled = [selector.compile(f"{number} >= 0") for number in range(600)]
    assert selector.compile("599 >= 0") is compiled[-1]
    assert selector.compile.cache_info().currsize <= 512
