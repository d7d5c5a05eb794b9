"""Ledger of CPU allocations on this machine.

Covers: claims, pools, the owner of a CPU and why.
Does not cover: deciding them (``policy``).

Policies run in order; each one sees the claims of those before it in ``snapshot.ledger`` and adds
its own to its decision. So there is one ledger, and it is a value.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

from koordlet.model import cpuset
from koordlet.model.record import dataclass


class Owner(enum.Enum):
    """Kinds of owners, strongest first: where claims overlap, the first kind is the owner shown."""

    RESERVED = "reserved"
    SYSTEM = "system"
    LSE = "LSE"
    LSR = "LSR"
    #: Held for who is yet to come.
    RESERVATION = "reservation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """CPUs taken out of the pools, with owner and reason."""

    owner: Owner
    cpus: cpuset.CPUSet
    #: The pod key, or ``node`` for the machine itself.
    holder: str
    policy: str
    reason: str
    #: The pod's UID; empty for the machine itself.
    uid: str = ""
    #: Unix time at which it got the first of them; ``None`` where nobody wrote that down.
    since: float | None = None
    #: True where the kubelet holds them: its files are never written.
    kubelet: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The shared CPUs of one class on one NUMA node."""

    #: ``LS``, ``BE`` or ``SYSTEM``.
    kind: str
    cpus: cpuset.CPUSet
    socket: int | None = None
    node: int | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """All claims and pools of one moment."""

    claims: tuple[Claim, ...] = ()
    pools: tuple[Pool, ...] = ()

    def with_(self, claims: Iterable[Claim] = (), pools: Iterable[Pool] = ()) -> Ledger:
        """The ledger with more entries; the same object where there are none."""
        more, pooled = tuple(claims), tuple(pools)
        if not more and not pooled:
            return self
        return Ledger((*self.claims, *more), (*self.pools, *pooled))

    def held(self, *owners: Owner) -> cpuset.CPUSet:
        """The CPUs that the given kinds of owners hold; all kinds when none is given."""
        return cpuset.union(c.cpus for c in self.claims if not owners or c.owner in owners)

    def pool(self, kind: str) -> cpuset.CPUSet:
        """A pool across all nodes."""
        return cpuset.union(p.cpus for p in self.pools if p.kind == kind)

    def of(self, uid: str) -> Claim | None:
        """The claim of a pod; ``None`` where it has no exclusive CPUs."""
        return next((claim for claim in self.claims if uid and claim.uid == uid), None)

    def claim_on(self, cpu: int) -> Claim | None:
        """The claim on a CPU; ``None`` for a CPU of the pools."""
        claims = [claim for claim in self.claims if cpu in claim.cpus]
        order = list(Owner)
        return min(claims, key=lambda claim: order.index(claim.owner), default=None)
