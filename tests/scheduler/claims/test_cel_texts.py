"""Functions over texts, as a selector writes them."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from koordlet.scheduler.claims import cel_texts, selector

_DEVICE = SimpleNamespace(
    attributes={"product": "NVIDIA A100-SXM4", "v": SimpleNamespace(text="1.2.3")},
    capacity={},
    allow_multiple_allocations=False,
)
_PRODUCT = 'device.attributes["gpu"].product'


@pytest.mark.parametrize(
    "expression",
    [
        f'{_PRODUCT}.lowerAscii().matches("^.*a100.*$") && matches({_PRODUCT}, "A[0-9]+")',
        '"a1b22".find("[0-9]+") == "1" && "ab".find("[0-9]") == ""',
        '"a1b22".findAll("[0-9]+") == ["1", "22"] && "é".findAll(".") == ["é"]',
        '"a1b22".findAll("[0-9]", 2) == ["1", "2"] && "a".findAll("a", 0).size() == 0',
        '"baac".findAll("a*") == ["", "aa", ""] && "aa".findAll("a", -1) == ["a", "a"]',
        '"aÄb".upperAscii() == "AÄB" && " \\u00a0x\\n".trim() == "x"',
        '"abc".charAt(1) == "b" && "abc".charAt(3) == ""',
        '"abcb".indexOf("b") == 1 && "abcb".indexOf("b", 2) == 3 && "a".indexOf("") == 0',
        '"abcb".lastIndexOf("b") == 3 && "abcb".lastIndexOf("b", 2) == 1',
        '"abcb".lastIndexOf("") == 4 && "a".lastIndexOf("x") == -1',
        '"abcd".substring(2) == "cd" && "abcd".substring(1, 3) == "bc"',
        '"a-a-a".replace("a", "b") == "b-b-b" && "a-a-a".replace("a", "b", 2) == "b-b-a"',
        '"ab".replace("", "_") == "_a_b_" && "aa".replace("a", "b", 0) == "aa"',
        '"a,b,c".split(",") == ["a", "b", "c"] && "a,b,c".split(",", 2) == ["a", "b,c"]',
        '"ab".split("") == ["a", "b"] && "abc".split("", 2) == ["a", "bc"]',
        '"a,b".split(",", 0).size() == 0 && "a,b".split(",", 1) == ["a,b"]',
        '["a", "b"].join() == "ab" && "a,b".split(",").join("-") == "a-b"',
        'isSemver("v1.0.0", true) && !isSemver("v1.0.0")',
        'isQuantity("1Gi") && !isQuantity("1 Gi") && quantity("1500m").sign() == 1',
        'quantity("2k").asInteger() == 2000 && !quantity("1m").isInteger()',
        'quantity("1").add(quantity("1")).sub(quantity("3")) == quantity("-1")',
        'int("-12") == -12 && int(1.9) == 1 && int(2u) == 2 && string(true) + string(1) == "true1"',
    ],
)
def test_expression_over_texts_is_true(expression: str) -> None:
    """What CEL's extensions for texts say; the first is how drivers show it."""
    assert selector.compile(expression).matches(_DEVICE, "gpu") is True


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ('"abc".charAt(4) == ""', "index out of range: 4"),
        ('"abc".substring(4) == ""', "index out of range: 4"),
        ('"abc".substring(2, 1) == ""', "invalid substring range. start: 2, end: 1"),
        ('"abc".indexOf("b", -1) == 1', "index out of range: -1"),
        ('"abc".lastIndexOf("b", -1) == 1', "index out of range: -1"),
        ('[1].join() == ""', "no such overload"),
        ('"a".matches("(")', "error parsing regexp: missing closing ): `(`"),
        ('"a".find("(") == ""', "Illegal regex: error parsing regexp: missing closing ): `(`"),
        ('int("1x") == 1', 'strconv.ParseInt: parsing "1x": invalid syntax'),
        ('int("9223372036854775808") == 1', "integer overflow"),
        ("int(1.0 / 0.0) == 1", "integer overflow"),
        ('quantity("1m").asInteger() == 1', "cannot convert value to integer"),
        (
            'device.attributes["gpu"].v.exists(x, true)',
            "got 'cel.Semver', expected iterable type",
        ),
    ],
)
def test_call_without_a_result_says_why(expression: str, message: str) -> None:
    """In the words of the library that kube-scheduler uses."""
    with pytest.raises(selector.SelectorError) as caught:
        selector.compile(expression).matches(_DEVICE, "gpu")
    assert str(caught.value) == f"CEL runtime error: {message}"


@pytest.mark.parametrize(
    "expression",
    [
        "cel.bind(a, 'x'.replace('', '{0}'), a.replace('', a).replace('', a.replace('', a)) == '')",
        "cel.bind(a, '{0}'.split(''), a.join('{0}'.replace('', '{0}')).size() == 0)",
        "'{0}{0}{0}'.replace('', '{0}').matches('a{{999}}b')",
        "'{0}'.findAll('a').size() == 0",
        "'{0}'.split('').all(each, !'{0}'.matches('(a{{99}})+b'))",
        "'{0}'.split('').all(each, 'a'.matches('({0}){{100}}') || true)",
        "'{0}'.split('').all(each, 'a'.matches('{0}(') || true)",
    ],
)
def test_what_would_grow_without_end_is_too_expensive(expression: str) -> None:
    """A text is refused before it is made, a pattern before it is followed, however often."""
    grown = expression.format("a" * 1000)
    with pytest.raises(selector.SelectorError, match="actual cost limit exceeded"):
        selector.compile(grown).matches(_DEVICE, "gpu")


def test_the_last_part_is_found_in_one_pass() -> None:
    """Where nearly all of it fits nearly everywhere: Python's own takes thousands of passes."""
    text, part = "a" * 200_000, "ab" + "a" * 100_000
    began = time.process_time()
    assert cel_texts.last_index_of(text, part) == -1
    assert cel_texts.last_index_of("b" + text, part[1:], 9) == 0
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize("part", ["", "a", "ab", "ba", "abab", "c", "ababa"])
def test_the_last_place_of_a_part_is_that_which_python_finds(part: str) -> None:
    """In all of a text, and up to each place of it."""
    text = "abab"
    assert cel_texts.last_index_of(text, part) == text.rfind(part)
    for begin in range(len(text)):
        wanted = text.rfind(part, 0, begin + len(part)) if part else begin
        assert cel_texts.last_index_of(text, part, begin) == wanted
