"""``koordlet get``: what an agent or a scheduler knows now; reservations also of a cluster."""

from __future__ import annotations

import argparse
from typing import Any

from koordlet.cli import (
    claims,
    descheduling,
    disruption,
    feed_options,
    gangs,
    migrations,
    output,
    plans,
    quotas,
    reservations,
    scheduler_documents,
)
from koordlet.model import errors

EXAMPLES = """\
koordlet get node                       the node of this machine's agent
koordlet get workloads -o yaml          who runs there; -o wide: a table that is not cut
koordlet get nodes --address unix:/run/koordlet/scheduler.sock
koordlet get reservations               of the standalone scheduler of this machine
koordlet get reservations web --kubeconfig admin.conf
koordlet get gangs                      of this machine's scheduler, and what each waits for
koordlet get gangs --address 127.0.0.1:9317
koordlet get claims                     devices of resource claims, and who uses them
koordlet get descheduler                the last round: each strategy, and why nothing moved
koordlet get migrations                 pods that move, and how far each is
koordlet get plans                      several moves that belong together, and how far they are
koordlet get quotas                     the tree: who borrows, who lends, who is over
koordlet get budgets                    DisruptionRates: what each allows, and when again
koordlet get avoid                      which workloads avoid which nodes, and until when
"""

#: What a scheduler answers over HTTP.
_TABLES = {
    "avoid": disruption.avoid,
    "budgets": disruption.budgets,
    "claims": claims.table,
    "descheduler": descheduling.last_round,
    "gangs": gangs.table,
    "quotas": quotas.table,
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    choices = sorted(
        (*_TABLES, "migrations", "node", "nodes", "plans", "reservations", "workloads")
    )
    parser.add_argument("what", choices=choices, metavar=f"{{{','.join(choices)}}}")
    parser.add_argument("name", nargs="?", metavar="NAME", help="only this one")
    feed_options.add(parser, ("table", "wide", "json", "yaml"))
    reservations.add_cluster(parser)


def run(args: argparse.Namespace) -> int:
    """Ask once, and print the answer."""
    with output.wide(on=args.output == "wide"):
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    lines: list[str]
    if args.what == "reservations":
        reach = reservations.Reach(args)
        several: list[Any] = [reach.get(args.name)] if args.name else list(reach.every())
        lines = reservations.table(several)
    elif args.what == "migrations":
        several = migrations.reach(args).every(args.name)
        lines = migrations.table(several)
    elif args.what == "plans":
        several = plans.reach(args).every(args.name)
        lines = plans.table(several)
    elif args.what in _TABLES:
        several = scheduler_documents.ask(args.address, args.what, args.name)
        lines = _TABLES[args.what](several)
    elif args.what == "nodes":
        several = feed_options.scheduler_nodes(args)
        lines = feed_options.scheduler_lines(several)
    else:
        with feed_options.open_node(args) as asked:
            state = feed_options.document(feed_options.guarded(asked.get))
        if args.what == "node":
            name = state.get("summary", {}).get("name")
            if args.name and args.name != name:
                raise _no_such("node", args.name, name or "none of that name")
            return output.show(args.output, {"node": state}, feed_options.node_lines(state))
        several = feed_options.workloads(state, args.name)
        lines = feed_options.workload_lines(state, args.name)
    if args.name and not several:
        raise _no_such(args.what.removesuffix("s"), args.name, "none of that name")
    if not several and args.output in {"table", "wide"}:
        output.say(f"{args.what}: none")
    return output.show(args.output, {args.what: several}, lines)


def _no_such(kind: str, name: str, there: str) -> errors.HostError:
    return errors.HostError(f"no such {kind}", culprit=name, fix=f"there is {there}")
