"""``koordlet watch``: the node or its workloads, again whenever something has changed."""

from __future__ import annotations

import argparse
import json

from koordlet.cli import feed_options

NAME = "watch"
HELP = "follow the node or its workloads over gRPC, until interrupted"
EXAMPLES = """\
koordlet watch node                     a line whenever something changed
koordlet watch workloads web -o json    one document a line
koordlet watch node --count 1           the state now, then end
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("what", choices=("node", "workloads"))
    parser.add_argument("name", nargs="?", metavar="NAME", help="only this workload")
    parser.add_argument("--count", type=int, default=0, help="end after so many (default: never)")
    feed_options.add(parser)


def run(args: argparse.Namespace) -> int:
    """Print states as they come. The first look must succeed; later cuts are lived through."""
    try:
        with feed_options.open_node(args) as asked:
            feed_options.guarded(asked.get)
            for number, state in enumerate(asked.follow(), start=1):
                _show(args, feed_options.document(state), first=number == 1)
                if number == args.count:
                    break
    except KeyboardInterrupt:
        return 0
    return 0


def _show(args: argparse.Namespace, state: dict[str, object], *, first: bool) -> None:
    if args.output == "json":
        body = {"workloads": feed_options.workloads(state, args.name)}
        shown = {"node": state} if args.what == "node" else body
        print(json.dumps({"version": "v1", **shown}), flush=True)
        return
    if args.what == "node":
        lines = feed_options.node_lines(state)
        print("\n".join(lines if first else lines[1:]), flush=True)
    else:
        print("\n".join(feed_options.workload_lines(state, args.name)), end="\n\n", flush=True)
