"""``koordlet completion``: shell completion, made from the same parser that reads the options."""

from __future__ import annotations

import argparse

from koordlet import cli

EXAMPLES = """\
koordlet completion bash > /etc/bash_completion.d/koordlet
koordlet completion zsh > "${fpath[1]}/_koordlet"
koordlet completion fish > ~/.config/fish/completions/koordlet.fish
"""


_SHELLS = ("bash", "zsh", "fish")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("shell", choices=_SHELLS, metavar=f"{{{','.join(_SHELLS)}}}")


def run(args: argparse.Namespace) -> int:
    """Print the script for the shell."""
    import shtab  # noqa: PLC0415 -- only this command needs it

    print(shtab.complete(cli.parser(None, everything=True), shell=args.shell))
    return 0
