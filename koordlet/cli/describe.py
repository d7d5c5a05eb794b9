"""``koordlet describe``: one reservation, gang, migration, plan, quota, claim or budget."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from koordlet.cli import (
    claims,
    disruption,
    gangs,
    migrations,
    options,
    output,
    plans,
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
koordlet describe budget shop/web       a DisruptionRate: windows, and what was disrupted
koordlet describe claim default/gpus
koordlet describe migration web-1-5f3a1c --kubeconfig admin.conf
koordlet describe plan train-0-5f3a1c   several moves that belong together, and how far they are
"""
_OPTIONS = {
    "--address ADDRESS": "HOST:PORT of the scheduler's --http, for all but reservations"
    f" (default: {scheduler_documents.ADDRESS}); unix:/path of its socket, for a reservation",
}
#: What a scheduler answers over HTTP.
_DETAILS: Mapping[str, Callable[[Mapping[str, Any]], Iterable[str]]] = {
    "gang": gangs.detail,
    "quota": quotas.detail,
    "claim": claims.detail,
    "budget": disruption.detail,
}
#: Objects of a cluster or of a standalone scheduler.
_REACHED = {
    "migration": (migrations.reach, migrations.detail),
    "plan": (plans.reach, plans.detail),
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    choices = ("reservation", *_REACHED, *_DETAILS)
    parser.add_argument("kind", choices=choices, metavar=f"{{{','.join(choices)}}}", help="of what")
    parser.add_argument("name", metavar="NAME", help="of the object")
    reservations.add(parser)
    options.declare(parser, _OPTIONS)


def run(args: argparse.Namespace) -> int:
    """Ask and print."""
    if args.kind in _DETAILS:
        document = scheduler_documents.one(args.address, args.kind, args.name)
        return output.show(args.output, {args.kind: document}, _DETAILS[args.kind](document))
    if args.kind in _REACHED:
        reach, detail = _REACHED[args.kind]
        document = reach(args).one(args.name)
        return output.show(args.output, {args.kind: document}, detail(document))
    body, timeline, warnings = reservations.Reach(args).describe(args.name)
    moments = [{"at": at, "what": what} for at, what in timeline]
    shown = {"reservation": body, "timeline": moments, "warnings": warnings}
    return output.show(args.output, shown, lines(body, timeline, warnings))


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
