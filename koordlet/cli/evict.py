"""``koordlet evict POD``: room for its replacement first, then its eviction through the limiter."""

from __future__ import annotations

import argparse

from koordlet.cli import cluster_files, moves, options, output
from koordlet.kubeapi import node_avoidances
from koordlet.model import errors, moment

EXAMPLES = """\
koordlet evict shop/web-0 --kubeconfig admin.conf --reason 'noisy neighbour'
koordlet evict shop/web-0 --kubeconfig admin.conf --dry-run   may it go now, and where to
koordlet evict shop/web-0 --kubeconfig admin.conf --avoid 4h  its workload stays away for longer
koordlet evict shop/web-0 all.json
koordlet evict shop/web-0                                     of a standalone scheduler
"""
HELP = "move one pod: room elsewhere first, then its eviction, as every budget and rate allows"
_OPTIONS = {
    "--dry-run": "what the limiter says now, and where the replacement would go",
    "--avoid DURATION": "so long its workload avoids the node that it leaves, from 1m to 24h; 0s:"
    " it does not (default: 1h)",
    "--delete-local-data": "the pod goes although it has emptyDir or hostPath volumes",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("pod", metavar="NAMESPACE/NAME", help="the pod to move")
    cluster_files.add(parser)
    options.declare(parser, _OPTIONS, avoid={"type": _avoidance})
    moves.add(parser)


def _avoidance(text: str) -> float:
    """Seconds for which a node is avoided."""
    try:
        seconds = moment.duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if seconds and not node_avoidances.SHORTEST <= seconds <= node_avoidances.LONGEST:
        raise argparse.ArgumentTypeError(f"0s, or from 1m to 24h, not {text!r}")
    return seconds


def run(args: argparse.Namespace) -> int:
    """Move it, or show. Exit 1 where it stays."""
    key = args.pod if "/" in args.pod else f"default/{args.pod}"
    if args.files or args.dry_run:
        scene = cluster_files.scene(args, cluster_files.read(args))
        document = scene.eviction(key)
        if document is None:
            raise errors.ConfigError("no such pod has a node", culprit=key)
        output.show(args.output, document, [_line(document)])
        return 0 if document["allowed"] else 1
    return moves.run(args, by="evict", pod=key, avoid=args.avoid)


def _line(document: dict[str, object]) -> str:
    where = f"{document['pod']} on {document['node']}"
    if document["allowed"]:
        return f"{where} may be evicted now; its replacement would go to {document['to']}"
    return f"{where} stays: {document['reason']}: {document['message']}"
