"""``koordlet explain quota NAME``: how each number of what a quota may use came about."""

from __future__ import annotations

import argparse

from koordlet.cli import options, output, quotas, scheduler_documents

HELP = "how each number of a quota's runtime came about"


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("name", metavar="NAME", help="of the quota")
    options.declare(parser, scheduler_documents.OPTIONS)
    options.output(parser, ("table", "json"))


def run(args: argparse.Namespace) -> int:
    """Ask and print."""
    quota = scheduler_documents.one(args.address, "quota", args.name)
    return output.show(args.output, {"quota": quota}, quotas.reasoning(quota))
