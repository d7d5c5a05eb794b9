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
        (r"^[[:a]$", ":", "b"),
        (r"^\012\x{00000041}$", "\nA", "A"),
        (r"(?i)^[\W]$", "-", "S"),
        (r"(?i)^[^\W]$", "s", "-"),
        (r"(?i)^\w$", "\u212a", "-"),
        ("(?i)^k$", "\u212a", "\u03ba"),
        ("(?i)^[\u03c3-\u03c4]$", "\u03c2", "\u03c5"),
        ("(?i)^\xdf$", "\u1e9e", "s"),
        ("(?i)^\u0131$", "\u0131", "I"),
        ("(?i)^" + "[!-\U0001f000]" * 10 + "$", "a" * 10, " " * 10),
        (r"^\Qa.(\E*\Q|$", "a.((|$", "ab(|"),
        ("^a(?i)*$", "aa", "b"),
        ("^a*(?i)*$", "aa", "b"),
        ("^a{01}$", "a{01}", "a"),
        ("^(a{500}){2}$", "a" * 1000, "a" * 999),
        (r"^\p{Greek}+\PL$", "\u03b1\u03b2-", "ab-"),
        (r"^\Q\C\E$", r"\C", "a"),
        ("^(a|)$", "", "b"),
        ("^(a*)*$", "aa", "ab"),
        ("", "anything", None),
    ],
)
def test_a_text_fits_where_a_part_of_it_does(pattern: str, fits: str, fails: str | None) -> None:
    """As Go says: classes are ASCII, ``$`` is the end alone."""
    outcome = cel_regex.outcome(pattern)
    assert outcome.matches(fits) is True
    assert fails is None or outcome.matches(fails) is False


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
        ("{2}", "missing argument to repetition operator: `{2}`"),
        ("a|{2}?", "missing argument to repetition operator: `{2}?`"),
        ("({2})", "missing argument to repetition operator: `{2}`"),
        ("(?i)+", "missing argument to repetition operator: `+`"),
        ("(?i-)a", "invalid or unsupported Perl syntax: `(?i-)`"),
        ("(?<a-b>a)b", "invalid named capture: `(?<a-b>`"),
        ("(?<=a)b", "invalid or unsupported Perl syntax: `(?<=`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        (r"a\C", r"invalid escape sequence: `\C`"),
        (r"\p{Nope}", r"invalid character class range: `\p{Nope}`"),
        (r"[\Q]", r"invalid escape sequence: `\Q`"),
        (r"\Q\E*", "missing argument to repetition operator: `*`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("(a{20}){60}", "invalid repeat count: `{60}`"),
        ("(((){1000}){1000}){8}", "invalid repeat count: `{1000}`"),
        ("(a{1000}){2,}?", "invalid repeat count: `{2,}?`"),
        ("a\ud800", "invalid UTF-8"),
    ],
)
def test_what_is_no_pattern_is_refused(pattern: str, message: str) -> None:
    """In Go's words, as kube-scheduler writes them."""
    with pytest.raises(EvaluationError, match=re.escape(f"error parsing regexp: {message}")):
        cel_regex.outcome(pattern).matches("a")


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
    assert cel_regex.outcome(pattern).matches(text) is expected


def test_a_pattern_with_exponentially_many_ways_is_followed_once() -> None:
    """The steps grow with text times pattern: Python's engine would take 2^60 here."""
    outcome, text = cel_regex.outcome("^(a+)+$"), "a" * 60 + "b"
    assert outcome.matches(text) is False
    assert outcome.steps(text) <= 20 * len(text)


def test_a_text_that_is_none_is_told() -> None:
    """Half of a pair, as JSON can write it."""
    with pytest.raises(EvaluationError, match="invalid UTF-8"):
        cel_regex.outcome("a").matches("\ud800")


@pytest.mark.parametrize(
    ("pattern", "least"),
    [("[acegi]{100}", 300), ("[[:nothing:]]", 13), ("(" + "|" * 999 + "){999}", 10_000)],
)
def test_work_counts_what_is_made_and_what_fails(pattern: str, least: int) -> None:
    """What was done before a pattern was refused is paid for, too."""
    assert least <= cel_regex.outcome(pattern).work < least * 2


@pytest.mark.parametrize("pattern", ["(" * 1_000_000, "(" + "|" * 999 + "){999}"])
def test_a_pattern_of_too_much_work_is_refused(pattern: str) -> None:
    """Too long a text, too many ways."""
    with pytest.raises(EvaluationError, match="expression too large"):
        cel_regex.outcome(pattern).matches("a")


def test_a_refused_pattern_is_read_once() -> None:
    """Its error is kept, and raised anew each time: a raised one would grow."""
    before = cel_regex.outcome.cache_info().misses
    for _ in range(3):
        with pytest.raises(EvaluationError, match="missing closing"):
            cel_regex.outcome("(refused once").matches("a")
    assert cel_regex.outcome.cache_info().misses == before + 1
