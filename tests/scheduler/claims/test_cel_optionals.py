"""Tests of ``koordlet.scheduler.claims.cel_optionals``: attributes that a device may lack."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import pytest

from koordlet.scheduler.claims import selector

_DEVICE = SimpleNamespace(
    attributes={"model": "a", "index": 2, "ok": True, "v": SimpleNamespace(text="1.2.3")},
    capacity={"memory": SimpleNamespace(value=Fraction(2**30))},
    allow_multiple_allocations=False,
)
_GPU = 'device.attributes["gpu"]'


@pytest.mark.parametrize(
    "expression",
    [
        f'{_GPU}.?model.orValue("") == "a" && {_GPU}.?absent.orValue(7) == 7',
        f"{_GPU}.?ok.orValue(false) && !{_GPU}.?absent.orValue(false)",
        f"{_GPU}.?model.hasValue() && !{_GPU}[?'absent'].hasValue()",
        'device.attributes[?"unknown"].?x.orValue(true)',
        # Every domain is there, and some have attributes.
        'device.attributes[?"unknown"].hasValue() && has(device.attributes.unknown)',
        '!("unknown" in device.attributes)',
        f"!has({_GPU}.?model.x) && !{_GPU}.?model.?x.hasValue()",
        f"{_GPU}.?v.value().major() == 1",
        'device.capacity["gpu"].?memory.orValue(quantity("0")).isGreaterThan(quantity("1Mi"))',
        'device.capacity["gpu"].?cores.orValue(quantity("0")).sign() == 0',
        f"{_GPU}.?index.optMap(index, index + 1).orValue(0) == 3",
        f"{_GPU}.?absent.optMap(index, index + 1).orValue(9) == 9",
        f"{_GPU}.?model.optFlatMap(m, m == 'a' ? optional.of(1) : optional.none()).hasValue()",
        f"!{_GPU}.?model.optFlatMap(m, {_GPU}.?absent).hasValue()",
        f"{_GPU}.?absent.or({_GPU}.?index).value() == 2",
        "optional.of(1) == optional.of(1) && optional.none() != optional.of(1)",
        "optional.ofNonZeroValue(0).or(optional.ofNonZeroValue('')).orValue(5) == 5",
        "!optional.ofNonZeroValue([]).hasValue() && optional.ofNonZeroValue(1u).hasValue()",
        "optional.unwrap([optional.of(1), optional.none()]) == [1]",
        f"[?{_GPU}.?absent, 1].size() == 1 && [{_GPU}.?index].unwrapOpt() == [2]",
        f"({_GPU}.ok ? [1] : []).size() == 1",
        f"({_GPU}.ok ? optional.none() : optional.of(1)).orValue(3) == 3",
    ],
)
def test_expression_over_what_may_be_absent_is_true(expression: str) -> None:
    """How selectors ask devices of several drivers for an attribute that some lack."""
    assert selector.compile(expression).matches(_DEVICE, "gpu") is True


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (f"{_GPU}.?absent.value() == 1", "optional.none() dereference"),
        ("dyn(1).orValue(true)", "no such overload"),
        ("dyn(1).optMap(x, x).hasValue()", "no such overload"),
        ("optional.of(1).optFlatMap(x, dyn(x)).hasValue()", "no such overload"),
        ("optional.unwrap([dyn(1)]) == []", "no such overload"),
    ],
)
def test_absent_value_that_is_needed_says_so(expression: str, message: str) -> None:
    """Such a selector ends the pod's attempt, as in a kube-scheduler."""
    with pytest.raises(selector.SelectorError) as caught:
        selector.compile(expression).matches(_DEVICE, "gpu")
    assert str(caught.value) == f"CEL runtime error: {message}"


@pytest.mark.parametrize("expression", ["1.orValue(2) == 2", '"a".hasValue()', "optional.of()"])
def test_what_cannot_be_absent_has_no_such_function(expression: str) -> None:
    """An API server refuses the class or claim at once."""
    with pytest.raises(selector.SelectorError, match="compilation failed"):
        selector.compile(expression)
