"""Shared by the commands that show gangs: how they are printed.

Covers: the table, one gang with its members. Does not cover: the commands (``get``, ``describe``,
``sim``), asking a scheduler (``scheduler_documents``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from koordlet.cli import output

Document = Mapping[str, Any]


def table(gangs: Sequence[Document]) -> list[str]:
    """A row for each gang: how many of its minimum have a node, and why it waits."""
    head = ("GANG", "PLACED/MIN", "PODS", "PHASE", "SINCE", "GROUP", "WAITS FOR")
    rows = [
        (
            gang["gang"],
            _share(gang),
            str(gang["pods"]),
            gang["phase"],
            gang["since"] or "-",
            ",".join(gang["group"]) or "-",
            _reason(gang) or "-",
        )
        for gang in gangs
    ]
    return output.table(rows, head=head) if rows else []


def detail(gang: Document) -> list[str]:
    """One gang, with a row for each member."""
    shown = {
        "Name": gang["gang"],
        "Form": gang["form"],
        "Phase": gang["phase"],
        "Since": gang["since"] or "",
        "Placed": f"{_share(gang)} of {gang['pods']} pods",
        "Place": gang.get("place") or "",
        "Group": ", ".join(gang["group"]),
        "Waits for": _reason(gang),
        **({"Would run": gang["remedy"]} if gang.get("remedy") else {}),
    }
    lines = [f"{name + ':':<10} {value}".rstrip() for name, value in shown.items()]
    rows = [
        (member["pod"], member["node"] or "-", member["message"] or "")
        for member in gang.get("members", ())
    ]
    return [*lines, *(output.table(rows, head=("POD", "NODE", "WHY NOT")) if rows else ())]


def _share(gang: Document) -> str:
    return f"{gang['placed']}/{'?' if gang['min'] is None else gang['min']}"


def _reason(gang: Document) -> str:
    return ": ".join(filter(None, (gang["member"], gang["message"])))
