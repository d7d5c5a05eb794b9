"""The status of a DisruptionRate: what is covered, what happened, what is allowed.

Covers: the whole status as a merge patch's value. Does not cover: writing it
(``loop.disruption_rate_controller``).

Of a rate with a ledger for each controller, the windows and the condition are those of the
controller that may be disrupted last; it is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koordlet.kubeapi.disruption_rates import Disruption, DisruptionRate
from koordlet.model import moment
from koordlet.scheduler.disruption import rate_book
from koordlet.scheduler.disruption.answers import Asker, Defer, Deny
from koordlet.scheduler.disruption.rate_book import Group, HeldRate, RateBook

#: Anybody, who is not in the background.
_ANYBODY = Asker(cause="", component="", background=False, shadow=False)
_HOUR = 3600.0


def derive(
    book: RateBook,
    held: HeldRate,
    stored: DisruptionRate,
    *,
    leaving: frozenset[str],
    now: float,
) -> dict[str, Any]:
    """The status to have now; times of conditions are those of the stored one where they hold."""
    generation: dict[str, Any] = {"observedGeneration": stored.generation}
    if held.spec is None:
        message = f"the specification is not in force: {'; '.join(stored.faults)}"
        conditions = [_condition("Allowed", "Unknown", "Invalid", message)]
        return {**generation, "conditions": _timed(conditions, stored.status, now)}
    groups = [book.group(held, name, leaving) for name in _names(book, held)]
    refusals = [(_refusal(group, now), group) for group in groups]
    worst = max(refusals, key=lambda pair: _last(pair[0]), default=None)
    entries = sorted(
        (entry for group in groups for entry in group.ledger if not (entry.shadow or entry.asked)),
        key=lambda entry: (-entry.at, entry.uid),
    )
    conditions = [_allowed(None if worst is None else worst[0], stored.faults)]
    if any(group.spec != held.spec for group in groups):
        message = "the configuration lets no object be so strict: it is honoured up to its floor"
        conditions.append(_condition("Clipped", "True", "Floor", message))
    return {
        **generation,
        "expectedPods": sum(group.standing.expected for group in groups),
        "upPods": sum(group.standing.up for group in groups),
        "disruptions": [entry.body() for entry in entries],
        "windows": [] if worst is None else _windows(held, worst[1], now),
        "ratePerHour": str(_in_the_hour(entries, now)),
        "conditions": _timed(conditions, stored.status, now),
    }


def _names(book: RateBook, held: HeldRate) -> list[str]:
    """The groups of a rate: with pods, or with disruptions."""
    if held.spec is None or held.spec.selector is not None:
        return [""]
    return sorted(book.controllers(held) | held.ledgers.keys())


def _refusal(group: Group, now: float) -> Deny | Defer | None:
    return (
        rate_book.spent(group, _ANYBODY, now)
        or rate_book.below_min_up(group)
        or rate_book.too_soon(group, _ANYBODY, now)
    )


def _last(refusal: Deny | Defer | None) -> tuple[int, float]:
    if refusal is None:
        return 0, 0.0
    until = refusal.until if isinstance(refusal, Deny) else None
    return 1, float("inf") if until is None else until


def _allowed(refusal: Deny | Defer | None, faults: tuple[str, ...]) -> dict[str, str]:
    suffix = f"; the newest specification is not in force: {'; '.join(faults)}" if faults else ""
    if refusal is None:
        return _condition("Allowed", "True", "Allowed", f"a disruption is allowed{suffix}")
    return _condition("Allowed", "False", refusal.reason, f"{refusal.message}{suffix}")


def _windows(held: HeldRate, group: Group, now: float) -> list[dict[str, Any]]:
    rows = []
    controller = next((name for name, each in held.ledgers.items() if each is group.ledger), "")
    for limit in group.spec.limits:
        allowed = group.allowed(limit.count)
        used = group.ledger.counted(now - limit.window_seconds, shadow=False)
        row: dict[str, Any] = {
            "window": rate_book.spelled(limit.window_seconds),
            "used": len(used),
            "allowed": allowed,
        }
        if allowed and len(used) >= allowed:
            row["nextAllowed"] = moment.spell(used[allowed - 1].at + limit.window_seconds)
        rows.append({**row, **({"controller": controller} if controller else {})})
    return rows


def _in_the_hour(entries: list[Disruption], now: float) -> int:
    return sum(entry.accepted and not entry.lapsed and entry.at > now - _HOUR for entry in entries)


def _condition(kind: str, status: str, reason: str, message: str) -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message[:1024]}


def _timed(
    conditions: list[dict[str, str]], stored: Mapping[str, Any], now: float
) -> list[dict[str, str]]:
    """With the time of the last transition."""
    before = stored.get("conditions")
    known = {
        each.get("type"): each
        for each in (before if isinstance(before, list) else [])
        if isinstance(each, Mapping)
    }
    timed = []
    for condition in conditions:
        old = known.get(condition["type"], {})
        since = old.get("lastTransitionTime")
        if old.get("status") != condition["status"] or not isinstance(since, str):
            since = moment.spell(now)
        timed.append({**condition, "lastTransitionTime": since})
    return timed


def next_allowed(status: Mapping[str, Any], now: float) -> float:
    """Seconds until a disruption is allowed again, by the windows; 0: now."""
    rows = status.get("windows") or ()
    moments = [moment.parse(row["nextAllowed"]) for row in rows if "nextAllowed" in row]
    return max(0.0, max(moments, default=now) - now)
