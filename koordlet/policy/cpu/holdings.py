"""State of ``exclusive_cpus``: which workload holds which CPUs, why, since when.

Covers: one row for each holder, to and from a checkpoint.
Does not cover: deciding rows (``exclusive_cpus``); claims of one moment (``model.ledger``).

A checkpoint of another machine or boot never gets here: the agent discards it.
"""

from __future__ import annotations

import enum

from koordlet.model import cpuset, ledger
from koordlet.model.record import dataclass


class Origin(enum.Enum):
    """The source of a CPU assignment."""

    #: The kubelet's static policy: never moved, never refused.
    KUBELET = "kubelet"
    #: A scheduler or the operator named them.
    NAMED = "named"
    #: They were chosen here; where somebody names them, others are chosen.
    CHOSEN = "chosen"
    #: Chosen here for a resource claim, among the CPUs of the devices that it was allocated.
    CLAIMED = "claimed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """CPUs held by one workload."""

    uid: str
    #: ``namespace/name``.
    holder: str
    #: Also those that are offline now.
    cpus: cpuset.CPUSet
    origin: Origin
    owner: ledger.Owner
    #: Unix time at which it got the first of these.
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All holders, by key."""

    holdings: tuple[Holding, ...] = ()

    def of(self, uid: str, origin: Origin) -> Holding | None:
        """The holding of a workload from one origin."""
        own = (holding for holding in self.holdings if holding.uid == uid)
        return next((holding for holding in own if holding.origin is origin), None)


def recall(state: State) -> tuple[ledger.Claim, ...]:
    """Claims of the checkpoint, used while the policy fails before its first decision."""
    return tuple(
        ledger.Claim(
            owner=holding.owner,
            cpus=holding.cpus,
            holder=holding.holder,
            policy="exclusive_cpus",
            reason=f"exclusive CPUs of {holding.owner.value} {holding.holder}"
            " (from the checkpoint)",
            uid=holding.uid,
            since=holding.since,
            kubelet=holding.origin is Origin.KUBELET,
        )
        for holding in state.holdings
    )
