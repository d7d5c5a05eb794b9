"""``koordlet reschedule``: make room for a pod that fits nowhere, or empty a node, by a plan."""

from __future__ import annotations

import argparse
import secrets

from koordlet.cli import object_reach, options, output, plans, reservations, scheduler_documents
from koordlet.model import errors

EXAMPLES = """\
koordlet reschedule shop/train-0 --kubeconfig admin.conf --wait
koordlet reschedule shop/train-0 --shadow     which moves would make room; of a standalone scheduler
koordlet reschedule empty-node --kubeconfig admin.conf    empty whichever node costs least
koordlet reschedule --undo train-0-5f3a1c --kubeconfig admin.conf
"""
HELP = (
    "move other pods so that one fits that fits nowhere: room for all is held first, then one goes"
    " after the other, as budgets and rates allow; a descheduler carries the plan out"
)
#: In place of a pod.
_EMPTY = "empty-node"
_OPTIONS = {
    "--undo PLAN": "end a plan: who has not left stays, and all room that it holds is given back",
    "--shadow": "find and check the moves, and move nobody",
    "--reason TEXT": "why, for whoever looks at the plan",
    "--ttl SECONDS": "give up after so long what has not begun (default: 900)",
    "--wait": "follow the plan until it is over; exit 1 unless it is done",
    "--dry-run": "print the plan and create nothing",
    "--address HOST:PORT": "of the scheduler's or descheduler's --http, to follow a plan without"
    f" --kubeconfig (default: {scheduler_documents.ADDRESS})",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "pod",
        metavar="[NAMESPACE/]POD",
        nargs="?",
        help=f"a pod that waits for a node, which gets room with what its gang lacks; or {_EMPTY}",
    )
    options.declare(
        parser,
        _OPTIONS,
        undo={"default": ""},
        reason={"default": ""},
        ttl={"type": options.seconds, "default": 900.0},
    )
    reservations.add(parser)


def run(args: argparse.Namespace) -> int:
    """Create the plan, and follow it where that is wanted; or end one."""
    from koordlet.scheduler.migration import job  # noqa: PLC0415 -- numpy: 170 ms of a `--help`
    from koordlet.scheduler.rescheduling import move_plan  # noqa: PLC0415 -- with it

    if bool(args.pod) is bool(args.undo):
        fix = f"name a pod, {_EMPTY}, or a plan with --undo"
        raise errors.UsageError("what is to be done?", fix=fix)
    if not args.ttl > 0:
        raise errors.UsageError("is not a time above 0", culprit="--ttl")
    reach = plans.reach(args)
    if args.undo:
        reach.annotate(args.undo, {job.ABORT: "true"})
        line = f"plan {args.undo} is to end; see `koordlet describe plan {args.undo}`"
        return output.show(args.output, {"plan": {"name": args.undo}}, [line])
    namespace, _, name = args.pod.rpartition("/")
    if not name or "/" in namespace:
        raise errors.UsageError("give [NAMESPACE/]POD", culprit=args.pod)
    empties = args.pod == _EMPTY
    body = move_plan.request(
        f"{name[:200]}-{secrets.token_hex(3)}",
        pod=None if empties else job.PodRef(namespace or "default", name),
        acts=not args.shadow,
        reason=args.reason,
        ttl_seconds=args.ttl,
    )
    if args.dry_run:
        line = f"would create plan {body['metadata']['name']}"
        return output.show(args.output, {"plan": body}, [line])
    made = reach.create(body)
    if not args.wait:
        lines = [f"plan {made} is asked for", f"follow it: koordlet describe plan {made}"]
        return output.show(args.output, {"plan": {"name": made}}, lines)
    plan: object_reach.Document = {}
    for plan in reach.watch(made):
        if args.output != "json":
            why = ": ".join(filter(None, (plan["reason"], plan["message"])))
            output.say(f"{plan['phase']} {why}".rstrip())
        if plan["phase"] in plans.ENDED or plan["reason"] == "Shadow":
            break
    output.show(args.output, {"plan": plan}, plans.detail(plan))
    return 0 if plan["phase"] == "Done" or plan["reason"] == "Shadow" else 1
