"""``koordlet explain migration POD``: why a pod is moved, or is not, with every number."""

from __future__ import annotations

import argparse

from koordlet.cli import descheduling, migrations, options, output, scheduler_documents
from koordlet.model import errors

HELP = "every check that decides whether a pod is moved"
_OPTIONS = {
    "--address ADDRESS": "HOST:PORT of the --http of a descheduler (127.0.0.1:9319), or of a"
    f" scheduler that deschedules (default: {scheduler_documents.ADDRESS})"
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("name", metavar="[NAMESPACE/]POD", help="the pod")
    options.declare(parser, _OPTIONS)
    options.output(parser, ("table", "json"))


def run(args: argparse.Namespace) -> int:
    """Ask and print."""
    key = args.name if "/" in args.name else f"default/{args.name}"
    several = scheduler_documents.ask(args.address, "migration", key)
    if not several:
        raise errors.HostError("no such pod has a node, and no job is about it", culprit=key)
    known = several[0]
    lines = [] if known["node"] is None else descheduling.explained(known)
    lines += [f"  ✗ {bound}" for bound in known.get("bounds", ())]
    if usage := known.get("usage"):
        source, age = usage["source"], usage["ageSeconds"]
        lines.append(f"  use of its node: from the {source}, {age:g} s old")
    for job in known["jobs"]:
        lines += ["", *migrations.detail(job)]
    return output.show(args.output, {"migration": known}, lines)
