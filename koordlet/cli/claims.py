"""Shared by the commands that show resource claims: how they are printed.

Covers: the table, one claim with its devices, why nodes have none for it. Does not cover: the
commands (``get``, ``describe``, ``explain``), asking a scheduler (``scheduler_documents``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from koordlet.cli import output

Document = Mapping[str, Any]


def table(claims: Sequence[Document]) -> list[str]:
    """A row for each claim: what it asks for, what it has, who uses it."""
    head = ("CLAIM", "PHASE", "ASKS FOR", "DEVICES", "PODS")
    rows = [
        (
            claim["claim"],
            claim["phase"],
            _asked(claim),
            ",".join(claim["devices"]) or "-",
            ",".join(claim["reservedFor"]) or "-",
        )
        for claim in claims
    ]
    return output.table(rows, head=head) if rows else []


def _asked(claim: Document) -> str:
    return ",".join(
        "|".join(
            f"{wish['class']}:{'all' if wish['count'] is None else wish['count']}"
            for wish in request["wishes"]
        )
        for request in claim["requests"]
    )


def detail(claim: Document) -> Iterator[str]:
    """One claim with its devices, and the pods that wait for it."""
    reason = "for its extended resources" if claim["extended"] else "by a template"
    shown = {
        "Name": claim["claim"],
        "Phase": claim["phase"],
        "Asks for": _asked(claim),
        "Pods": ", ".join(claim["reservedFor"]),
        "Made for": f"one pod, {reason}" if claim["generated"] else "",
    }
    yield from (f"{name + ':':<10} {value}".rstrip() for name, value in shown.items())
    rows = [
        (
            result["request"],
            result["device"],
            result["share"] or "-",
            "admin access" if result["adminAccess"] else "-",
        )
        for result in claim["results"]
    ]
    yield from output.table(rows, head=("REQUEST", "DEVICE", "SHARE", "NOTE")) if rows else ()
    waiting = [(each["pod"], each["message"] or "") for each in claim["waiting"]]
    yield from output.table(waiting, head=("WAITING POD", "WHY")) if waiting else ()


def reasoning(claim: Document) -> Iterator[str]:
    """Why nodes have no devices for a claim, those with the same reasons together."""
    yield f"{claim['claim']}: {claim['phase']}, asks for {_asked(claim)}"
    if claim["devices"]:
        yield f"  has {', '.join(claim['devices'])}"
    if claim.get("error"):
        yield f"  no node: {claim['error']}"
    for group in claim["nodes"]:
        more = group["count"] - len(group["nodes"])
        names = ", ".join(group["nodes"]) + (f" and {more} more" if more else "")
        good = "can use its devices" if claim["devices"] else "could serve it"
        yield f"  {names}: {'no' if group['why'] else good}"
        yield from (f"    {line}" for line in group["why"])
