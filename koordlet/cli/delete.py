"""``koordlet delete``: a reservation, or a quota of a standalone scheduler; pods keep running."""

from __future__ import annotations

import argparse

from koordlet.cli import options, output, reservations
from koordlet.kubeapi import refusals
from koordlet.model import errors
from koordlet.state import paths

EXAMPLES = """\
koordlet delete reservation web-room
koordlet delete reservation web-room --ignore-not-found
koordlet delete quota team-a             refused while it has pods or children
koordlet delete quota team-a --force     its pods move to the default quota
koordlet delete quota pool-root          the root of a pool, with its ElasticQuotaProfile
"""
_OPTIONS = {
    "--ignore-not-found": "one that is not there is fine",
    "--force": "a quota, though it has pods or children: they move to the default quota, and below"
    " the root",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    choices = ("reservation", "quota")
    parser.add_argument("kind", choices=choices, metavar=f"{{{','.join(choices)}}}", help="of what")
    parser.add_argument("name", metavar="NAME", help="of the reservation or quota")
    options.declare(parser, _OPTIONS)
    reservations.add(parser)


def run(args: argparse.Namespace) -> int:
    """Remove it."""
    try:
        if args.kind == "quota":
            _delete_quota(args)
        else:
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
        print(output.visible(f'{args.kind} "{args.name}" deleted'))
    return 0


def _delete_quota(args: argparse.Namespace) -> None:
    if args.kubeconfig is not None:
        raise errors.UsageError(
            "quotas of a cluster are objects of its API server",
            culprit="--kubeconfig",
            fix=f"kubectl delete elasticquota {args.name}",
        )
    from koordlet.rpc import client  # noqa: PLC0415 -- gRPC: 70 ms of a `--help`

    where = paths.current(args.state_dir)
    with client.PlacingClient(where.scheduler_socket) as asking:
        asking.delete_quota(args.name, force=args.force)
