"""``koordlet version``: which koordlet this is."""

from __future__ import annotations

import argparse
import platform

import koordlet
from koordlet.cli import options, output

EXAMPLES = """\
koordlet version
koordlet version -o json | jq -r .koordlet
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.output(parser, ("table", "json"))


def run(args: argparse.Namespace) -> int:
    """Print it."""
    about = {
        "koordlet": koordlet.__version__,
        "python": platform.python_version(),
        "kernel": platform.release(),
    }
    return output.show(args.output, about, (f"{name} {value}" for name, value in about.items()))
