"""Shared by the commands about migration jobs: reaching them, their table, one in detail.

Does not cover: the commands (``get``, ``describe``, ``watch``, ``migrate``,
``explain_migration``).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from koordlet.cli import object_reach, output
from koordlet.cli.object_reach import Document
from koordlet.kubeapi import kinds, objects

ENDED = frozenset({"Succeeded", "Failed", "Aborted"})
_HEAD = ("NAME", "POD", "PHASE", "STATUS", "AGE", "FROM", "TO", "NEW POD", "MESSAGE")


def reach(args: argparse.Namespace) -> object_reach.ObjectReach:
    """The jobs, wherever they are kept."""
    shown = object_reach.ShownKind(
        kind=kinds.POD_MIGRATION_JOBS,
        noun="migration",
        several="migrations",
        path="moves",
        read=_read,
    )
    return object_reach.ObjectReach(args, shown)


def _read(bodies: Sequence[objects.Object]) -> list[Document]:
    from koordlet.scheduler.migration import job, summary  # noqa: PLC0415 -- with the scheduler

    several = sorted(map(job.read, bodies), key=lambda each: (each.created, each.name))
    return [summary.document(each) for each in several]


def table(moves: Sequence[Document], now: float | None = None) -> list[str]:
    """A row for each job."""
    at = time.time() if now is None else now
    return output.table([row(move, at) for move in moves], head=_HEAD) if moves else []


def row(move: Document, now: float) -> tuple[str, ...]:
    """One row of the table."""
    shown = (move["status"], output.age(move["created"], now), move["from"], move["to"])
    cells = (move["name"], move["pod"], move["phase"], *shown, move["replacement"], move["message"])
    return tuple(cell or "-" for cell in cells)


def detail(move: Document) -> list[str]:
    """One job with its timeline."""
    ttl = move["ttlSeconds"]
    shown = {
        "Name": move["name"],
        "Pod": move["pod"],
        "Phase": move["phase"],
        "From": move["from"],
        "To": move["to"],
        "New pod": move["replacement"],
        "Reservation": move["reservation"],
        "Mode": move["mode"],
        "By": move["by"],
        "Why": move["why"],
        "TTL": None if ttl is None else f"{ttl:g} s",
        "Message": move["message"],
    }
    lines = [f"{name + ':':<12} {value or ''}".rstrip() for name, value in shown.items()]
    entries = [f"  {e['at']}  {e['what']}  {e['message']}".rstrip() for e in move["timeline"]]
    return [*lines, "Timeline:", *entries]
