"""``koordlet explain eviction [POD]``: what is too little, who goes for it, and who else could."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping

from koordlet.cli import node_source, options, output
from koordlet.model import errors, moment, quantity
from koordlet.report import documents, topology_words

#: Bytes that are easy to read as they are.
_LARGE = 1 << 20
#: Whether a threshold is met; it may be unknown.
_MET: Mapping[object, str] = {True: "MET", False: "no"}
#: Signals of which no bytes are counted.
_COUNTED = ("inodesFree", "pid.available")

HELP = "what this node runs out of, who goes for it, and in which order"


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "pod",
        metavar="NAMESPACE/NAME",
        nargs="?",
        help="only its place in each order",
    )
    node_source.add(parser)
    options.eviction(parser)


def run(args: argparse.Namespace) -> int:
    """Print it."""
    plan = node_source.plan(args, options.eviction_flags(args))
    explanation = document(plan, args.pod)
    return output.show(args.output, explanation, lines(explanation))


def document(plan: documents.Document, pod: str | None) -> documents.Document:
    """The part of a plan that is about evictions; of one pod, its rows only."""
    evictions = documents.rows(plan, "evictions")
    if pod is not None:
        ranked = {str(row.get("pod")) for eviction in evictions for row in _ranking(eviction)}
        if evictions and pod not in ranked | {str(eviction.get("pod")) for eviction in evictions}:
            fix = f"one of: {', '.join(sorted(ranked)[:5])}"
            raise errors.UsageError("no candidate has this name", culprit=pod, fix=fix)
        evictions = [
            {**eviction, "ranking": [row for row in _ranking(eviction) if row.get("pod") == pod]}
            for eviction in evictions
        ]
    return {
        "version": "v1",
        "signals": documents.rows(plan, "signals"),
        "conditions": [
            condition
            for condition in documents.rows(plan, "conditions")
            # The kubelet's three, swap, what stalls, what is near its limit or comes too late.
            if str(condition.get("type")).endswith(("Pressure", "Stalled", "Tight", "Late"))
        ],
        "evictions": evictions,
        "held": str(documents.part(plan, "explanations", "node_pressure").get("held") or ""),
    }


def _ranking(eviction: documents.Document) -> list[documents.Document]:
    """With the place of each candidate."""
    rows = documents.rows(eviction, "ranking")
    return [{"place": number, **row} for number, row in enumerate(rows, 1)]


def lines(explanation: documents.Document) -> Iterator[str]:
    """Format the document for people."""
    table = [
        (
            str(row.get("name")),
            _readable(row, row.get("observed") or "unknown"),
            _threshold(row),
            _MET.get(row.get("met"), "unknown"),
            "; ".join(_notes(row)),
        )
        for row in documents.rows(explanation, "signals")
    ]
    yield from output.table(table, head=("SIGNAL", "OBSERVED", "THRESHOLD", "MET", ""))
    holding = [row for row in documents.rows(explanation, "conditions") if row["status"] == "True"]
    yield f"conditions: {', '.join(str(row.get('type')) for row in holding) or 'none holds'}"
    for row in holding:
        if str(row.get("reason", "")).startswith("Koordlet") and row.get("message"):
            yield f"  {row.get('type')}: {row.get('message')}"
    if explanation.get("held"):
        yield f"nobody is evicted: {explanation.get('held')}"
    for row in documents.rows(explanation, "evictions"):
        yield from _eviction(row)
    if not documents.rows(explanation, "evictions"):
        yield "nobody has to go; --eviction-hard 'memory.available<99%' shows who would"


def _eviction(entry: documents.Document) -> Iterator[str]:
    held = f", but is not evicted: {entry.get('held')}" if entry.get("held") else ""
    yield f"{entry.get('pod')} goes for {entry.get('signal')} ({entry.get('policy')}){held}"
    yield f"  {str(entry.get('message')).strip()}"
    signal = {"name": entry.get("signal")}
    for place, row in enumerate(documents.rows(entry, "ranking"), 1):
        keys = "  ".join(
            f"{key} {_readable(signal, value) if key == 'overRequest' else value}"
            for key, value in documents.part(row, "keys").items()
        )
        spared = f"  passed over: {row.get('spared')}" if row.get("spared") else ""
        yield f"  {row.get('place', place):>3}. {row.get('pod')}  {keys}{spared}"


def _threshold(signal: documents.Document) -> str:
    amount, spelled = _readable(signal, signal.get("threshold")), signal.get("spelled")
    return f"{spelled} ({amount})" if spelled and spelled != amount else amount


def _notes(signal: documents.Document) -> Iterator[str]:
    if signal.get("why"):
        yield str(signal.get("why"))
    since = signal.get("since")
    if isinstance(since, int | float):
        yield f"since {moment.spell(since)}"


def _readable(signal: documents.Document, value: object) -> str:
    """Bytes as people say them: ``22748858584`` is 21.2 GiB. Counts and small numbers stay."""
    text = str(value)
    if str(signal.get("name")).endswith(_COUNTED):
        return text
    try:
        amount = quantity.units(text)
    except ValueError:
        return text
    sign = "-" if amount < 0 else ""
    return text if abs(amount) < _LARGE else f"{sign}{topology_words.size(abs(amount))}"
