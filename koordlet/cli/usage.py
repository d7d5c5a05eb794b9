"""Reports an error of the command line: the word, and the word that was probably meant.

Covers: unknown commands and options. Does not cover: values (each option's own type).

The command that was named answers for itself: its usage is shown, not that of the whole program.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from koordlet.model import errors, printable


class Parser(argparse.ArgumentParser):
    """A parser that refuses what it does not know itself, and says what it knows."""

    def error(self, message: str) -> NoReturn:
        """Report an error; control characters of the words do not reach the terminal."""
        super().error(printable.escaped(message))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Nothing is left over for the parser above."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            option = next((one for one in unknown if one.startswith("-")), None)
            known = list(self._option_string_actions)
            near = _nearest(option.partition("=")[0], known) if option is not None else None
            meant = f' (did you mean "{near}"?)' if near else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{meant}")
        return found, []


def check_command(words: Sequence[str], known: Iterable[str]) -> None:
    """Refuse a command line whose first word is no command."""
    if words and words[0].startswith("-"):
        return  # for the program itself, such as --version
    if not words:
        raise errors.UsageError("no command", fix="koordlet --help lists them")
    if words[0] not in known:
        near = _nearest(words[0], known)
        fix = f'did you mean "{near}"?' if near else "koordlet --help lists them"
        raise errors.UsageError("no such command", culprit=words[0], fix=fix)


def check_options(args: argparse.Namespace) -> None:
    """Refuse an option that would be without effect: whoever gives it expects one."""
    if getattr(args, "now", None) is not None and getattr(args, "root", "") is None:
        raise errors.UsageError(
            "this machine has its own clock", culprit="--now", fix="name a recording with --root"
        )


def _nearest(word: str, known: Iterable[str]) -> str | None:

    return errors.nearest(word, known)
