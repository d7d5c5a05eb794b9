"""Tests of ``koordlet.scheduler.claims.cel_conversions``: one scalar made of another."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from koordlet.scheduler.claims import cel_conversions, selector
from koordlet.scheduler.claims.cel_values import EvaluationError, Uint

_NOTHING = SimpleNamespace(attributes={}, capacity={}, allow_multiple_allocations=False)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.5, "1.5"),
        (-12.0, "-12"),
        (123456.0, "123456"),
        (1234567.0, "1.234567e+06"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1e100, "1e+100"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_double_is_spelled_as_go_spells_it(number: float, text: str) -> None:
    """``fmt.Sprintf("%g")`` with as few digits as tell the number from others."""
    assert cel_conversions.spelled(number) == text


@pytest.mark.parametrize(
    "expression",
    [
        'double(1) < 1.5 && double("1e3") == 1000.0 && double(2u) == 2.0 && double(1.5) == 1.5',
        'uint(1) == 1u && uint("7") == 7u && uint(1.9) == 1u && type(uint(1)) == uint',
        'int(1.9) == 1 && int(-1.9) == -1 && int("-7") == -7 && int(7u) == 7',
        'string(1.5) == "1.5" && string(b"a") == "a" && string(true) == "true"',
        r'bytes("é") == b"\xc3\xa9" && bytes(b"a").size() == 1',
        'bool("t") && bool("T") && bool("TRUE") && !bool("False") && bool(true)',
        'quantity("1Gi").asApproximateFloat() > 1e9 && quantity("1").add(1) == quantity("2")',
        'quantity("5").sub(2).sub(quantity("1")) == quantity("2")',
    ],
)
def test_conversion_is_true(expression: str) -> None:
    """What CEL's standard functions and Kubernetes' quantities give."""
    assert selector.compile(f"({expression}) && device.driver != ''").matches(_NOTHING, "gpu")


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("uint(-1) == 1u", "unsigned integer overflow"),
        ("uint(-1.5) == 1u", "unsigned integer overflow"),
        ("uint(-0.5) == 0u", "unsigned integer overflow"),
        ("uint(1e30) == 1u", "unsigned integer overflow"),
        ("uint(18446744073709551616.0) > 1u", "unsigned integer overflow"),
        ('uint(double("nan")) == 1u', "unsigned integer overflow"),
        ("int(-9223372036854775808.0) < 1", "integer overflow"),
        ("int(9223372036854775808.0) > 1", "integer overflow"),
        ('int(double("nan")) == 1', "integer overflow"),
        ("int(1e30) == 1", "integer overflow"),
        ('int(double("inf")) == 1', "integer overflow"),
        ('uint("-1") == 1u', 'strconv.ParseUint: parsing "-1": invalid syntax'),
        ('double("1_0") > 0.0', 'strconv.ParseFloat: parsing "1_0": invalid syntax'),
        ('double("1e999") > 0.0', 'strconv.ParseFloat: parsing "1e999": value out of range'),
        (r'string(b"\xff") == ""', "invalid UTF-8 in bytes, cannot convert to string"),
        ('bool("yes")', "type conversion error from 'yes' to 'bool'"),
    ],
)
def test_conversion_without_a_result_says_why(expression: str, message: str) -> None:
    """Such a selector ends the pod's attempt, as in a kube-scheduler."""
    with pytest.raises(selector.SelectorError) as caught:
        selector.compile(expression).matches(_NOTHING, "gpu")
    assert str(caught.value) == f"CEL runtime error: {message}"


def test_bounds_of_texts_are_those_of_the_types() -> None:
    """The last number that fits, and the first that does not."""
    assert cel_conversions.unsigned(str(2**64 - 1)) == Uint(2**64 - 1)
    with pytest.raises(EvaluationError, match="unsigned integer overflow"):
        cel_conversions.unsigned(str(2**64))
    with pytest.raises(EvaluationError, match="integer overflow"):
        cel_conversions.whole(str(2**63))
