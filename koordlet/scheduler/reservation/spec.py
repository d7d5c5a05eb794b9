"""The types of a decoded Reservation: its specification and its stored status.

Does not cover: reading them (``parsing``), what a reservation holds now (``info``, ``cache``).
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from dataclasses import field

from koordlet.kubeapi import selectors
from koordlet.model import moment
from koordlet.model.record import dataclass
from koordlet.scheduler.objects import terms
from koordlet.scheduler.objects.wire import Body

#: A day: what the definition fills in where neither ttl nor expires is given.
DEFAULT_TTL = 24 * 3600.0


class Phase(enum.StrEnum):
    """The phase of a reservation."""

    PENDING = "Pending"
    AVAILABLE = "Available"
    #: Bound, but what it is to hold has not been released yet.
    WAITING = "Waiting"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"

    @property
    def over(self) -> bool:
        """Whether the phase is final."""
        return self in {Phase.SUCCEEDED, Phase.FAILED}

    @property
    def holds(self) -> bool:
        """Whether the reservation holds room on a node."""
        return self in {Phase.AVAILABLE, Phase.WAITING}


class AllocatePolicy(enum.StrEnum):
    """Whether a pod may use more than is reserved."""

    DEFAULT = "Default"
    ALIGNED = "Aligned"
    RESTRICTED = "Restricted"


@dataclass(frozen=True, slots=True)
class OwnerPattern:
    """A pod, or an entry of a pod's ownerReferences; empty fields are not compared."""

    namespace: str = ""
    api_version: str = ""
    name: str = ""
    uid: str = ""
    #: Of references alone.
    kind: str = ""
    controller: bool | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class ReservationOwner:
    """An owner entry: all given parts must match; an empty entry matches every pod."""

    object: OwnerPattern | None = None
    controller: OwnerPattern | None = None
    selector: selectors.Compiled | None = None


@dataclass(frozen=True, slots=True)
class PreAllocation:
    """Pre-allocation: the reservation takes over the room of running pods."""

    cluster: bool = False
    multiple: bool = False
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationSpec:
    """The specification of a reservation."""

    name: str
    uid: str
    #: Seconds since 1970; 0: unknown.
    created: float = 0.0
    #: RFC 3339: sorts as text.
    created_text: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    deleting: bool = False
    template: Body
    owners: tuple[ReservationOwner, ...] = ()
    #: ``None``: never expires by age.
    ttl: float | None = DEFAULT_TTL
    expires: float | None = None
    once: bool = True
    policy: AllocatePolicy = AllocatePolicy.DEFAULT
    pre_allocation: PreAllocation | None = None
    unschedulable: bool = False
    taints: tuple[terms.Taint, ...] = ()
    #: The node that it is pinned to.
    pinned: str = ""
    scheduler: str = ""
    #: What it reserves: the template's requests, or what a resize made of them.
    allocatable: Mapping[str, int] = field(default_factory=dict)
    #: Names whose amounts are printed in powers of ten.
    decimal: frozenset[str] = frozenset()
    #: What inside it its owners may not use.
    kept: Mapping[str, int] = field(default_factory=dict)
    #: Names that Restricted restricts.
    restricted: frozenset[str] = frozenset()
    #: Smaller is preferred; 0: no opinion.
    order: int = 0
    #: Why no pod can ever match it, though it holds what it holds.
    fault: str = ""

    @property
    def controller(self) -> tuple[str, str, str]:
        """Namespace, kind and name of the controller whose pods alone may use it; empty: any."""
        only = self.owners[0].controller if len(self.owners) == 1 else None
        return ("", "", "") if only is None else (only.namespace, only.kind, only.name)

    @property
    def expires_at(self) -> float | None:
        """When the reservation expires; ``expires`` takes precedence over ``ttl``."""
        if self.expires is not None:
            return self.expires
        return None if self.ttl is None or not self.created else self.created + self.ttl


@dataclass(frozen=True, slots=True)
class ReservePodTraits:
    """What plugins have to know of the class of a reserve pod."""

    policy: AllocatePolicy
    pinned: str = ""
    #: For a unit or process of its node: what that uses is part of what the node uses already.
    resident: bool = False
    #: Namespace, kind and name of the controller whose pods alone may take it; empty: any.
    controller: tuple[str, str, str] = ("", "", "")
    #: Only where running pods may be adopted: then the class is the reservation's own.
    adopting: ReservationSpec | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition of the status."""

    type: str
    status: bool
    reason: str
    message: str = ""
    probed: str = ""
    changed: str = ""

    @property
    def since(self) -> float:
        """Unix time of the last transition; 0 where the object names none."""
        return moment.parse(self.changed) if self.changed else 0.0

    def body(self) -> dict[str, str]:
        """As the object has it."""
        fields = {
            "type": self.type,
            "status": "True" if self.status else "False",
            "reason": self.reason,
            "message": self.message,
            "lastProbeTime": self.probed,
            "lastTransitionTime": self.changed,
        }
        return {key: value for key, value in fields.items() if value}


def with_condition(
    conditions: tuple[Condition, ...], made: Condition, now: float
) -> tuple[Condition, ...]:
    """One condition in its place; times move only when something did."""
    spelled = moment.spell(now)
    old = next((condition for condition in conditions if condition.type == made.type), None)
    if old is None:
        return (*conditions, dataclasses.replace(made, probed=spelled, changed=spelled))
    if (old.status, old.reason, old.message) == (made.status, made.reason, made.message):
        return conditions
    keeps = old.status is made.status or made.reason == "Succeeded"
    new = dataclasses.replace(made, probed=spelled, changed=old.changed if keeps else spelled)
    return tuple(new if condition is old else condition for condition in conditions)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationStatus:
    """The stored status of a reservation."""

    phase: Phase = Phase.PENDING
    node: str = ""
    conditions: tuple[Condition, ...] = ()
    allocatable: Mapping[str, str] = field(default_factory=dict)
    allocated: Mapping[str, str] = field(default_factory=dict)
    owners: tuple[Mapping[str, str], ...] = ()

    def condition(self, kind: str) -> Condition | None:
        """One condition by its type."""
        return next((condition for condition in self.conditions if condition.type == kind), None)

    def body(self) -> dict[str, object]:
        """As the object has it; empty parts are left out."""
        fields: dict[str, object] = {
            "phase": self.phase.value,
            "nodeName": self.node,
            "conditions": [condition.body() for condition in self.conditions],
            "allocatable": dict(self.allocatable),
            "allocated": dict(self.allocated),
            "currentOwners": [dict(owner) for owner in self.owners],
        }
        return {key: value for key, value in fields.items() if value}
