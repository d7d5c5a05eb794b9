"""reserved_cpus: CPUs that belong to the machine and to no workload.

Covers: which CPUs are reserved, by whom, what happens to a reservation that makes no sense.
Does not cover: keeping workloads off them (``shared_pools``), moving IRQs and kernel threads.

Who decides, strongest first: the node annotation ``node.koordinator.sh/reservation``
(``reservedCPUs``, then ``resources.cpu``), the configuration file (``cpus``, then ``quantity``).

Rules:
1. A reservation that would leave no CPU is refused as a whole; the last valid one stays, and a
   condition says so.
2. CPUs that this machine has not are left out, with a condition. A list of only such is refused.
3. Offline CPUs stay in the reservation: they are reserved again when they come back.
4. ``limits.maxCpus`` is applied last: a larger reservation is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from koordlet.history import series
from koordlet.model import cpuset, decision, ledger, quantity, snapshot
from koordlet.policy import cpu_packing

STEM = "reserved_cpus"
ANNOTATION = "node.koordinator.sh/reservation"

#: Version of ``State``: a checkpoint of another one is discarded.
SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the operator configured."""

    cpus: cpuset.CPUSet | None = None
    quantity_milli: int | None = None
    max_cpus: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The last reservation that was valid, as a CPU list."""

    valid: str = ""
    origin: str = ""


def revive(body: Mapping[str, object]) -> State:
    """The state from a checkpoint; ``ValueError`` when it is none."""
    valid, origin = body.get("valid"), body.get("origin")
    if not isinstance(valid, str) or not isinstance(origin, str):
        msg = "valid and origin must be text"
        raise ValueError(msg)  # noqa: TRY004 -- every bad checkpoint is the same to the caller
    return State(valid=str(cpuset.CPUSet.parse(valid)), origin=origin)


@dataclass(frozen=True, slots=True)
class _Wish:
    """What was asked for: a list, or a number of CPUs."""

    origin: str
    cpus: cpuset.CPUSet | None = None
    count: int = 0


class _RefusedError(Exception):
    """A wish that cannot be granted; the text says why."""


def decide(
    now: snapshot.Snapshot, past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Grant the reservation, or keep the last valid one and say why."""
    del past
    conditions: list[decision.Condition] = []
    try:
        wish = _wish(now, settings)
        granted, problem = _grant(now, settings, wish)
        origin = wish.origin
        remembered = State(valid=str(granted), origin=origin)
        if problem:
            conditions.append(_condition("ReservedCPUsPartial", "UnknownCPUs", problem))
    except _RefusedError as refusal:
        granted, origin = _last_valid(now, state), state.origin or "nothing"
        # Also where it cannot be granted now: CPUs may come back.
        remembered = state
        kept = f"CPUs {granted} stay reserved" if granted else "nothing is reserved"
        conditions.append(_condition("ReservedCPUsInvalid", "Refused", f"{refusal}; {kept}"))
    claims: tuple[ledger.Claim, ...] = ()
    if granted:
        claims = (
            ledger.Claim(
                owner=ledger.Owner.RESERVED,
                cpus=granted,
                holder="node",
                policy=STEM,
                reason=f"reserved by {origin}",
            ),
        )
    return decision.Decision(
        next_state=remembered,
        conditions=tuple(conditions),
        claims=claims,
        explanation={"reserved": str(granted), "origin": origin},
    )


def _condition(name: str, reason: str, message: str) -> decision.Condition:
    return decision.Condition(type=name, status=True, reason=reason, message=message)


def _last_valid(now: snapshot.Snapshot, state: State) -> cpuset.CPUSet:
    """The remembered reservation, dropped when the machine shrank until it takes everything."""
    remembered = cpuset.CPUSet.parse(state.valid)
    return remembered if now.topology.online - remembered else cpuset.CPUSet()


def _wish(now: snapshot.Snapshot, settings: Settings) -> _Wish:
    text = now.node.annotations.get(ANNOTATION)
    if text is not None:
        wish = _annotated(text)
        if wish is not None:
            return wish
    if settings.cpus is not None:
        return _Wish("configuration policies.reserved_cpus.cpus", cpus=settings.cpus)
    if settings.quantity_milli:
        count = -(-settings.quantity_milli // 1000)
        return _Wish("configuration policies.reserved_cpus.quantity", count=count)
    return _Wish("nothing")


def _annotated(text: str) -> _Wish | None:
    """The annotation's wish; ``None`` when it says nothing about CPUs."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        msg = f"annotation {ANNOTATION} is not JSON: {text[:80]!r}"
        raise _RefusedError(msg) from None
    if not isinstance(body, dict):
        msg = f"annotation {ANNOTATION} is not an object: {text[:80]!r}"
        raise _RefusedError(msg)
    listed = body.get("reservedCPUs")
    if listed not in (None, ""):
        try:
            return _Wish(f"annotation {ANNOTATION}", cpus=cpuset.CPUSet.parse(_text(listed)))
        except ValueError as error:
            msg = f"annotation {ANNOTATION}: reservedCPUs: {error}"
            raise _RefusedError(msg) from None
    resources = body.get("resources")
    amount = resources.get("cpu") if isinstance(resources, dict) else None
    if amount is None:
        return None
    try:
        count = -(-quantity.milli(_text(amount)) // 1000)
    except ValueError as error:
        msg = f"annotation {ANNOTATION}: resources.cpu: {error}"
        raise _RefusedError(msg) from None
    return _Wish(f"annotation {ANNOTATION}", count=max(0, count))


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        msg = f"expected text, found {type(value).__name__}"
        raise ValueError(msg)  # noqa: TRY004 -- callers treat every bad value alike
    return str(value)


def _grant(now: snapshot.Snapshot, settings: Settings, wish: _Wish) -> tuple[cpuset.CPUSet, str]:
    """The CPUs granted, and what was left out of the wish, or ``_RefusedError``."""
    machine = now.topology
    problem = ""
    if wish.cpus is not None:
        known = machine.present or machine.online
        granted = wish.cpus & known
        missing = wish.cpus - known
        if missing:
            problem = f"{wish.origin} names CPUs {missing}, which this machine has not"
        if wish.cpus and not granted:
            raise _RefusedError(problem)
    elif wish.count:
        packed = cpu_packing.take(machine, machine.online, wish.count)
        if packed is None:
            msg = f"{wish.origin} asks for {wish.count} CPUs of {len(machine.online)}"
            raise _RefusedError(msg)
        granted = packed
    else:
        granted = cpuset.CPUSet()
    if granted and not machine.online - granted:
        msg = f"{wish.origin} would reserve every CPU ({granted}) and leave none for workloads"
        raise _RefusedError(msg)
    if settings.max_cpus is not None and len(granted) > settings.max_cpus:
        msg = f"{wish.origin} reserves {len(granted)} CPUs, limits.maxCpus is {settings.max_cpus}"
        raise _RefusedError(msg)
    return granted, problem
