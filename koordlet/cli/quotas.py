"""Shared by the commands that show quotas: how they are printed.

Covers: the table as a tree, one quota with its pods, the reasoning about its runtime, what differs
between two tables. Does not cover: the commands (``get``, ``describe``, ``explain``, ``sim``),
asking a scheduler (``scheduler_documents``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from koordlet.cli import output

Document = Mapping[str, Any]

_AMOUNTS = ("min", "used", "request", "runtime", "max")


def table(quotas: Sequence[Document]) -> list[str]:
    """A row for each quota, children indented below their parent."""
    head = ("QUOTA", *(name.upper() for name in _AMOUNTS), "PODS", "WAITING", "NOTE")
    rows = [
        (
            "  " * quota["depth"] + quota["quota"],
            *(spelled(quota[name]) for name in _AMOUNTS),
            str(quota["pods"]),
            str(quota["waiting"]),
            _note(quota),
        )
        for quota in quotas
    ]
    return output.table(rows, head=head) if rows else []


def _note(quota: Document) -> str:
    notes = [f"{verb} {spelled(quota[verb])}" for verb in ("borrows", "lends") if quota[verb]]
    if quota["over"]:
        notes.append(f"over its runtime by {spelled(quota['over'])}")
    if quota["problem"]:
        notes.append(f"invalid: {quota['problem']}")
    return "; ".join(notes) or "-"


def spelled(amounts: Mapping[str, str]) -> str:
    """Amounts in one cell."""
    return ",".join(f"{name}:{much}" for name, much in sorted(amounts.items())) or "-"


def detail(quota: Document) -> list[str]:
    """One quota, with a row for each pod."""
    shown = {
        "Name": quota["quota"],
        "Namespace": quota["namespace"],
        "Parent": quota["parent"] or "",
        "Tree": quota["tree"] or "",
        "Lends": "yes" if quota["allowLentResource"] else "no",
        **{name.capitalize(): spelled(quota[name]) for name in _AMOUNTS},
        "Weight": spelled(quota["sharedWeight"]),
        "Guaranteed": spelled(quota["guaranteed"]),
        "Note": _note(quota),
    }
    lines = [f"{name + ':':<11} {value}".rstrip() for name, value in shown.items()]
    rows = [
        (
            member["pod"],
            member["node"] or "-",
            str(member["priority"]),
            spelled(member["request"]),
            member["message"] or "",
        )
        for member in quota.get("members", ())
    ]
    head = ("POD", "NODE", "PRIORITY", "REQUEST", "WHY NOT")
    return [*lines, *(output.table(rows, head=head) if rows else ())]


def reasoning(quota: Document) -> Iterator[str]:
    """How each number of the runtime came about."""
    yield f"runtime of {quota['quota']}: {spelled(quota['runtime'])}"
    if quota["problem"]:
        yield f"invalid: {quota['problem']}"
    last = ""
    for step in quota.get("steps", ()):
        if step["resource"] != last:
            last = step["resource"]
            unit = "thousandths of a CPU" if last == "cpu" else "units"
            yield f"{last}, in {unit}:"
        yield f"  {step['step']}"
    if quota["runtime"] and not quota.get("steps"):
        yield "  its maximum: nothing is shared"


def moved(document: Document) -> Iterator[str]:
    """What differs where some quotas are others: amounts, then pods."""
    known = {quota["quota"]: quota for quota in document["before"]}
    rows = []
    for quota in document["after"]:
        old = known.pop(quota["quota"], None)
        for name in (*_AMOUNTS, "over"):
            was = spelled(old[name]) if old is not None else "-"
            if was != spelled(quota[name]):
                rows.append((quota["quota"], name, was, spelled(quota[name])))
    rows += [(name, "", "there", "gone") for name in known]
    words = "WITHOUT THE CHANGE", "WITH IT"
    yield from (
        output.table(rows, head=("QUOTA", "AMOUNT", *words)) if rows else ["no quota changes"]
    )
    pods = [
        (each["pod"], each["before"] or "pending", each["after"] or "pending")
        for each in document["pods"]
    ]
    yield from output.table(pods, head=("POD", *words)) if pods else ["no pod moves"]
