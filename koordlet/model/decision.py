"""Decision of one policy, with signals and conditions.

Covers: ``Decision`` and its parts. Does not cover: the merged plan of all (``model.plan``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Generic, TypeVar

from koordlet.model import action, best_effort, cpuset, eviction, ledger, prepared_claim
from koordlet.model.record import dataclass

StateT = TypeVar("StateT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A measurement against a threshold."""

    name: str
    observed: str
    threshold: str
    #: ``None`` when it cannot be said yet; ``why`` then says what is missing.
    met: bool | None
    why: str = ""
    #: As it is configured, where that differs from what it amounts to: ``10%``.
    spelled: str = ""
    #: Unix time since when it is met; ``None`` where it is not, or nobody keeps count.
    since: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A condition: a state that operators should know of."""

    type: str
    #: ``True`` means that the type's name is the case.
    status: bool = True
    reason: str
    message: str = ""
    #: The pod key or ``node`` that it is about.
    subject: str = "node"


@dataclass(frozen=True, slots=True)
class Stateless:
    """State of a policy that remembers nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Generic[StateT]):
    """The outcome of one policy for one snapshot.

    ``actions`` is the complete desired state of the policy: what it wrote before and does not name
    any more is put back.
    """

    next_state: StateT
    actions: tuple[action.Action, ...] = ()
    signals: tuple[Signal, ...] = ()
    conditions: tuple[Condition, ...] = ()
    #: Who shall go, in order; those that are only said as well.
    evictions: tuple[eviction.Eviction, ...] = ()
    claims: tuple[ledger.Claim, ...] = ()
    pools: tuple[ledger.Pool, ...] = ()
    #: Groups to the set of CPUs that they will have, for the policies after it.
    sets: Mapping[str, cpuset.CPUSet] = field(default_factory=dict)
    #: How much best-effort work may have, of the policies that say it.
    limit: best_effort.Limit | None = None
    #: What is offered to best-effort work, of the policy that says it.
    offer: best_effort.Offer | None = None
    #: What is offered to resource claims; ``None``: no driver shall run.
    devices: prepared_claim.DeviceOffer | None = None
    #: False where it looked at what changes by itself: a timeless policy is asked again.
    lasting: bool = True
    #: Facts of the reasoning, for ``explain`` and the audit log.
    explanation: Mapping[str, str] = field(default_factory=dict)
