"""``koordlet watch``: the node, its workloads or reservations, again whenever something changes."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import time

from koordlet.cli import feed_options, migrations, options, output, reservations

EXAMPLES = """\
koordlet watch node                     a line whenever something changed
koordlet watch workloads web -o json    one document a line
koordlet watch node --count 1           the state now, then end
koordlet watch migrations               pods that move, step by step
koordlet watch reservations             of the standalone scheduler, or with --kubeconfig
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    choices = ("migrations", "node", "reservations", "workloads")
    parser.add_argument("what", choices=choices, metavar=f"{{{','.join(choices)}}}")
    parser.add_argument("name", nargs="?", metavar="NAME", help="only this one")
    parser.add_argument(
        "--count",
        type=options.count,
        default=0,
        metavar="N",
        help="end after so many (default: never)",
    )
    feed_options.add(parser)
    reservations.add_cluster(parser)


def run(args: argparse.Namespace) -> int:
    """Print states as they come. The first look must succeed; later cuts are lived through."""
    with contextlib.suppress(KeyboardInterrupt):
        if args.what == "reservations":
            _reservations(args)
            return 0
        if args.what == "migrations":
            _migrations(args)
            return 0
        with feed_options.open_node(args) as asked:
            feed_options.guarded(asked.get)
            for number, state in enumerate(asked.follow(), start=1):
                _show(args, feed_options.document(state), first=number == 1)
                if number == args.count:
                    break
    return 0


def _reservations(args: argparse.Namespace) -> None:
    """Print the present state, then each change: a line, or a document on a line."""
    changes = (
        (verb, body)
        for verb, body in reservations.Reach(args).watch()
        if args.name in {None, body["metadata"]["name"]}
    )
    for verb, body in itertools.islice(changes, args.count or None):
        if args.output == "json":
            shown = {"version": "v1", "change": verb, "reservation": body}
            print(json.dumps(shown), flush=True)
        else:
            cells = (verb, *reservations.row(body, time.time()))
            print("  ".join(output.visible(cell) or "-" for cell in cells), flush=True)


def _migrations(args: argparse.Namespace) -> None:
    """Print each job, then again whenever it has changed."""
    moves = migrations.reach(args).watch(args.name)
    for move in itertools.islice(moves, args.count or None):
        if args.output == "json":
            print(json.dumps({"version": "v1", "migration": move}), flush=True)
        else:
            cells = migrations.row(move, time.time())
            print("  ".join(output.visible(cell) for cell in cells), flush=True)


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
