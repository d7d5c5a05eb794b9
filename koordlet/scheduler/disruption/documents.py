"""What limits disruptions and which nodes are avoided, as JSON for people to look at. Pure.

Covers: DisruptionRates with what they allow now, entries of avoid lists. Does not cover: serving
them (``process.pages``), printing (``cli``).
"""

from __future__ import annotations

from typing import Any

from koordlet.model import moment
from koordlet.scheduler.disruption import rate_status
from koordlet.scheduler.disruption.answers import Clock
from koordlet.scheduler.disruption.avoidance_book import AvoidanceBook
from koordlet.scheduler.disruption.limiter import Limiter

Body = dict[str, Any]


def avoided(book: AvoidanceBook, now: Clock) -> list[Body]:
    """The live entries of all nodes."""
    return [
        {**entry.body(), "node": node, "workload": "{1} {0}/{2}".format(*entry.workload)}
        for node, entries in book
        for entry in entries
        if entry.until > now.wall
    ]


def budgets(limiter: Limiter, now: Clock) -> list[Body]:
    """All DisruptionRates, each with its status of this moment."""
    documents = []
    for held in limiter.rates:
        if held.stored is None:
            continue
        status = rate_status.derive(
            limiter.rates, held, held.stored, leaving=limiter.pace.leaving, now=now.wall
        )
        allowed = next(each for each in status["conditions"] if each["type"] == "Allowed")
        seconds = rate_status.next_allowed(status, now.wall)
        documents.append(
            {
                "budget": f"{held.namespace}/{held.name}",
                "allowed": allowed["status"] == "True",
                "reason": allowed["reason"],
                "message": allowed["message"],
                "nextAllowed": moment.spell(now.wall + seconds) if seconds else None,
                **{key: status.get(key) for key in _KEYS},
            }
        )
    return sorted(documents, key=lambda document: str(document["budget"]))


_KEYS = ("expectedPods", "upPods", "windows", "disruptions", "ratePerHour")
