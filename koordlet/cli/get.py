"""``koordlet get``: what an agent or a scheduler knows now; reservations also of a cluster."""

from __future__ import annotations

import argparse

from koordlet.cli import feed_options, output, reservations
from koordlet.model import errors

EXAMPLES = """\
koordlet get node                       the node of this machine's agent
koordlet get workloads -o json          who runs there
koordlet get nodes --address unix:/run/koordlet/scheduler.sock
koordlet get reservations               of the standalone scheduler of this machine
koordlet get reservations web --kubeconfig admin.conf
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    choices = ("node", "nodes", "reservations", "workloads")
    parser.add_argument("what", choices=choices, metavar=f"{{{','.join(choices)}}}")
    parser.add_argument("name", nargs="?", metavar="NAME", help="only this one")
    feed_options.add(parser)
    reservations.add_cluster(parser)


def run(args: argparse.Namespace) -> int:
    """Ask once, and print the answer."""
    if args.what == "nodes":
        return _nodes(args)
    if args.what == "reservations":
        return _reservations(args)
    with feed_options.open_node(args) as asked:
        state = feed_options.document(feed_options.guarded(asked.get))
    if args.what == "node":
        _must_be(args.name, {state.get("summary", {}).get("name")}, "node")
        return output.show(args.output, {"node": state}, feed_options.node_lines(state))
    workloads = feed_options.workloads(state, args.name)
    if args.name and not workloads:
        _must_be(args.name, set(), "workload")
    return output.show(
        args.output, {"workloads": workloads}, feed_options.workload_lines(state, args.name)
    )


def _nodes(args: argparse.Namespace) -> int:
    scheduler_nodes = feed_options.scheduler_nodes(args)
    if args.name and not scheduler_nodes:
        _must_be(args.name, set(), "node")
    return output.show(
        args.output, {"nodes": scheduler_nodes}, feed_options.scheduler_lines(scheduler_nodes)
    )


def _reservations(args: argparse.Namespace) -> int:
    reach = reservations.Reach(args)
    found = [reach.get(args.name)] if args.name else reach.every()
    return output.show(args.output, {"reservations": found}, reservations.table(found))


def _must_be(name: str | None, known: set[str | None], kind: str) -> None:
    if name and name not in known:
        shown = ", ".join(sorted(one for one in known if one)) or "none of that name"
        raise errors.HostError(f"no such {kind}", culprit=name, fix=f"there is {shown}")
