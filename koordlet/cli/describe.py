"""``koordlet describe``: a reservation or a migration with its timeline, a gang or a quota."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from koordlet.cli import (
    gangs,
    migrations,
    options,
    output,
    quotas,
    reservations,
    scheduler_documents,
)
from koordlet.kubeapi import objects
from koordlet.report import documents

EXAMPLES = """\
koordlet describe reservation web-room
koordlet describe reservation web-room -o json
koordlet describe gang default/train
koordlet describe quota team-a
koordlet describe migration web-1-5f3a1c --kubeconfig admin.conf
"""
_OPTIONS = {
    "--address ADDRESS": "HOST:PORT of the scheduler's --http, for a gang, a migration or a quota"
    f" (default: {scheduler_documents.ADDRESS}); unix:/path of its socket, for a reservation",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    choices = ("reservation", "gang", "migration", "quota")
    parser.add_argument("kind", choices=choices, metavar=f"{{{','.join(choices)}}}", help="of what")
    parser.add_argument("name", metavar="NAME", help="of the object")
    reservations.add(parser)
    options.declare(parser, _OPTIONS)


def run(args: argparse.Namespace) -> int:
    """Ask and print."""
    if args.kind == "gang":
        several = scheduler_documents.ask(args.address, "gangs", args.name)
        gang = gangs.named(several, args.name)
        return output.show(args.output, {"gang": gang}, gangs.detail(gang))
    if args.kind == "migration":
        move = migrations.MigrationReach(args).one(args.name)
        return output.show(args.output, {"migration": move}, migrations.detail(move))
    if args.kind == "quota":
        several = scheduler_documents.ask(args.address, "quotas", args.name)
        quota = quotas.named(several, args.name)
        return output.show(args.output, {"quota": quota}, quotas.detail(quota))
    body, timeline, warnings = reservations.Reach(args).describe(args.name)
    moments = [{"at": at, "what": what} for at, what in timeline]
    document = {"reservation": body, "timeline": moments, "warnings": warnings}
    return output.show(args.output, document, lines(body, timeline, warnings))


def lines(body: Mapping[str, Any], timeline: Any, warnings: list[str]) -> Iterator[str]:
    """Format the document for people."""
    spec, status = documents.part(body, "spec"), documents.part(body, "status")
    shown = {
        "Name": objects.text(body, "name"),
        "Phase": status.get("phase") or "Pending",
        "Node": status.get("nodeName") or "",
        "Holds": _amounts(documents.part(status, "allocatable")),
        "Allocated": _amounts(documents.part(status, "allocated")),
        "Policy": spec.get("allocatePolicy") or "Default",
        "Once": "no" if spec.get("allocateOnce") is False else "yes",
        "TTL": spec.get("ttl") or "",
        "Expires": spec.get("expires") or "",
    }
    for name, value in shown.items():
        yield f"{name + ':':<11} {value}".rstrip()
    for owner in documents.rows(status, "currentOwners"):
        yield f"{'Owner:':<11} {owner.get('namespace')}/{owner.get('name')}"
    for warning in warnings:
        yield f"{'Warning:':<11} {warning}"
    yield "Timeline:"
    for at, what in timeline:
        yield f"  {at}  {what}"


def _amounts(amounts: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in amounts.items())
