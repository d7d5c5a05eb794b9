"""How commands print: hostile names stay text, a document is JSON, a table has its columns."""

from __future__ import annotations

import json

import pytest
import yaml

from koordlet.cli import output
from koordlet.model import errors

ERROR = errors.ConfigError("is no number", culprit="a.yaml:3", fix="write 5")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("a\nb\tc", r"a\nb\tc"),
        ("\u202egnp", r"\u202egnp"),
        ("\x9b31m", r"\x9b31m"),
        ("größe ✓", "größe ✓"),
    ],
)
def test_a_name_does_not_steer_the_terminal(name: str, shown: str) -> None:
    """Control characters, of direction as well, are written out; letters of any script are not."""
    assert shown == output.visible(name)
    assert shown in output.table([[name, "x"]], head=("NAME", "Y"))[1]


def test_a_table() -> None:
    """Columns are as wide as their widest cell, and nothing stands behind the last one."""
    lines = output.table([["a", "1"], ["long", "22"]], head=("N", "V"), indent=" ")

    assert lines == [" N     V", " a     1", " long  22"]
    assert output.table([], head=("N", "V")) == ["N  V"]


def test_an_error_for_people_and_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """Both name the culprit and the fix, on stderr; nothing is on stdout."""
    output.print_error(ERROR, as_json=False)
    for_people = capsys.readouterr()
    output.print_error(ERROR, as_json=True)
    for_programs = capsys.readouterr()

    assert for_people.err == "koordlet: a.yaml:3: is no number (write 5)\n"
    assert json.loads(for_programs.err) == {
        "version": "v1",
        "error": {
            "code": ERROR.code,
            "message": "is no number",
            "culprit": "a.yaml:3",
            "fix": "write 5",
        },
    }
    assert for_people.out == for_programs.out == ""


def test_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    """The version is first; what JSON does not know is its text."""
    output.print_json({"why": ERROR})

    assert list(json.loads(capsys.readouterr().out).items()) == [
        ("version", "v1"),
        ("why", str(ERROR)),
    ]


def test_yaml_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    """The same as JSON, the version first."""
    assert output.show("yaml", {"a": [1, {"b": None}], "c": "é: x"}, ()) == 0
    text = capsys.readouterr().out

    assert text.startswith("version: v1\n")
    assert yaml.safe_load(text) == {"version": "v1", "a": [1, {"b": None}], "c": "é: x"}


def test_a_wide_table_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither on a terminal, where others are."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "20")
    row = [("name", "x" * 40)]
    with output.wide(on=True):
        wide = output.table(row, head=("A", "B"))

    assert wide[1].endswith("x" * 40)
    assert output.table(row, head=("A", "B"))[1].endswith("…")
