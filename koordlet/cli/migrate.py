"""``koordlet migrate``: a pod leaves its node once room is held for its replacement."""

from __future__ import annotations

import argparse
import secrets

from koordlet.cli import (
    migrations,
    object_reach,
    options,
    output,
    reservations,
    scheduler_documents,
)
from koordlet.model import errors

EXAMPLES = """\
koordlet migrate shop/web-1 --kubeconfig admin.conf
koordlet migrate shop/web-1 --to node-7 --wait --kubeconfig admin.conf
koordlet migrate train/worker-0 --gang --wait          all workers leave together
koordlet migrate web-1 --reason 'a noisy neighbour'    of a standalone scheduler
koordlet migrate shop/web-1 --dry-run -o json          the job that would be created
"""
_OPTIONS = {
    "--to NODE": "hold room there (default: where the scheduler finds some)",
    "--reason TEXT": "why, for whoever looks at the job",
    "--ttl SECONDS": "give up after so long (default: 300; 0: never)",
    "--without-reservation": "evict without room for the replacement: it may wait, or come back",
    "--gang": "all members of the pod's gang leave, once room is held for each of them",
    "--wait": "follow the job until it is over; exit 1 unless it succeeded",
    "--dry-run": "print the job and create nothing",
    "--address HOST:PORT": "of the scheduler's or descheduler's --http, to follow a job without"
    f" --kubeconfig (default: {scheduler_documents.ADDRESS})",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("pod", metavar="[NAMESPACE/]POD", help="the pod that is to leave")
    options.declare(
        parser,
        _OPTIONS,
        to={"default": ""},
        reason={"default": ""},
        ttl={"type": options.seconds, "default": 300.0},
    )
    reservations.add(parser)


def run(args: argparse.Namespace) -> int:
    """Create the job, and follow it where that is wanted."""
    from koordlet.scheduler.descheduling import evictor_settings  # noqa: PLC0415 -- numpy: 170 ms
    from koordlet.scheduler.migration import job  # noqa: PLC0415 -- with it

    namespace, _, name = args.pod.rpartition("/")
    if not name or "/" in namespace:
        raise errors.UsageError("give [NAMESPACE/]POD", culprit=args.pod)
    if args.to and args.without_reservation:
        raise errors.UsageError(
            "--to holds room on a node, and --without-reservation holds none",
            fix="leave one of them out",
        )
    if args.gang and (args.to or args.without_reservation):
        raise errors.UsageError(
            "--gang holds room for each member where the scheduler finds some",
            fix="leave out --to and --without-reservation",
        )
    modes = evictor_settings.RESERVATION_FIRST, evictor_settings.EVICT_DIRECTLY
    body = job.request(
        job.PodRef(namespace or "default", name),
        mode=modes[args.without_reservation],
        ttl_seconds=args.ttl,
        reason=args.reason,
        node=args.to,
        gang=args.gang,
    )
    # A name of its own: a standalone scheduler makes none.
    prefix = body["metadata"].pop("generateName")
    body["metadata"]["name"] = f"{prefix}{secrets.token_hex(3)}"
    if args.dry_run:
        return output.show(args.output, {"job": body}, [f"would create {body['metadata']['name']}"])
    reach = migrations.reach(args)
    made = reach.create(body)
    if not args.wait:
        lines = [f"migration {made} is asked for", f"follow it: koordlet watch migrations {made}"]
        return output.show(args.output, {"migration": {"name": made}}, lines)
    move: object_reach.Document = {}
    for move in reach.watch(made):
        if args.output != "json":
            output.say(f"{move['phase']} {move['status']}: {move['message']}".rstrip(": "))
        if move["phase"] in migrations.ENDED:
            break
    output.show(args.output, {"migration": move}, migrations.detail(move))
    return 0 if move["phase"] == "Succeeded" else 1
