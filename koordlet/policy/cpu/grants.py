"""What one decision about exclusive CPUs has granted so far, and what is left.

Covers: holdings and claims of the ledger, room for one more grant, allocation beside the grants
before. Does not cover: who is granted what, and in which order (``exclusive_cpus``).
"""

from __future__ import annotations

from koordlet.model import cpuset, ledger, snapshot
from koordlet.policy.cpu import accumulator, allocation, holdings, shape
from koordlet.policy.framework import proposals

_NONE = cpuset.CPUSet()


class Grants(proposals.Proposal):
    """The grants of one decision."""

    def __init__(
        self, policy: str, now: snapshot.Snapshot, before: holdings.State, *, most: int | None
    ) -> None:
        super().__init__(policy, now, reason="ExclusiveCPUs")
        self.before = before
        #: The highest number of exclusive CPUs.
        self.most = most
        self.online = now.topology.online
        self.reserved = now.ledger.held(ledger.Owner.RESERVED, ledger.Owner.SYSTEM)
        #: What workloads may have; where everything is reserved, that would strand them.
        self.usable = now.allowed - self.reserved or now.allowed
        self.isolated = now.topology.isolated & self.usable
        self.taken = cpuset.CPUSet()
        self.claims: list[ledger.Claim] = []
        self.holdings: list[holdings.Holding] = []
        self._given: list[allocation.Holding] = []
        self._shape: shape.Shape | None = None

    def too_much(self, wanted: cpuset.CPUSet) -> str:
        """The reason that so many CPUs more cannot be exclusive; empty where they can."""
        if not self.usable - self.taken - wanted:
            return "no CPU would be left for the shared pools"
        held = len(self.taken | wanted)
        if self.most is not None and held > self.most:
            return f"{held} CPUs would be exclusive, limits.maxCpus is {self.most}"
        return ""

    def allocate(
        self, request: allocation.Request, outside: cpuset.CPUSet = _NONE
    ) -> allocation.Grant | allocation.Refusal:
        """Allocate without isolated CPUs, with them only if necessary; never ``outside``."""
        unasked = self.isolated - request.preferred
        answer = self.node(unasked | outside).allocate(request)
        if unasked and isinstance(answer, allocation.Refusal):
            answer = self.node(outside).allocate(request)
        return answer

    def node(self, avoided: cpuset.CPUSet = _NONE) -> allocation.Node:
        """The machine beside what was granted, without the CPUs ``avoided``."""
        if self._shape is None:
            self._shape = shape.Shape.of(self.now.topology)
        return allocation.Node(
            self._shape,
            reserved=(self.online - self.usable) | avoided,
            holdings=self._given,
        )

    def keep(
        self,
        owner: ledger.Owner,
        who: tuple[str, str],
        listed: cpuset.CPUSet,
        *,
        origin: holdings.Origin,
        reason: str,
        exclusive: accumulator.Exclusive = accumulator.Exclusive.NONE,
    ) -> None:
        """Remember a holding of ``who`` (UID and name), and claim what of it is online."""
        uid, holder = who
        before = self.before.of(uid, origin)
        same = before is not None and not before.cpus.isdisjoint(listed)
        since = before.since if before is not None and same else self.now.wall
        self.holdings.append(
            holdings.Holding(
                uid=uid, holder=holder, cpus=listed, origin=origin, owner=owner, since=since
            )
        )
        claim = ledger.Claim(
            owner=owner,
            cpus=listed & self.online,
            holder=holder,
            policy=self.policy,
            reason=reason,
            uid=uid,
            since=since,
            kubelet=origin is holdings.Origin.KUBELET,
        )
        self.record(claim, exclusive)

    def record(
        self,
        claim: ledger.Claim,
        exclusive: accumulator.Exclusive = accumulator.Exclusive.NONE,
    ) -> None:
        """Add a claim to the ledger: nobody after it gets its CPUs."""
        if claim.kubelet:
            self._overlaps(claim.cpus, claim.holder)
        self.taken |= claim.cpus
        self.claims.append(claim)
        self._given.append(
            allocation.Holding(holder=claim.holder, cpus=claim.cpus, exclusive=exclusive)
        )

    def _overlaps(self, cpus: cpuset.CPUSet, holder: str) -> None:
        """Report CPUs that the kubelet assigned although they were not free."""
        wrong = cpus & (self.reserved | self.taken)
        if wrong:
            message = f"the kubelet assigned it CPUs {wrong}, which are already reserved or held"
            self.say("CPUSetViolated", message, holder, reason="KubeletOverlap")
