"""``koordlet drain NODE``: empty a node, room first, as budgets and rates allow; or say when."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from koordlet.cli import cluster_files, moves, options, output
from koordlet.model import errors

EXAMPLES = """\
koordlet drain node-1 --kubeconfig admin.conf --dry-run    which pod can go when, and where to
koordlet drain node-1 --kubeconfig admin.conf              do it; Ctrl-C gives back what is held
koordlet drain node-1 --kubeconfig admin.conf --undo       uncordon it, and end what is under way
koordlet drain node-1                                      of a standalone scheduler
kubectl get nodes,pods,rs,pdb -A -o json > all.json; koordlet drain node-1 all.json
"""
HELP = (
    "empty a node: room elsewhere first, then evictions as disruption budgets and rates allow; of"
    " FILE, or with --dry-run, the calendar of it alone"
)
_OPTIONS = {
    "--dry-run": "the calendar: nothing is cordoned, nobody is evicted",
    "--undo": "uncordon the node, and end what a drain of it has left under way",
    "--delete-local-data": "pods with emptyDir or hostPath volumes go, too; that data is lost",
    "--ready-after SECONDS": "of the calendar: how long a replacement takes to be ready"
    " (default: 60)",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("node", metavar="NODE", help="the node to empty")
    cluster_files.add(parser)
    options.declare(parser, _OPTIONS, ready_after={"type": options.seconds, "default": 60.0})
    moves.add(parser)


def run(args: argparse.Namespace) -> int:
    """Drain, or show. Exit 1 where pods are left that were to go."""
    if not args.node:
        raise errors.UsageError("has no name", culprit="NODE", fix="kubectl get nodes lists them")
    if args.undo:
        if args.dry_run or args.files:
            fix = "leave out FILE and --dry-run"
            raise errors.UsageError("uncordons a node", culprit="--undo", fix=fix)
        ended = moves.undo(args)
        text = f"{args.node} is uncordoned, {ended} moves are ended"
        return output.show(args.output, {"node": args.node, "ended": ended}, [text])
    if args.files or args.dry_run:
        return _calendar(args)
    return moves.run(args, by=f"drain/{args.node}", node=args.node)


def _calendar(args: argparse.Namespace) -> int:
    from koordlet.scheduler.sim import drain  # noqa: PLC0415 -- numpy: 170 ms of a `--help`

    scene = cluster_files.scene(args, cluster_files.read(args))
    calendar = scene.drain(
        args.node, ready_seconds=args.ready_after, loses_data=args.delete_local_data
    )
    if calendar is None:
        raise errors.ConfigError("no such node", culprit=args.node)
    document = drain.document(calendar)
    output.show(args.output, document, lines(document))
    return 0 if document["empty"] else 1


def lines(document: Mapping[str, Any]) -> Iterator[str]:
    """The calendar, then who is in the way."""
    rows = [
        (
            _spelled(departure["afterSeconds"]),
            departure["pod"],
            departure["to"],
            departure["waitsFor"] or "",
        )
        for departure in document["departures"]
    ]
    if rows:
        yield from output.table(rows, head=("AFTER", "POD", "TO", "WAITS UNTIL THEN FOR"))
    for staying in document["staying"]:
        yield f"{staying['pod']} stays: {staying['why']}"
    for obstacle in document["obstacles"]:
        yield f"{obstacle['pod']} blocks: {obstacle['reason']}: {obstacle['message']}"
    left = len(document["obstacles"])
    if left:
        stay = "pod stays" if left == 1 else "pods stay"
        yield f"{document['node']} is not emptied: {left} {stay}"
    else:
        yield f"{document['node']} is empty from {document['lastDeparture']}"


def _spelled(seconds: float) -> str:
    days, rest = divmod(int(seconds), 86400)
    hours, rest = divmod(rest, 3600)
    day = f"{days}d " if days else ""
    return f"{day}{hours}:{rest // 60:02}:{rest % 60:02}"
