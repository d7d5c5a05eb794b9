"""Shared by the commands about plans of moves: reaching them, their table, one in detail.

Does not cover: the commands (``get``, ``describe``, ``reschedule``).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence

from koordlet.cli import object_reach, output
from koordlet.cli.object_reach import Document
from koordlet.kubeapi import kinds, objects

ENDED = frozenset({"Done", "Failed", "Aborted"})


def reach(args: argparse.Namespace) -> object_reach.ObjectReach:
    """The plans, wherever they are kept."""
    shown = object_reach.ShownKind(
        kind=kinds.MOVE_PLANS, noun="plan", several="plans", path="plans", read=_read
    )
    return object_reach.ObjectReach(args, shown)


def _read(bodies: Sequence[objects.Object]) -> list[Document]:
    from koordlet.scheduler.rescheduling import (  # noqa: PLC0415 -- with the scheduler
        move_plan,
        plan_document,
    )

    several = sorted(map(move_plan.read, bodies), key=lambda each: (each.created, each.name))
    return [plan_document.document(each) for each in several]


def table(plans: Sequence[Document], now: float | None = None) -> list[str]:
    """A row for each plan."""
    at = time.time() if now is None else now
    rows = [
        (
            plan["name"],
            plan["mode"],
            plan["phase"],
            plan["reason"] or "-",
            output.age(plan["created"], at),
            _wanted(plan) or "-",
            plan["node"] or "-",
            f"{sum(move['phase'] == 'Done' for move in plan['moves'])}/{len(plan['moves'])}",
            plan["improvement"] or "-",
            (plan["cost"] or {}).get("disruption") or "-",
            plan["message"] or "-",
        )
        for plan in plans
    ]
    head = (
        "NAME",
        "MODE",
        "PHASE",
        "REASON",
        "AGE",
        "FOR",
        "NODE",
        "MOVED",
        "GAIN",
        "COST",
        "MESSAGE",
    )
    return output.table(rows, head=head) if rows else []


def detail(plan: Document) -> Iterator[str]:
    """One plan with its moves."""
    shown = {
        "Name": plan["name"],
        "Phase": ": ".join(filter(None, (plan["phase"], plan["reason"]))),
        "Mode": plan["mode"],
        "For": _wanted(plan),
        "Node": plan["node"],
        "Why": plan["why"],
        "Began": plan["began"],
        "TTL": f"{plan['ttlSeconds']:g} s",
        "Gain": _gain(plan),
        "Cost": _cost(plan),
        "Message": plan["message"],
    }
    for name, value in shown.items():
        yield f"{name + ':':<9} {value or ''}".rstrip()
    yield from (f"{each['pod']} on node {each['node']}" for each in plan["members"])
    rows = [
        (
            str(place),
            move["pod"],
            move["from"],
            move["to"],
            ", ".join(str(each + 1) for each in move["after"]) or "-",
            move["phase"],
            move["replacement"] or "-",
            move["job"] or "-",
        )
        for place, move in enumerate(plan["moves"], 1)
    ]
    head = ("", "POD", "FROM", "TO", "AFTER", "PHASE", "NEW POD", "MIGRATION")
    yield from output.table(rows, head=head) if rows else []
    for gang in dict.fromkeys(move["gang"] for move in plan["moves"] if move["gang"]):
        places = (str(n) for n, move in enumerate(plan["moves"], 1) if move["gang"] == gang)
        yield f"gang {gang} moves whole: {', '.join(places)}"
    for move in plan["moves"]:
        if move["message"]:
            yield f"{move['pod']}: {move['message']}"


def _wanted(plan: Document) -> str:
    """Whom it is for, and how many more of a gang."""
    more = f" and {len(plan['members'])} more" if plan["members"] else ""
    return f"{plan['for'] or ''}{more}"


def _gain(plan: Document) -> str:
    return f"frees {plan['improvement']} of {plan['node']}" if plan["improvement"] else ""


def _cost(plan: Document) -> str:
    cost = plan["cost"]
    if not cost:
        return ""
    pods = "1 pod" if cost["pods"] == 1 else f"{cost['pods']} pods"
    return f"{cost['disruption']}: {pods}, cpu {cost['cpu']}, memory {cost['memory']}"
