"""Text of JSON or YAML: what nests without end or stands for more than it says is refused."""

from __future__ import annotations

import pytest

from koordlet.model import documents, errors

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{letter}: &{letter} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, letter in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("{}", [{}]),
        ('{"a": [1]}', [{"a": [1]}]),
        ("a: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
        (r'{"a": "\ud800", "b": "\ud83d\ude00"}', [{"a": "\ufffd", "b": "\U0001f600"}]),
        (
            "base: &b {x: 1}\none: *b\ntwo: {<<: *b}\n",
            [{"base": {"x": 1}} | {k: {"x": 1} for k in ("one", "two")}],
        ),
    ],
)
def test_documents(text: str, expected: list[object]) -> None:
    """JSON is one document, YAML as many as it has; ordinary aliases are what they stand for.

    Half a character is U+FFFD: nobody who prints or sends it later fails.
    """
    assert documents.load(text) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 100_000, "neither JSON nor YAML"),
        ("[" * 100_000 + "]" * 100_000, "nested more than 100 deep"),
        ("- " * 20_000 + "x", "nested more than 100 deep"),
        ("".join(" " * n + "a:\n" for n in range(3000)), "nested more than 100 deep"),
        ('a: !!int ""', "a value is not what its tag"),
        ("a: !!bool perhaps", "a value is not what its tag"),
        ("a: !!timestamp soon", "a value is not what its tag"),
        (BOMB, "its aliases stand for far more than is written"),
        ("a: 2026-13-45", "month must be in 1..12"),
        ("a: !!python/object:os.system {}", "could not determine a constructor"),
        ("a: *nobody", "undefined alias"),
        ("a: &a [*a]", "a contains itself"),
        ("\x00", "neither JSON nor YAML"),
        ("a: 'b", "while scanning"),
    ],
)
def test_what_is_refused(text: str, why: str) -> None:
    """In one line, and without harm to whoever reads."""
    with pytest.raises(ValueError, match=why) as caught:
        documents.load(text)

    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"x" * ((1 << 20) + 1), "larger than 1 MiB"),
        (b"\xff", "cannot be read: 'utf-8' codec"),
        (b"a: 'b", "neither JSON nor YAML"),
    ],
)
def test_a_file_that_holds_none(raw: bytes, why: str) -> None:
    """The error names the file, and what to do about it."""
    with pytest.raises(errors.ConfigError) as caught:
        documents.of_file(raw, "a.yaml", 1 << 20)

    assert caught.value.message.startswith(why)
    assert caught.value.culprit == "a.yaml"
    assert caught.value.fix


def test_a_file_of_windows() -> None:
    """A mark of byte order says nothing, and as much as is permitted is read."""
    assert documents.of_file(b"\xef\xbb\xbf{}", "a.json", 1 << 20) == [{}]
    assert documents.of_file(b" " * ((1 << 20) - 2) + b"{}", "a.json", 1 << 20) == [{}]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\na: 2\n", 2),
        ("spec:\n  x: [{y: 1,\n    y: 2}]\n", 3),
        ("a:\n- b: {c: 1}\n  b: 2\n", 3),
    ],
)
def test_a_key_that_is_twice_is_an_error_where_keys_are_unique(text: str, line: int) -> None:
    """Of two values nobody knows which was meant; elsewhere the last one counts, as in YAML 1.1."""
    with pytest.raises(ValueError, match=f"line {line}: the key '.' is twice"):
        documents.load(text, unique=True)
    assert len(documents.load(text)) == 1


def test_equal_keys_of_several_objects_are_not_twice() -> None:
    """Keys and values take turns, whatever the values are."""
    text = "a: {b: 1}\nb: [{a: b, b: a}, {a: b}]\nc: &x {b: 1}\nd: *x\n---\na: a\n"

    assert len(documents.load(text, unique=True)) == 2
