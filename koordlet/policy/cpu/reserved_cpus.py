"""reserved_cpus: CPUs reserved for the machine.

Covers: which CPUs are reserved, by whom, what happens to a reservation that makes no sense.
Does not cover: reading wishes (``reservation_requests``), keeping workloads off the CPUs
(``shared_pools``), moving interrupts (``housekeeping``).

Rules:
1. Requests of all sources add up, in this order: the node, the kubelet, system QoS, declared system
   workloads. Numbers of the node and of the kubelet are packed alike and so share CPUs.
2. A request that would leave no CPU for workloads is refused as a whole; the last valid request of
   its source stays in force, and a condition says so. The same holds for an unreadable request and,
   without a condition, for a source that has not answered yet.
3. CPUs that this machine does not have are ignored, with a condition. A list of only such CPUs is
   refused.
4. Offline CPUs of a list are reserved again when they come back. CPUs that were chosen for a number
   stay while all of them are online.
5. ``limits.maxCpus`` is applied last, to all reservations together.

* Formula: as many CPUs as quantity says, rounded up, whole cores first; or the list cpus
* Writes: nothing itself: the other policies keep workloads off these CPUs
* See: `koordlet explain cpu N`; **R** on the console's map
* Off: the CPUs belong to the shared pools again with the next pass
* More: cpu.md
"""

from __future__ import annotations

from koordlet.history import series
from koordlet.model import cpuset, decision, ledger, snapshot
from koordlet.model.record import dataclass
from koordlet.policy.cpu import packing, reservation_requests
from koordlet.policy.cpu.reservation_requests import Use, Wish
from koordlet.policy.framework import declaration, proposals

STEM = "reserved_cpus"
ANNOTATION = reservation_requests.ANNOTATION


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The operator's settings."""

    cpus: cpuset.CPUSet | None = None
    quantity_milli: int | None = None
    max_cpus: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """CPUs last granted to one source."""

    source: str
    origin: str
    #: Also those that are offline now.
    cpus: cpuset.CPUSet
    use: Use
    #: The number that it was chosen for; 0 for a list.
    count: int = 0
    holder: str = "node"
    uid: str = ""

    def claim(self, cpus: cpuset.CPUSet) -> ledger.Claim:
        """The ledger claim of this reserve."""
        return ledger.Claim(
            owner=ledger.Owner.RESERVED if self.use is Use.MACHINE else ledger.Owner.SYSTEM,
            cpus=cpus,
            holder=self.holder,
            policy=STEM,
            reason=f"reserved by {self.origin}",
            uid=self.uid,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The last valid reservation of each source."""

    reserves: tuple[Reserve, ...] = ()

    def of(self, source: str) -> Reserve | None:
        """The reserve of one source."""
        return next((reserve for reserve in self.reserves if reserve.source == source), None)


def recall(state: State) -> tuple[ledger.Claim, ...]:
    """Claims of the checkpoint, used while the policy fails before its first decision."""
    return tuple(
        reserve.claim(reserve.cpus)
        for reserve in state.reserves
        if reserve.cpus and reserve.use is not Use.SHARED
    )


def decide(
    now: snapshot.Snapshot, _past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Grant each wish, or keep the last valid one and say why."""
    granting = _Granting(now, settings, state)
    for request in reservation_requests.of(now, settings.cpus, settings.quantity_milli):
        granting.take(request)
    granting.why["reserved"] = str(granting.granted)
    for reserve in granting.reserves:
        granting.why[reserve.source] = f"{reserve.cpus or 'nothing'} ({reserve.origin})"
    return granting.decided(
        State(reserves=tuple(granting.reserves)),
        claims=tuple(granting.claims),
        pools=tuple(granting.pools),
    )


class _RefusedError(Exception):
    """A wish that cannot be granted; the text says why."""


class _Granting(proposals.Proposal):
    """Builds one decision."""

    def __init__(self, now: snapshot.Snapshot, settings: Settings, before: State) -> None:
        super().__init__(STEM, now)
        self.machine = now.topology
        self.settings = settings
        self.before = before
        self.granted = cpuset.CPUSet()
        self.reserves: list[Reserve] = []
        self.claims: list[ledger.Claim] = []
        self.pools: list[ledger.Pool] = []

    def take(self, request: reservation_requests.Found) -> None:
        """Grant one wish, or keep the last valid one."""
        if isinstance(request, Wish):
            self._wish(request)
        elif isinstance(request, reservation_requests.Broken):
            self._refused(request.source, request.why)
        else:
            self._again(request.source)

    def _wish(self, wish: Wish) -> None:
        if wish.problem:
            self.say("ReservedCPUsPartial", wish.problem, reason="UnknownApplyPolicy")
        try:
            cpus = self._grant(wish)
            if wish.use is not Use.SHARED:
                self._bounded(wish.origin, cpus)
        except _RefusedError as refusal:
            self._refused(wish.source, str(refusal))
            return
        row = Reserve(
            source=wish.source,
            origin=wish.origin,
            cpus=cpus,
            use=wish.use,
            count=wish.count,
            holder=wish.holder,
            uid=wish.uid,
        )
        self._keep(row)

    def _grant(self, wish: Wish) -> cpuset.CPUSet:
        if wish.cpus is not None:
            return self._listed(wish.origin, wish.cpus)
        if not wish.count:
            return cpuset.CPUSet()
        row = self.before.of(wish.source)
        same = row is not None and row.count == len(row.cpus) == wish.count
        if row is not None and same and row.cpus <= self.now.allowed:
            return row.cpus
        packed = packing.take(self.machine, self.now.allowed, wish.count)
        if packed is None:
            most = len(self.now.allowed)
            raise _RefusedError(
                f"{wish.origin} requests {wish.count} CPUs, workloads can have {most}"
            )
        return packed

    def _listed(self, origin: str, cpus: cpuset.CPUSet) -> cpuset.CPUSet:
        known = self.machine.present or self.machine.online
        missing = cpus - known
        problem = f"{origin} names CPUs {missing}, which this machine does not have"
        if cpus and not cpus & known:
            raise _RefusedError(problem)
        if missing:
            self.say("ReservedCPUsPartial", problem, reason="UnknownCPUs")
        return cpus & known

    def _bounded(self, origin: str, cpus: cpuset.CPUSet) -> None:
        every = self.granted | cpus
        if cpus and not self.now.allowed - every:
            what = f"would reserve every CPU ({every})"
            raise _RefusedError(f"{origin} {what} and leave none for workloads")
        most = self.settings.max_cpus
        if most is not None and len(every) > most and not cpus <= self.granted:
            raise _RefusedError(
                f"{origin} would reserve {len(every)} CPUs, limits.maxCpus is {most}"
            )

    def _refused(self, source: str, why: str) -> None:
        kept = self._again(source)
        stays = f"CPUs {kept} stay reserved" if kept else "nothing is reserved for it"
        self.say("ReservedCPUsInvalid", f"{why}; {stays}", reason="Refused")

    def _again(self, source: str) -> cpuset.CPUSet:
        """Grant what the source had last, where that is still possible."""
        row = self.before.of(source)
        if row is None:
            return cpuset.CPUSet()
        try:
            if row.use is not Use.SHARED:
                self._bounded(row.origin, row.cpus)
        except _RefusedError:
            # It stays remembered: CPUs may come back.
            self.reserves.append(row)
            return cpuset.CPUSet()
        self._keep(row)
        return row.cpus

    def _keep(self, row: Reserve) -> None:
        self.reserves.append(row)
        cpus = row.cpus
        if not cpus:
            return
        if row.use is not Use.MACHINE:
            self.pools += (
                ledger.Pool(kind="SYSTEM", cpus=part, socket=socket, node=node)
                for socket, node, part in self.machine.by_node(cpus & self.machine.online)
                if not row.uid
            )
        if row.use is not Use.SHARED:
            self.granted |= cpus
            self.claims.append(row.claim(cpus))


POLICY = declaration.Policy(
    stem=STEM,
    summary="CPUs reserved for the machine",
    protects="it keeps CPUs free for the machine",
    decide=decide,
    settings=Settings(),
    state=State(),
    kept=State,
    schema=2,
    recall=recall,
    timeless=True,
)
