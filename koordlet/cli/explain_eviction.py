"""``koordlet explain eviction [POD]``: what is too little, who goes for it, and who else could."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from koordlet.cli import explain_source, output
from koordlet.model import errors

HELP = "what this node runs out of, who goes for it, and in which order"


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "pod",
        metavar="NAMESPACE/NAME",
        nargs="?",
        default=None,
        help="only its place in each order",
    )
    explain_source.add(parser)


def run(args: argparse.Namespace) -> int:
    """Print it."""
    plan = explain_source.plan(args)
    found = document(plan, args.pod)
    if args.output == "json":
        output.print_json(found)
    else:
        print("\n".join(output.visible(line) for line in lines(found)))
    return 0


def document(plan: explain_source.Document, pod: str | None) -> explain_source.Document:
    """The part of a plan that is about evictions; of one pod, its rows only."""
    evictions = explain_source.rows(plan, "evictions")
    if pod is not None:
        ranked = {str(row.get("pod")) for one in evictions for row in _ranking(one)}
        if evictions and pod not in ranked | {str(one.get("pod")) for one in evictions}:
            raise errors.UsageError(
                "no candidate has this name",
                culprit=pod,
                fix=f"one of: {', '.join(sorted(ranked)[:5])}",
            )
        evictions = [
            {**one, "ranking": [row for row in _ranking(one) if row.get("pod") == pod]}
            for one in evictions
        ]
    return {
        "version": "v1",
        "signals": explain_source.rows(plan, "signals"),
        "conditions": [
            one
            for one in explain_source.rows(plan, "conditions")
            # The kubelet's three, swap, and what stalls.
            if str(one.get("type")).endswith(("Pressure", "Stalled"))
        ],
        "evictions": evictions,
    }


def _ranking(one: explain_source.Document) -> list[explain_source.Document]:
    """With the place of each candidate."""
    rows = explain_source.rows(one, "ranking")
    return [{"place": number, **row} for number, row in enumerate(rows, 1)]


def lines(found: explain_source.Document) -> Iterator[str]:
    """What a person wants to know."""
    signals = explain_source.rows(found, "signals")
    table = [
        (
            str(one.get("name")),
            str(one.get("observed") or "unknown"),
            str(one.get("threshold")),
            {True: "MET", False: "no"}.get(one.get("met"), "unknown"),  # type: ignore[call-overload]
            str(one.get("why") or one.get("spelled") or ""),
        )
        for one in signals
    ]
    yield from output.table(table, head=("SIGNAL", "AVAILABLE", "THRESHOLD", "MET", ""))
    holding = [
        str(one.get("type"))
        for one in explain_source.rows(found, "conditions")
        if one.get("status") == "True"
    ]
    yield f"conditions: {', '.join(holding) or 'none holds'}"
    for one in explain_source.rows(found, "evictions"):
        held = f", but is not evicted: {one.get('held')}" if one.get("held") else ""
        yield f"{one.get('pod')} goes for {one.get('signal')} ({one.get('policy')}){held}"
        yield f"  {str(one.get('message')).strip()}"
        for place, row in enumerate(explain_source.rows(one, "ranking"), 1):
            keys = "  ".join(f"{k} {v}" for k, v in explain_source.part(row, "keys").items())
            spared = f"  passed over: {row.get('spared')}" if row.get("spared") else ""
            yield f"  {row.get('place', place):>3}. {row.get('pod')}  {keys}{spared}"
    if not explain_source.rows(found, "evictions"):
        yield "nobody has to go"
