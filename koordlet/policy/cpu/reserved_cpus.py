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
"""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.history import series
from koordlet.model import cpuset, decision, ledger, snapshot, topology
from koordlet.model.record import dataclass
from koordlet.policy.cpu import packing, reservation_requests
from koordlet.policy.cpu.reservation_requests import Use, Wish

STEM = "reserved_cpus"
ANNOTATION = reservation_requests.ANNOTATION
#: Version of ``State``: a checkpoint of another one is discarded.
SCHEMA = 2


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
    #: A CPU list; also those that are offline now.
    cpus: str
    #: A value of ``Use``.
    use: str
    #: The number that it was chosen for; 0 for a list.
    count: int = 0
    holder: str = "node"
    uid: str = ""

    def claim(self, cpus: cpuset.CPUSet) -> ledger.Claim:
        """The ledger claim of this reserve."""
        return ledger.Claim(
            owner=ledger.Owner.RESERVED if self.use == Use.MACHINE.value else ledger.Owner.SYSTEM,
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


_TEXTS = ("source", "origin", "cpus", "use", "holder", "uid")


def revive(body: Mapping[str, object]) -> State:
    """Load the state from a checkpoint; ``ValueError`` when it is malformed."""
    rows = body.get("reserves")
    if not isinstance(rows, list):
        raise ValueError("reserves is no list")
    return State(reserves=tuple(_row(row) for row in rows))


def _row(body: object) -> Reserve:
    if not isinstance(body, dict) or not all(isinstance(body.get(name), str) for name in _TEXTS):
        raise ValueError(f"no reservation: {body!r:.80}")
    count = body.get("count")
    if isinstance(count, bool) or not isinstance(count, int):
        raise ValueError(f"no number: {count!r:.80}")
    texts = {name: str(body[name]) for name in _TEXTS}
    Use(texts["use"])
    texts["cpus"] = str(cpuset.CPUSet.parse(texts["cpus"]))
    return Reserve(**texts, count=count)


def recall(state: State) -> tuple[ledger.Claim, ...]:
    """Claims of the checkpoint, used while the policy fails before its first decision."""
    return tuple(
        reserve.claim(cpuset.CPUSet.parse(reserve.cpus))
        for reserve in state.reserves
        if reserve.cpus and reserve.use != Use.SHARED.value
    )


def decide(
    now: snapshot.Snapshot, past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Grant each wish, or keep the last valid one and say why."""
    del past
    granting = _Granting(now.topology, settings, state)
    for found in reservation_requests.of(now, settings.cpus, settings.quantity_milli):
        granting.take(found)
    return decision.Decision(
        next_state=State(reserves=tuple(granting.reserves)),
        conditions=tuple(granting.conditions),
        claims=tuple(granting.claims),
        pools=tuple(granting.pools),
        explanation={
            "reserved": str(granting.granted),
            **{
                reserve.source: f"{reserve.cpus or 'nothing'} ({reserve.origin})"
                for reserve in granting.reserves
            },
        },
    )


class _RefusedError(Exception):
    """A wish that cannot be granted; the text says why."""


class _Granting:
    """Builds one decision."""

    def __init__(self, machine: topology.Topology, settings: Settings, before: State) -> None:
        self.machine = machine
        self.settings = settings
        self.before = before
        self.granted = cpuset.CPUSet()
        self.reserves: list[Reserve] = []
        self.claims: list[ledger.Claim] = []
        self.pools: list[ledger.Pool] = []
        self.conditions: list[decision.Condition] = []

    def take(self, found: reservation_requests.Found) -> None:
        """Grant one wish, or keep the last valid one."""
        if isinstance(found, Wish):
            self._wish(found)
            return
        if isinstance(found, reservation_requests.Broken):
            self._refused(found.source, found.why)
            return
        self._again(found.source)

    def _wish(self, wish: Wish) -> None:
        if wish.problem:
            self._say("ReservedCPUsPartial", "UnknownApplyPolicy", wish.problem)
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
            cpus=str(cpus),
            use=wish.use.value,
            count=wish.count,
            holder=wish.holder,
            uid=wish.uid,
        )
        self._keep(row, cpus)

    def _grant(self, wish: Wish) -> cpuset.CPUSet:
        if wish.cpus is not None:
            return self._listed(wish.origin, wish.cpus)
        if not wish.count:
            return cpuset.CPUSet()
        row = self.before.of(wish.source)
        if row is not None and row.count == wish.count:
            cpus = cpuset.CPUSet.parse(row.cpus)
            if cpus <= self.machine.online and len(cpus) == wish.count:
                return cpus
        packed = packing.take(self.machine, self.machine.online, wish.count)
        if packed is None:
            online = len(self.machine.online)
            raise _RefusedError(f"{wish.origin} requests {wish.count} CPUs, {online} are online")
        return packed

    def _listed(self, origin: str, cpus: cpuset.CPUSet) -> cpuset.CPUSet:
        known = self.machine.present or self.machine.online
        missing = cpus - known
        problem = f"{origin} names CPUs {missing}, which this machine does not have"
        if cpus and not cpus & known:
            raise _RefusedError(problem)
        if missing:
            self._say("ReservedCPUsPartial", "UnknownCPUs", problem)
        return cpus & known

    def _bounded(self, origin: str, cpus: cpuset.CPUSet) -> None:
        every = self.granted | cpus
        if cpus and not self.machine.online - every:
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
        self._say("ReservedCPUsInvalid", "Refused", f"{why}; {stays}")

    def _again(self, source: str) -> cpuset.CPUSet:
        """Grant what the source had last, where that is still possible."""
        row = self.before.of(source)
        if row is None:
            return cpuset.CPUSet()
        cpus = cpuset.CPUSet.parse(row.cpus)
        try:
            if row.use != Use.SHARED.value:
                self._bounded(row.origin, cpus)
        except _RefusedError:
            # It stays remembered: CPUs may come back.
            self.reserves.append(row)
            return cpuset.CPUSet()
        self._keep(row, cpus)
        return cpus

    def _keep(self, row: Reserve, cpus: cpuset.CPUSet) -> None:
        self.reserves.append(row)
        if not cpus:
            return
        if row.use != Use.MACHINE.value:
            self.pools += (
                ledger.Pool(kind="SYSTEM", cpus=part, socket=socket, node=node)
                for socket, node, part in self.machine.by_node(cpus & self.machine.online)
                if not row.uid
            )
        if row.use != Use.SHARED.value:
            self.granted |= cpus
            self.claims.append(row.claim(cpus))

    def _say(self, name: str, reason: str, message: str) -> None:
        self.conditions.append(
            decision.Condition(type=name, status=True, reason=reason, message=message)
        )
