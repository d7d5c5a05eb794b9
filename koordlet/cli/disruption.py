"""Shared by the commands that show disruption budgets and avoid lists: how they are printed.

Covers: their tables, one budget with its windows and ledger. Does not cover: the commands (``get``,
``describe``), asking a scheduler (``scheduler_documents``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from koordlet.cli import output

Document = Mapping[str, Any]


def budgets(several: Sequence[Document]) -> list[str]:
    """A row for each DisruptionRate: what it has seen, and what stands in the way."""
    rows = [
        (
            budget["budget"],
            f"{_number(budget['upPods'])}/{_number(budget['expectedPods'])}",
            ", ".join(map(_window, budget["windows"] or ())) or "-",
            "yes" if budget["allowed"] else budget["reason"],
            budget["nextAllowed"] or "-",
        )
        for budget in several
    ]
    return output.table(rows, head=("BUDGET", "UP", "USED", "ALLOWED", "NEXT")) if rows else []


def avoid(several: Sequence[Document]) -> list[str]:
    """A row for each entry of an avoid list."""
    rows = [
        (
            entry["node"],
            entry["workload"],
            entry["until"],
            str(entry["weight"]),
            entry["by"] or "-",
            ": ".join(filter(None, (entry["reason"], entry["message"]))) or "-",
        )
        for entry in several
    ]
    head = ("NODE", "AVOIDED BY", "UNTIL", "WEIGHT", "ASKED FOR BY", "WHY")
    return output.table(rows, head=head) if rows else []


def detail(budget: Document) -> Iterator[str]:
    """One budget, its windows and its newest disruptions."""
    yield f"Name:     {budget['budget']}"
    yield f"Pods up:  {_number(budget['upPods'])} of {_number(budget['expectedPods'])}"
    yield f"Allowed:  {'yes' if budget['allowed'] else 'no'}: {budget['message']}"
    for window in budget["windows"] or ():
        then = f", the next from {window['nextAllowed']}" if window.get("nextAllowed") else ""
        yield f"Window:   {_window(window)}{then}"
    rows = [
        (
            entry["time"],
            entry["pod"],
            entry["cause"],
            entry["by"] or "-",
            "lapsed" if entry.get("lapsed") else ("yes" if entry["accepted"] else "no"),
        )
        for entry in budget["disruptions"] or ()
    ]
    if rows:
        yield from output.table(rows, head=("TIME", "POD", "CAUSE", "BY", "COUNTS"))


def _window(window: Document) -> str:
    return f"{window['used']} of {window['allowed']} in {window['window']}"


def _number(value: object) -> str:
    return "?" if value is None else str(value)
