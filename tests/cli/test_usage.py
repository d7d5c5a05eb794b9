"""What is wrong with a command line: the word, and the one that was meant."""

from __future__ import annotations

import argparse

import pytest

from koordlet import cli
from koordlet.model import errors

KNOWN = ("top", "topology", "restore")


@pytest.mark.parametrize(
    ("word", "fix"),
    [
        ("tpo", 'did you mean "top"?'),
        ("restor", 'did you mean "restore"?'),
        ("zzz", "koordlet --help lists them"),
    ],
)
def test_no_such_command(word: str, fix: str) -> None:
    """It is named, with the nearest one where there is one."""
    with pytest.raises(errors.UsageError) as failed:
        cli.check_command([word, "--help"], KNOWN)

    assert (word, fix) == (failed.value.culprit, failed.value.fix)


def test_what_is_no_command_to_look_for() -> None:
    """Nothing at all is refused; a known one, and an option of the program, are not."""
    with pytest.raises(errors.UsageError, match="no command"):
        cli.check_command([], KNOWN)
    for fine in ("top", "--version"):
        cli.check_command([fine], KNOWN)


def test_an_unknown_option_is_refused_by_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """In the words of the command that was named, with the option that was meant."""
    parser = cli.Parser(prog="koordlet top")
    parser.add_argument("--every")
    with pytest.raises(SystemExit) as failed:
        parser.parse_args(["--evry=1"])

    assert failed.value.code == 2
    assert 'koordlet top: error: unrecognized arguments: --evry=1 (did you mean "--every"?)' in (
        capsys.readouterr().err
    )


def test_an_option_without_effect_is_refused() -> None:
    """A clock of one's own is for recordings; elsewhere it would silently do nothing."""
    with pytest.raises(errors.UsageError) as failed:
        cli.check_options(argparse.Namespace(now="2026-01-01", root=None))
    assert failed.value.culprit == "--now"

    for fine in ({"now": "2026-01-01", "root": "/recording"}, {"now": None, "root": None}, {}):
        cli.check_options(argparse.Namespace(**fine))
