"""YAML text becomes plain values with marks, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from koordlet.config import loader, places, yaml_source
from koordlet.model import errors

LOADERS = [yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)]

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**17), 10**17)
    | st.text("abc: #'\"\n\t-?é😀%&*!|>@`", max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("abcdef", min_size=1, max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)
#: Pieces that YAML gives a meaning to, so that random text reaches the deep parts of the parser.
WORDS = (
    *("mode: ", "state:", "policies:", "workloads:", "- ", "\n", "  ", "\t", "off", "null", "1"),
    *("{", "}", "[", "]", ",", "'", '"', "&a ", "*a", "!t ", "? ", ": ", "|", ">", "#", "<<: "),
    *("---\n", "...\n", "%YAML 1.1\n", "\\x", "\\ud800", "\x85", "\ufeff", "é", "😀", "\x00"),
    *("\x1b", "apiVersion: koordlet.io/v1\n", "kind: Config\n"),
)
PIECES = st.lists(st.sampled_from(WORDS) | st.text(max_size=3), max_size=30).map("".join)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("off", "off"),
        ("on", "on"),
        ("no", "no"),
        ("yes", "yes"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("0-3,8", "0-3,8"),
        ("1,2", "1,2"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("null", None),
        ("7", 7),
        ("-7", -7),
        ("010", 10),
        ("0x10", 16),
        ("0o10", 8),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("2001-01-01", "2001-01-01"),
        ("٣", "٣"),
    ],
)
def test_resolve(text: str, value: object) -> None:
    """A plain scalar is null, a boolean or a number of YAML 1.2, else its text."""
    assert (value, type(value)) == (yaml_source.resolve(text), type(yaml_source.resolve(text)))


@pytest.mark.parametrize("loader_class", LOADERS)
def test_marks(loader_class: Any) -> None:
    """Every value and every key has its line and column, counted from one."""
    document = yaml_source.parse("a: 1\nb:\n  - c: x\n  - é: 'y'\n", "f", loader_class)

    assert document.data == {"a": 1, "b": [{"c": "x"}, {"é": "y"}]}
    assert places.Mark(4, 5) == document.keys["b", 1, "é"]
    assert places.Mark(4, 8) == document.values["b", 1, "é"]
    assert places.Mark(3, 5) == document.values["b", 0]


@pytest.mark.parametrize("quoted", ['"off"', "'off'", "'7'", '"null"', "|-\n  7"])
def test_quoted(quoted: str) -> None:
    """A quoted scalar is text, whatever it looks like."""
    assert isinstance(yaml_source.parse(f"a: {quoted}\n", "f").data["a"], str)  # type: ignore[index]


@pytest.mark.parametrize("loader_class", LOADERS)
@pytest.mark.parametrize("escape", ["\\ud800", "\\Uffffffff", "\\U00110000"])
def test_no_character(loader_class: Any, escape: str) -> None:
    """An escape that names no character is a problem, whichever parser is there."""
    assert yaml_source.parse(f'a: "{escape}"\n', "f", loader_class).problems


@pytest.mark.parametrize("loader_class", LOADERS)
@given(value=PLAIN)
def test_round_trip(loader_class: Any, value: object) -> None:
    """What a YAML writer wrote is read back as it was."""
    text = yaml.safe_dump({"a": value}, allow_unicode=True)

    document = yaml_source.parse(text, "f", loader_class)

    # Strings of the 1.1 writer that 1.2 reads alike are all quoted or plain in both.
    if not document.problems:
        assert {"a": value} == document.data
    assert all(
        "anchors" in str(problem) or "aliases" in str(problem) for problem in document.problems
    )


@pytest.mark.parametrize("loader_class", LOADERS)
@settings(max_examples=400)
@given(text=PIECES | st.text())
def test_any_text(loader_class: Any, text: str) -> None:
    """Random text never raises, and is either complete or has a problem."""
    document = yaml_source.parse(text, "f", loader_class)

    assert document.complete or document.problems


@settings(max_examples=400)
@given(text=PIECES, header=st.booleans())
def test_any_file(text: str, header: bool) -> None:
    """Random text as a configuration is a configuration or a ConfigError that names the file."""
    head = "apiVersion: koordlet.io/v1\nkind: Config\n" if header else ""
    refusal: errors.ConfigError | None = None
    try:
        loader.from_text(head + text, "f.yaml", {}, {})
    except errors.ConfigError as error:
        refusal = error

    assert refusal is None or refusal.culprit.startswith("f.yaml")
    assert refusal is None or str(refusal).replace("\n", "").isprintable()
