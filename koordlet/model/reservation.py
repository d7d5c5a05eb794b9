"""A Reservation on this node, as far as the agent needs it.

Covers: name, phase, node, for whom it is, the CPUs that it holds by number, the unit or cgroup of
this node that it is for. Does not cover: matching pods to it (the scheduler's work).
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import field
from typing import Any

from koordlet.model import cpuset, resources
from koordlet.model.record import dataclass

#: Seconds that a pod has to arrive, once it was placed here.
_ARRIVAL = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """One reservation that is bound to this node."""

    name: str
    uid: str = ""
    #: ``Pending``, ``Available``, ``Succeeded``, ``Failed``, or whatever a later version says.
    phase: str = ""
    node: str = ""
    #: ``spec.owners`` as it is: any of them may use the reservation.
    owners: tuple[Mapping[str, Any], ...] = ()
    #: CPUs by number, where a scheduler chose them.
    cpus: cpuset.CPUSet | None = None
    #: Whole CPUs that it reserves.
    cpu_count: int | None = None
    #: What it holds of each resource.
    amounts: resources.Amounts = field(default_factory=dict)
    #: ``unit=nginx.service`` or ``cgroup=web/nginx``: what runs here and is no pod.
    match: str = ""
    #: Annotations that the workload of a match has as well.
    annotations: Mapping[str, str] = field(default_factory=dict)
    #: UIDs of the pods that draw on it.
    drawn_by: tuple[str, ...] = ()
    #: When it was used up, by the wall clock; 0: it is not.
    used_at: float = 0.0
    #: What in it could not be read.
    problems: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the reservation holds resources now."""
        return self.phase == "Available"

    def arriving(self, wall: float, there: Container[str]) -> bool:
        """Whether the reservation was used up a moment ago by a pod that is not listed yet."""
        recent = 0 <= wall - self.used_at < _ARRIVAL
        return recent and any(uid not in there for uid in self.drawn_by)
