"""The merged, ordered plan of all policies: the only thing that ``apply`` carries out.

Covers: steps, what was dropped and why, everything that ``koordlet plan`` prints; the plan of an
agent that only observes.
Does not cover: making it (``apply.planner``), doing it (``apply.executor``).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field, replace

from koordlet.model import (
    absence,
    action,
    best_effort,
    decision,
    eviction,
    ledger,
    prepared_claim,
    remember,
)
from koordlet.model.record import dataclass


class Mode(enum.Enum):
    """Mode of a policy: what may be done with its decisions."""

    OFF = "off"
    #: Decided, explained, not done.
    SHADOW = "shadow"
    ENFORCE = "enforce"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a plan. Every prefix of a plan's steps leaves the machine safe."""

    order: int
    action: action.Action
    #: The text found there; ``None`` where nothing was or it cannot be read.
    was: str | None
    mode: Mode = Mode.ENFORCE
    #: True where this puts an original back.
    undo: bool = False
    #: An intermediate value on the way: the target's final value comes in a later step.
    interim: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Two policies wanted different values in one file."""

    target: str
    kept: str
    kept_policy: str
    dropped: str
    dropped_policy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A policy that raised: it costs its own part only."""

    policy: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan of one pass, with everything that the policies concluded."""

    steps: tuple[Step, ...] = ()
    #: Who shall go, in the order of the policies and in each of them; also who is only named.
    evictions: tuple[eviction.Eviction, ...] = ()
    signals: tuple[decision.Signal, ...] = ()
    conditions: tuple[decision.Condition, ...] = ()
    ledger: ledger.Ledger = field(default_factory=ledger.Ledger)
    conflicts: tuple[Conflict, ...] = ()
    failures: tuple[Failure, ...] = ()
    unsupported: tuple[absence.Unsupported, ...] = ()
    #: Stems of policies that decide and are not done.
    shadow: tuple[str, ...] = ()
    #: What best-effort work may have, by the policy that is in charge of it; or would have.
    limit: best_effort.Limit | None = None
    #: What is offered to best-effort work.
    offer: best_effort.Offer | None = None
    #: What is offered to resource claims; ``None``: no driver shall run.
    devices: prepared_claim.DeviceOffer | None = None
    #: Policy stem to its explanation.
    explanations: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def shadowed(made: Plan) -> Plan:
    """The plan of an agent that only observes: the same steps, none of them to be done."""
    limit = best_effort.idle(made.limit, "the agent only observes")
    return replace(made, steps=_in_shadow(made.steps), limit=limit, devices=None)


@remember.last
def _in_shadow(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    return tuple(replace(step, mode=Mode.SHADOW) for step in steps)
