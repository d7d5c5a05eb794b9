"""``koordlet explain claim NAME``: which nodes have devices for it, and which rule leaves none."""

from __future__ import annotations

import argparse

from koordlet.cli import claims, options, output, scheduler_documents

HELP = "which nodes have devices for a claim, and which rule leaves none on the others"


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("name", metavar="NAME", help="of the claim, or NAMESPACE/NAME")
    options.declare(parser, scheduler_documents.OPTIONS)
    options.output(parser, ("table", "json"))


def run(args: argparse.Namespace) -> int:
    """Ask and print."""
    claim = scheduler_documents.one(args.address, "claim", args.name)
    return output.show(args.output, {"claim": claim}, claims.reasoning(claim))
