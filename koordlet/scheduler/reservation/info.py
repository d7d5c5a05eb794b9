"""One reservation as the scheduler knows it: its node, what it holds, which pods draw on it.

Covers: the amounts, derived from the pods that draw on it. Does not cover: where they are written
(``cache`` keeps the columns in step), the status to store (``lifecycle``).

Rules:
1. ``allocated`` is the sum of the requests of the pods that draw on it, of the names that it
   reserves: never stored, so never wrong after a failed bind, a resize or a restart.
2. An available one holds what its pods do not use: nothing where they use more.
3. A waiting one holds what the pods that it adopted have released since it was bound, no more: the
   node's free room is still everybody's, so that nothing is over-allocated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field

from koordlet.model.record import dataclass
from koordlet.scheduler.objects import requests
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.reservation import keys
from koordlet.scheduler.reservation.spec import Phase, ReservationSpec, ReservationStatus


@dataclass(slots=True, eq=False)
class ReservationInfo:
    """A reservation, or a pod in operating mode, and its account."""

    spec: ReservationSpec
    stored: ReservationStatus = field(default_factory=ReservationStatus)
    position: int = 0
    phase: Phase = Phase.PENDING
    node: str = ""
    row: int = -1
    #: The pod that keeps its place; in operating mode, the running pod itself.
    reserve_pod: Pod | None = None
    #: Whether the reserve pod is a running pod.
    operating: bool = False
    #: Pods that draw on it, by key.
    owners: dict[str, Pod] = field(default_factory=dict)
    #: UIDs of the running pods that a pre-allocation has adopted, and what they had then.
    adopted: frozenset[str] = frozenset()
    pledged: Mapping[str, int] = field(default_factory=dict)
    #: What of the reserve pod's amounts is not held, as the columns have it.
    relief: dict[str, int] = field(default_factory=dict)
    #: The store's revision of the object.
    revision: str = ""
    #: Its node has gone.
    orphaned: bool = False
    allocated: dict[str, int] = field(default_factory=dict)

    def count(self) -> None:
        """Derive what is allocated from the pods that draw on it."""
        allocated: dict[str, int] = {}
        for pod in self.owners.values():
            requested = pod.pod_class.requests.real
            for name in self.spec.allocatable:
                if name in requested:
                    allocated[name] = allocated.get(name, 0) + requested[name]
                elif name == requests.PODS:
                    allocated[name] = allocated.get(name, 0) + 1
        self.allocated = allocated

    @property
    def consumers(self) -> list[Pod]:
        """Pods that draw on it because they were placed here through it."""
        return [pod for pod in self.owners.values() if pod.uid not in self.adopted]

    @property
    def used_up(self) -> bool:
        """Whether a pod draws on one that may be drawn on once."""
        return self.spec.once and bool(self.consumers if self.adopted else self.owners)

    @property
    def usable(self) -> bool:
        """Whether another pod may draw on it."""
        if self.operating and not (self.reserve_pod is not None and self.reserve_pod.ready):
            return False
        return self.phase is Phase.AVAILABLE and not self.spec.fault and not self.used_up

    def held(self) -> dict[str, int]:
        """What it keeps from other pods now, by resource name."""
        if not self.phase.holds:
            return {}
        rest = {
            name: max(0, amount - self.allocated.get(name, 0))
            for name, amount in self.spec.allocatable.items()
        }
        if self.phase is Phase.AVAILABLE:
            return rest
        return {
            name: min(left, max(0, self.pledged.get(name, 0) - self.allocated.get(name, 0)))
            for name, left in rest.items()
        }

    def not_held(self) -> dict[str, int]:
        """What it reserves and does not keep from other pods now."""
        reserved = self.spec.allocatable
        if self.phase is Phase.AVAILABLE:
            # What its pods use, and no more than it has: the ordinary case, at each placement.
            return {
                name: min(used, reserved[name])
                for name, used in self.allocated.items()
                if name != requests.PODS
            }
        held = self.held()
        return {
            name: amount - held.get(name, 0)
            for name, amount in reserved.items()
            if name != requests.PODS
        }

    def relieve(self, not_held: Mapping[str, int]) -> dict[str, int]:
        """Note what is not held; the change of the node's requested amounts."""
        before = self.relief
        if not_held == before:
            return {}
        self.relief = dict(not_held)
        return {
            name: change
            for name in not_held.keys() | before.keys()
            if (change := before.get(name, 0) - not_held.get(name, 0))
        }

    def marks(self) -> dict[str, str]:
        """The annotation of a pod that draws on it."""
        named = {"name": self.spec.name, "uid": self.spec.uid}
        return {keys.ALLOCATED: json.dumps(named, separators=(",", ":"))}

    def free(self) -> dict[str, int]:
        """What another pod can draw from it."""
        kept = self.spec.kept
        return {
            name: max(0, amount - self.allocated.get(name, 0) - kept.get(name, 0))
            for name, amount in self.spec.allocatable.items()
        }
