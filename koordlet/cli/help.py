"""``koordlet help``: the list of commands, or what one of them does; the same as ``--help``."""

from __future__ import annotations

import argparse

from koordlet import cli

EXAMPLES = """\
koordlet help
koordlet help explain pod
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("words", metavar="COMMAND", nargs="*", help="the command to explain")


def run(args: argparse.Namespace) -> int:
    """Print the help of the named command."""
    if args.words:
        cli.check_command(args.words, cli.COMMANDS)
    return cli.main([*args.words, "--help"])
