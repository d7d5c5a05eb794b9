"""The DisruptionRates in force and their ledgers: whether one pod more may be disrupted.

Covers: which rates cover a pod, those that priorities imply, the floor, windows, ``minUp``,
``minGap``, the parts of components. Does not cover: all other checks (``limiter``), statuses.

Rules:
1. All rates that cover a pod must allow, and all are debited.
2. A percentage of a count is of the expected pods, rounded down, at least 1; of ``minUp`` rounded
   up.
3. A pod that is not up is no loss to ``minUp``. One whose eviction is asked for is not up.
4. A rate that cannot be read is as it was before; one that never could limits nobody.
5. With configured defaults, a controller that no rate covers has one by its pods' highest priority.
   It is kept in memory alone.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Container, Iterator

from koordlet.kubeapi.disruption_rates import CountOrPercent, Disruption, DisruptionRate, RateSpec
from koordlet.model import moment
from koordlet.model.record import dataclass
from koordlet.scheduler.disruption import workloads
from koordlet.scheduler.disruption.answers import Asker, Defer, Deny
from koordlet.scheduler.disruption.ledger import DisruptionLedger
from koordlet.scheduler.disruption.settings import DisruptionSettings, RateFloor
from koordlet.scheduler.disruption.workloads import PodsByClass, Signature, WorkloadIndex
from koordlet.scheduler.objects import terms
from koordlet.scheduler.objects.pods import Pod, PodClass

#: Controllers with an implied rate that are remembered.
_MOST_IMPLIED = 4096
#: Seconds after which an accepted eviction of a pod that still runs is credited.
LAPSE_SECONDS = 600.0
_HOUR, _DAY = 3600.0, 86400.0


@dataclass(slots=True, eq=False)
class HeldRate:
    """A rate that is in force, with a ledger for each of its groups of pods."""

    namespace: str
    name: str
    spec: RateSpec | None
    #: ``None``: implied by a priority.
    stored: DisruptionRate | None = None
    #: By controller; one for all under the empty text.
    ledgers: dict[str, DisruptionLedger] = dataclasses.field(default_factory=dict)

    def ledger(self, group: str) -> DisruptionLedger:
        """The ledger of a group of pods."""
        return self.ledgers.setdefault(group, DisruptionLedger())

    def __str__(self) -> str:
        if self.stored is None:
            return f"the default rate of {self.namespace}/{self.name}"
        return f"DisruptionRate {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The pods of one ledger at a moment."""

    expected: int
    #: Up, less those whose eviction is asked for.
    up: int
    priority: int


@dataclass(frozen=True, slots=True)
class Group:
    """The pods that share a ledger, and what limits them."""

    rate: HeldRate
    #: What is in force: the specification, up to the floor.
    spec: RateSpec
    ledger: DisruptionLedger
    standing: Standing

    def allowed(self, count: CountOrPercent, *, background: bool = False) -> int:
        """How many disruptions a count allows."""
        whole = count.floor(self.standing.expected)
        reserve = self.spec.reserve
        kept = reserve.number * whole // 100 if reserve.percent else reserve.number
        return max(0, whole - kept) if background else whole


class RateBook:
    """All rates of the cluster."""

    def __init__(self, settings: DisruptionSettings, known: WorkloadIndex) -> None:
        self._settings, self._workloads = settings, known
        self._rates: dict[str, dict[str, HeldRate]] = {}
        self._implied: OrderedDict[Signature, HeldRate] = OrderedDict()
        #: Rates of objects whose ledger or specification changed: their status may differ.
        self.touched: dict[str, None] = {}

    def configure(self, settings: DisruptionSettings) -> None:
        """Take other defaults and another floor; the status of each rate may differ."""
        self._settings = settings
        self.touched |= {f"{held.namespace}/{held.name}": None for held in self}

    def __iter__(self) -> Iterator[HeldRate]:
        for rates in self._rates.values():
            yield from rates.values()

    def get(self, key: str) -> HeldRate | None:
        """The rate of an object, by ``namespace/name``."""
        namespace, _, name = key.partition("/")
        return self._rates.get(namespace, {}).get(name)

    def put(self, stored: DisruptionRate) -> None:
        """Add or update a DisruptionRate (rule 4)."""
        rates = self._rates.setdefault(stored.namespace, {})
        held = rates.get(stored.name)
        if held is None:
            held = rates[stored.name] = HeldRate(stored.namespace, stored.name, stored.spec)
        held.stored = stored
        if stored.spec is not None:
            held.spec = stored.spec
        for entry in stored.disruptions:
            controlled = held.spec is not None and held.spec.selector is None
            held.ledger(entry.controller if controlled else "").merge((entry,))
        self.touched[stored.key] = None

    def drop(self, key: str) -> None:
        """Delete a DisruptionRate."""
        namespace, _, name = key.partition("/")
        self._rates.get(namespace, {}).pop(name, None)
        if not self._rates.get(namespace):
            self._rates.pop(namespace, None)

    # Which rates cover a pod.

    def covering(self, pod_class: PodClass) -> list[tuple[HeldRate, str]]:
        """The rates that cover a class, each with the group of its pods."""
        signature = self._workloads.signature(pod_class)
        covering = []
        for held in self._rates.get(pod_class.namespace, {}).values():
            if held.spec is None:
                continue
            if held.spec.selector is not None:
                if terms.holds(held.spec.selector, pod_class.labels):
                    covering.append((held, ""))
            elif signature is not None:
                covering.append((held, str(signature)))
        if not covering and signature is not None and self._settings.defaults:
            implied = self._imply(signature)
            covering += [] if implied is None else [(implied, str(signature))]
        return covering

    def _imply(self, signature: Signature) -> HeldRate | None:
        pods = workloads.each(self._workloads.members(signature))
        priority = max((pod.priority for pod in pods), default=0)
        several = self._settings.defaults
        row = next((row for row in several if row.priority_at_least <= priority), None)
        if row is None:
            return None
        held = self._implied.pop(signature, None)
        if held is None:
            held = HeldRate(signature.namespace, str(signature), None)
        held.spec = RateSpec(limits=(row.limit,))
        self._implied[signature] = held
        while len(self._implied) > _MOST_IMPLIED:
            self._implied.popitem(last=False)
        return held

    def pods(self, held: HeldRate, group: str = "") -> PodsByClass:
        """The placed pods of a rate, or of one controller below it."""
        spec = held.spec
        if spec is None:
            return {}
        if group:
            kind, _, name = group.partition("/")
            return self._workloads.members(Signature(held.namespace, kind, name))
        return {
            pod_class: dict(pods)
            for pod_class, pods in self._workloads.of(held.namespace).items()
            if (
                self._workloads.signature(pod_class) is not None
                if spec.selector is None
                else terms.holds(spec.selector, pod_class.labels)
            )
        }

    def controllers(self, held: HeldRate) -> set[str]:
        """The controllers of a rate's pods."""
        signatures = map(self._workloads.signature, self.pods(held))
        return {str(signature) for signature in signatures if signature is not None}

    def group(self, held: HeldRate, group: str, leaving: Container[str] = ()) -> Group:
        """The pods of one ledger, with what limits them; ``leaving``: UIDs that are not up."""
        pods = self.pods(held, group)
        standing = Standing(
            expected=self._workloads.expected(pods),
            up=sum(pod.up and pod.uid not in leaving for pod in workloads.each(pods)),
            priority=max((pod.priority for pod in workloads.each(pods)), default=0),
        )
        spec = clipped(held.spec or RateSpec(), self._settings.floor, standing)
        return Group(held, spec, held.ledger(group), standing)

    def groups(self, pod: Pod, leaving: Container[str] = ()) -> list[Group]:
        """The groups that a pod is in, for one question."""
        return [self.group(held, group, leaving) for held, group in self.covering(pod.pod_class)]

    # The ledgers.

    def record(self, pod: Pod, entry: Disruption) -> bool:
        """Debit a disruption to all rates that cover a pod; whether it is new to one of them."""
        fresh = False
        for held, group in self.covering(pod.pod_class):
            if held.ledger(group).add(entry):
                self._touch(held)
                fresh = True
        return fresh

    def answered(self, uid: str, *, accepted: bool) -> None:
        """An eviction that was asked for was accepted, or refused: then nothing is debited."""
        for held in (*self, *self._implied.values()):
            for ledger in held.ledgers.values():
                if ledger.accept(uid) if accepted else ledger.withdraw(uid):
                    self._touch(held)

    def settle(self, held: HeldRate, now: float) -> list[str]:
        """Credit what lapsed and forget what is old; the UIDs of what lapsed."""
        spec, lapsed = held.spec or RateSpec(), []
        for group, ledger in held.ledgers.items():
            late = {
                entry.uid
                for entry in ledger.counted(0.0, shadow=False)
                if now - entry.at > LAPSE_SECONDS and not entry.asked
            }
            pods = workloads.each(self.pods(held, group)) if late else ()
            for uid in sorted(late.intersection(pod.uid for pod in pods if not pod.terminating)):
                ledger.lapse(uid)
                lapsed.append(uid)
            ledger.prune(now - max(spec.longest, _HOUR))
        if lapsed:
            self._touch(held)
        return lapsed

    def implied(self) -> list[HeldRate]:
        """The rates that no object says."""
        return list(self._implied.values())

    def _touch(self, held: HeldRate) -> None:
        if held.stored is not None:
            self.touched[held.stored.key] = None


# The checks of one group.


def refusal(group: Group, pod: Pod, asker: Asker, now: float) -> Deny | Defer | None:
    """Why a rate refuses a disruption; ``None``: it allows it."""
    if asker.cause in group.spec.exempt:
        return None
    return spent(group, asker, now) or below_min_up(group, pod) or too_soon(group, asker, now)


def spent(group: Group, asker: Asker, now: float) -> Deny | None:
    """Why a window is full; ``None``: none is."""
    for limit in group.spec.limits:
        allowed = group.allowed(limit.count, background=asker.background)
        used = group.ledger.counted(now - limit.window_seconds, shadow=asker.shadow)
        if len(used) < allowed:
            continue
        until = used[allowed - 1].at + limit.window_seconds if allowed else None
        when = "" if until is None else f"; the next is allowed at {moment.spell(until)}"
        return Deny(
            "RateSpent",
            f"{group.rate} allows {allowed} in {spelled(limit.window_seconds)},"
            f" and {len(used)} happened{when}",
            until,
        )
    return None


def below_min_up(group: Group, pod: Pod | None = None) -> Defer | None:
    """Why too few pods would be up (rule 3); ``pod`` is ``None`` for any that is up."""
    if group.spec.min_up is None or (pod is not None and not pod.up):
        return None
    least = group.spec.min_up.ceiling(group.standing.expected)
    if group.standing.up - 1 >= least:
        return None
    return Defer(
        "BelowMinUp",
        f"{group.rate} needs {least} of {group.standing.expected} pods up, and"
        f" {group.standing.up} are: wait until more are ready",
    )


def too_soon(group: Group, asker: Asker, now: float) -> Deny | None:
    """Why the last disruption is too recent; ``None``: it is not."""
    if not group.spec.min_gap_seconds:
        return None
    recent = group.ledger.counted(now - group.spec.min_gap_seconds, shadow=asker.shadow)
    if not recent:
        return None
    until = recent[0].at + group.spec.min_gap_seconds
    return Deny(
        "MinGap",
        f"{group.rate} wants {spelled(group.spec.min_gap_seconds)} between two disruptions: the"
        f" next is allowed at {moment.spell(until)}",
        until,
    )


def share_refusal(
    group: Group, asker: Asker, settings: DisruptionSettings, now: float
) -> Deny | None:
    """Why a component has used its part of a rate up; ``None``: it has not."""
    own = settings.limiter.shares.get(asker.component)
    parts = [] if own is None else [(own, frozenset({asker.component}))]
    if asker.background:
        parts.append((settings.aggressiveness.share, settings.limiter.background))
    for limit in group.spec.limits:
        whole = group.allowed(limit.count)
        entries = group.ledger.counted(now - limit.window_seconds, shadow=asker.shadow)
        for percent, components in parts:
            part = max(1, whole * percent // 100) if whole else 0
            used = [entry for entry in entries if component(entry.by) in components]
            if len(used) >= part:
                until = used[part - 1].at + limit.window_seconds if part else None
                return Deny(
                    "Share",
                    f"{', '.join(sorted(components))} may use {part} of the {whole} of"
                    f" {group.rate} in {spelled(limit.window_seconds)}, and {len(used)} are used",
                    until,
                )
    return None


def component(by: str) -> str:
    """The component of an asker such as ``descheduler/low-node-load``."""
    return by.partition("/")[0]


def clipped(spec: RateSpec, floor: RateFloor | None, standing: Standing) -> RateSpec:
    """What of a specification is honoured: no more strictness than the floor leaves."""
    if floor is None or standing.priority >= floor.priority_at_least:
        return spec
    limits, gap, min_up = spec.limits, spec.min_gap_seconds, spec.min_up
    if floor.min_count_per_day:
        limits = tuple(
            dataclasses.replace(
                limit,
                count=_at_least(limit.count, limit.window_seconds, floor, standing.expected),
            )
            for limit in limits
        )
        gap = min(gap, _DAY / floor.min_count_per_day)
    most = floor.max_min_up
    if most is not None and min_up is not None:
        expected = standing.expected
        min_up = most if min_up.ceiling(expected) > most.ceiling(expected) else min_up
    return dataclasses.replace(spec, limits=limits, min_gap_seconds=gap, min_up=min_up)


def _at_least(
    count: CountOrPercent, window: float, floor: RateFloor, expected: int
) -> CountOrPercent:
    """A count that allows as many a day as the floor wants."""
    wanted = -(-floor.min_count_per_day * int(window) // int(_DAY))
    return count if count.floor(expected) >= wanted else CountOrPercent(wanted)


def spelled(seconds: float) -> str:
    """A window as people write it."""
    whole = int(seconds)
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if whole >= size and whole % size == 0:
            return f"{whole // size}{unit}"
    return f"{seconds:g}s"
