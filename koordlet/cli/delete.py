"""``koordlet delete reservation NAME``: what it still held is free; its pods keep running."""

from __future__ import annotations

import argparse

from koordlet.cli import options, output, reservations
from koordlet.kubeapi import refusals

EXAMPLES = """\
koordlet delete reservation web-room
koordlet delete reservation web-room --ignore-not-found
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    reservations.add_named(parser)
    options.declare(parser, {"--ignore-not-found": "one that is not there is fine"})
    reservations.add(parser)


def run(args: argparse.Namespace) -> int:
    """Remove it."""
    try:
        reservations.Reach(args).delete(args.name)
    except refusals.NotFound:
        if not args.ignore_not_found:
            raise
        deleted = False
    else:
        deleted = True
    if args.output == "json":
        output.print_json({"name": args.name, "deleted": deleted})
    elif deleted:
        print(output.visible(f'reservation "{args.name}" deleted'))
    return 0
