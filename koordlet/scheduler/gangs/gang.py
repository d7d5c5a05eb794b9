"""A gang as a value: its minimum, its mode, whom it is satisfied with.

Covers: one model for all forms, the defaults, the rule by which the minimum is reached.
Does not cover: who its members are (``book``), how objects spell it (``kubeapi.pod_groups``).

Rules:
1. A PodGroup decides where there is one; without, the first pod with a readable minimum does, and
   later pods of the gang change nothing.
2. A gang without a readable minimum does not exist yet: its pods wait.
3. A minimum of 0 or less means that every pod passes alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from koordlet.kubeapi.pod_groups import (
    GangAnnotations,
    GangForm,
    GatherLayer,
    MatchPolicy,
    Membership,
    PodGroup,
)
from koordlet.model.record import dataclass

#: Seconds that members of the peers' and of Kubernetes' own gangs wait for each other.
WAIT, NATIVE_WAIT = 600.0, 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GangDefaults:
    """What a gang is that does not say it: arguments of the plugin ``Coscheduling``."""

    wait_seconds: float = WAIT
    match_policy: MatchPolicy = MatchPolicy.ONCE_SATISFIED
    #: Whether members are gathered in the cluster's network.
    gathers: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """One gang."""

    #: ``namespace/name``, and the key among all gangs (``kubeapi.pod_groups.gang_key``).
    id: str
    key: str
    source: GangForm
    min: int
    total: int
    strict: bool = True
    match_policy: MatchPolicy = MatchPolicy.ONCE_SATISFIED
    wait_seconds: float = WAIT
    #: Keys of the gangs that it names; not necessarily its own.
    group_ids: tuple[str, ...] = ()
    gather: tuple[GatherLayer, ...] = ()
    #: Whether ``gather`` counts: there is any, and the configuration does not ignore it.
    gathers: bool = False
    topology_key: str = ""
    priority: int | None = None
    whole: bool = False
    min_resources: Mapping[str, Any] = field(default_factory=dict)
    #: What could not be read, for an event.
    problems: tuple[str, ...] = ()

    @property
    def native(self) -> bool:
        """Whether it is of Kubernetes' own kind, with messages of its own."""
        return self.source is GangForm.NATIVE

    @property
    def passed_over(self) -> tuple[str, ...]:
        """What it asks for and does not get, although it is scheduled; for events."""
        texts = []
        if self.gather and not self.gathers:
            texts.append("awareNetworkTopology is false: its members are not gathered")
        return tuple(f"gang {self.id}: {text}" for text in texts)

    def valid(self, *, waiting: int, bound: int, satisfied: bool) -> bool:
        """Whether enough members are decided (``waiting``) or ``bound``, by the match policy."""
        if self.match_policy is MatchPolicy.WAITING_AND_RUNNING:
            return waiting + bound >= self.min
        once = self.match_policy is MatchPolicy.ONCE_SATISFIED and satisfied
        return once or waiting >= self.min


@dataclass(frozen=True, slots=True)
class Obstacle:
    """The first member that the last cycle of its group did not decide, and why."""

    #: ``namespace/name``.
    pod: str
    message: str
    #: An error, which says nothing about nodes.
    error: bool = False


def of_pod_group(pod_group: PodGroup, defaults: GangDefaults) -> Gang | None:
    """The gang of a PodGroup; ``None`` where its minimum cannot be read."""
    if pod_group.minimum is None:
        return None
    wait = NATIVE_WAIT if pod_group.native else pod_group.wait_seconds or defaults.wait_seconds
    return Gang(
        id=pod_group.id,
        key=pod_group.key,
        source=GangForm.NATIVE if pod_group.native else GangForm.POD_GROUP,
        wait_seconds=wait,
        topology_key=pod_group.topology_key,
        priority=pod_group.priority,
        whole=pod_group.whole,
        min_resources=pod_group.min_resources,
        **_stated(pod_group.minimum, pod_group.annotations, defaults),
    )


def of_membership(membership: Membership, defaults: GangDefaults) -> Gang | None:
    """The gang that a pod configures; ``None`` where it does not, or not readably."""
    if membership.has_object or membership.minimum is None:
        return None
    return Gang(
        id=membership.id,
        key=membership.key,
        source=membership.form,
        wait_seconds=membership.wait_seconds or defaults.wait_seconds,
        **_stated(membership.minimum, membership.annotations, defaults),
    )


def _stated(minimum: int, stated: GangAnnotations, defaults: GangDefaults) -> dict[str, Any]:
    return {
        "min": max(0, minimum),
        "total": max(0, minimum, stated.total),
        "strict": stated.strict,
        "match_policy": stated.match_policy or defaults.match_policy,
        "group_ids": stated.groups,
        "gather": stated.gather,
        "gathers": bool(stated.gather) and defaults.gathers,
        "problems": stated.problems,
    }
