"""Regular expressions of selectors: what fits, what is refused, and how long it takes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.scheduler.claims import cel_regex
from koordlet.scheduler.claims.cel_values import EvaluationError


@pytest.mark.parametrize(
    ("pattern", "fits", "fails"),
    [
        ("^.*a100.*$", "nvidia a100-sxm", "nvidia h100"),
        ("[^a]?sym", "asymetric", "as-ymetric"),
        ("^(?:a|bc)+$", "abca", "abb"),
        ("^a{2,3}$", "aaa", "aaaa"),
        ("^a{2}$", "aa", "aaa"),
        ("^a{,2}$", "a{,2}", "aa"),
        ("^(?P<n>a)(?<m>b)$", "ab", "a"),
        ("(?i)^GPU-[x-z]$", "gpu-Y", "gpu-A"),
        ("^(?i:a)b$", "Ab", "AB"),
        ("^a(?i)b$", "aB", "AB"),
        ("^a.b$", "a-b", "a\nb"),
        ("(?s)^a.b$", "a\nb", "ab"),
        ("(?m)^b$", "a\nb\nc", "ab"),
        ("a$", "ba", "a\n"),
        (r"\Aa\z", "a", "a\n"),
        (r"\bMIG\b", "a MIG 1g", "aMIG"),
        (r"^\d+\.\d\s\W\x41\x{42}$", "12.5 -AB", "12,5 -AB"),
        (r"^[\d\-x]+$", "1-x", "y"),
        (r"^[]a]$", "]", "b"),
        (r"^[[:upper:][:^word:]]$", "-", "a"),
        (r"^[^\s]$", "a", " "),
        ("^(a|)$", "", "b"),
        ("^(a*)*$", "aa", "ab"),
        ("", "anything", None),
    ],
)
def test_a_text_fits_where_a_part_of_it_does(pattern: str, fits: str, fails: str | None) -> None:
    """As RE2 says: classes are ASCII, ``$`` is the end alone."""
    program = cel_regex.compile(pattern)
    assert program.matches(fits) is True
    assert fails is None or program.matches(fails) is False


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("[a", "missing closing ]: `[a`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("[[:no:]]", "invalid character class range: `[:no:]`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{3,2}", "invalid repeat count: `{3,2}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        (r"\pL", r"invalid escape sequence: `\p`"),
        (r"\Qa\E", r"invalid escape sequence: `\Q`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("(" * 300, "expression nests too deeply"),
        ("((a{100}){100}){100}", "expression too large"),
    ],
)
def test_what_is_no_pattern_is_refused(pattern: str, message: str) -> None:
    """In Go's words, as kube-scheduler writes them."""
    with pytest.raises(EvaluationError, match=re.escape(f"error parsing regexp: {message}")):
        cel_regex.compile(pattern)


_ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", r"\b", r"\B", "^", "(?:)", r"\n"])
_PATTERNS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
    ),
    max_leaves=8,
)


@given(_PATTERNS, st.text(alphabet="abc\n", max_size=8))
def test_patterns_that_python_has_too_fit_the_same_texts(pattern: str, text: str) -> None:
    """Python's own engine is the oracle."""
    expected = re.search(pattern, text, re.ASCII) is not None
    if "\\B" in pattern and not text:
        return  # Python 3.13 and earlier has no inner place in an empty text.
    assert cel_regex.compile(pattern).matches(text) is expected


def test_a_pattern_with_exponentially_many_ways_is_followed_once() -> None:
    """The steps grow with text times pattern: Python's engine would take 2^60 here."""
    program = cel_regex.compile("^(a+)+$")
    assert program.matches("a" * 60 + "b") is False
    assert program.size <= 10
