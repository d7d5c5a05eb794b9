"""batch_resources: batch and mid resources that this node offers.

    batch = capacity - margin - max(system used, reserved) - what prod and mid workloads use

Covers: the peer's sums for CPU and memory, old metrics, which strategy counts.
Does not cover: the formulas of one resource, parts of NUMA nodes and third parties
(``batch_formulas``), writing the node object
(whoever writes objects reads ``Decision.offer``), limits of single pods (``batch_limits``), what
best-effort work may use now (``adaptive``, ``cpu_suppress``).

Rules, as the peer's manager has them:
1. ``usage`` takes off what is used; ``request`` (memory only) what was asked for, and of the system
   what is reserved; ``maxUsageRequest`` the larger of both, pod by pod.
2. High priority is every band but batch and free, with the default of the class and whatever the
   class. A pod that was not measured counts with its request; an LSE pod with its CPU request and
   its memory use. Reserved is the larger of capacity less allocatable and the node's annotation.
3. Use is the mean of the aggregate duration (5 min). While less than half of that was seen, or
   workloads or the annotation are not known, the last offer stays, over a restart as well; after
   ``degradeTimeMinutes`` nothing is offered.
4. ``formula: seed`` takes allocatable for the base; otherwise it is capacity.
5. ``limits`` are parts of the base that no offer exceeds.
6. The ConfigMap decides whether, and how, this is computed; without one the file does. Over both
   lie the node's annotation and labels. Where there is a NodeSLO, whoever made it computes.
7. ``midReclaimMode: static`` offers a fixed part of the base as mid.

* Formula: batch = capacity - margin - max(system used, reserved) - use of prod and mid workloads
* Writes: no file: the Node's `status.capacity` and `status.allocatable`, and NodeResourceTopology,
  where objects are written
* See: `bestEffort.offered` in `/api/v1/node`, the offer below *CPU use over time*
* Off: nothing more is offered; the Node keeps the last amounts until somebody changes them
* More: best-effort.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from koordlet.history import series
from koordlet.model import (
    best_effort,
    cgroup,
    decision,
    meter,
    node_ratios,
    nodeslo,
    qos,
    resources,
    snapshot,
    strategies,
)
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.best_effort import batch_formulas, groups, usage
from koordlet.policy.framework import declaration, saved_state

STEM = "batch_resources"

#: Means of five minutes of every workload are not computed each second.
_EVERY = 15.0
#: Seconds between two offers that are kept for a restart: each one would be a write of each.
_KEPT_EVERY = 60.0
#: NUMA nodes that are worth telling apart.
_SEVERAL = 2
#: The source of strategies that a controller has made; it reads the node by itself.
_OBJECT = "NodeSLO"
_NAMES = {
    name: tuple(band[name] for band in resources.BY_BAND.values())
    for name in (resources.CPU, resources.MEMORY)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The operator's settings; a cluster object replaces the first."""

    strategy: strategies.Colocation = nodeslo.DEFAULTS.colocation
    #: The base is allocatable.
    seed: bool = False
    #: No offer is above these parts of the base.
    max_cpu_percent: int | None = None
    max_memory_percent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The last offer that was computed, and when (monotonic)."""

    amounts: Mapping[str, int] = field(default_factory=dict)
    original: Mapping[str, int] = field(default_factory=dict)
    zones: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    at: float | None = None
    wall: float = 0.0
    #: When this process was asked for the first time.
    since: float | None = field(default=None, metadata=saved_state.UNKEPT)
    #: The offer that is in the checkpoint: a minute old at most.
    kept: State | None = field(default=None, metadata=saved_state.UNKEPT)

    def again(self) -> best_effort.Offer:
        """The last offer once more."""
        return best_effort.Offer(
            amounts=self.amounts, original=self.original, zones=self.zones, wall=self.wall
        )

    def after(self, old: State) -> State:
        """This new offer, together with the one in the checkpoint."""
        before = old if old.kept is None else old.kept
        assert self.at is not None  # noqa: S101 -- it was computed just now
        fresh = before.at is not None and 0 <= self.at - before.at < _KEPT_EVERY
        return replace(self, kept=before if fresh else self)


def decide(
    now: snapshot.Snapshot, past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Decide the offer at this moment."""
    strategy = in_force(now, settings)
    if not strategy.enable:
        return decision.Decision(next_state=State(), explanation={"offer": "not enabled"})
    if state.at is not None and 0 <= now.at - state.at < _EVERY:
        return decision.Decision(next_state=state, offer=state.again())
    unread = usage.annotated(now, resources.MEMORY)
    if isinstance(unread, str):
        held = _held(now, strategy, state, f"not known: {unread}")
        return replace(held, conditions=(_condition("ReservationIgnored", unread),))
    by_name = {name: measured(now, past, name, strategy, seed=settings.seed) for name in _NAMES}
    missing = [name for name, seen in by_name.items() if seen is None]
    if not missing:
        missing = [source.name for source in now.sources if source.aged(now.at)]
    if not missing and groups.any_stale(now.pods):
        missing = ["the pods of this node"]
    if missing:
        return _held(now, strategy, state, f"not known: {', '.join(missing)}")
    seen = [seen for seen in by_name.values() if seen is not None]
    original, reasons = _amounts(now, seen, strategy, settings)
    amounts, ignored = batch_formulas.less_third_parties(
        original, now.node.annotations.get(batch_formulas.ALLOCATIONS, "")
    )
    tolerance = strategy.resource_diff_threshold or 0.0
    zones = batch_formulas.steady(_zones(now, seen, strategy, settings), state.zones, tolerance)
    offer = best_effort.Offer(
        amounts=amounts, original=original, zones=zones, wall=now.wall, reasons=reasons
    )
    made = State(amounts=amounts, original=original, zones=zones, at=now.at, wall=now.wall)
    return decision.Decision(
        next_state=made.after(state),
        offer=offer,
        conditions=(_condition("ThirdPartiesIgnored", ignored),) if ignored else (),
        explanation=reasons,
    )


def in_force(now: snapshot.Snapshot, settings: Settings) -> strategies.Colocation:
    """The strategy in force (rule 6)."""
    if now.slo is None:
        return strategies.overlay(settings.strategy, now.node.colocation)
    if now.slo.source == _OBJECT:
        return now.slo.colocation
    return strategies.overlay(now.slo.colocation, now.node.colocation)


def _amounts(
    now: snapshot.Snapshot,
    seen: Sequence[Seen],
    strategy: strategies.Colocation,
    settings: Settings,
    zone: int | None = None,
) -> tuple[dict[str, int], dict[str, str]]:
    """Batch and mid amounts of the node or of one NUMA node, with reasons."""
    amounts: dict[str, int] = {}
    reasons: dict[str, str] = {}
    for each in seen:
        of_zone = None if zone is None else batch_formulas.parts(now, each.name)[zone]
        sums = each.sums(zone, of_zone)
        batch, mid = _NAMES[each.name]
        is_cpu = each.name == resources.CPU
        most = settings.max_cpu_percent if is_cpu else settings.max_memory_percent
        amounts[batch], reasons[batch] = batch_formulas.offered(sums, each.name, strategy, most)
        amounts[mid], reasons[mid] = batch_formulas.mid(sums, each.name, strategy)
    amounts[resources.BATCH_CPU] = int(amounts[resources.BATCH_CPU] * _ratio(now))
    return amounts, reasons


def _zones(
    now: snapshot.Snapshot,
    seen: Sequence[Seen],
    strategy: strategies.Colocation,
    settings: Settings,
) -> dict[int, dict[str, int]]:
    """Amounts of each NUMA node; empty on a machine with one node."""
    nodes = [node.node for node in now.topology.nodes]
    if len(nodes) < _SEVERAL:
        return {}
    return {node: _amounts(now, seen, strategy, settings, node)[0] for node in nodes}


def _condition(kind: str, message: str) -> decision.Condition:
    return decision.Condition(type=kind, reason=STEM, message=message)


def _held(
    now: snapshot.Snapshot, strategy: strategies.Colocation, state: State, why: str
) -> decision.Decision[State]:
    """Rule 3: the last offer, until it is too old to be one.

    Where none is known, as in the first process of a boot, none is made: what stands there stays.
    """
    patience = 60.0 * (strategy.degrade_time_minutes or 15)
    if state.at is None:
        state = replace(state, since=now.at if state.since is None else state.since)
        if now.at - (state.since or now.at) <= patience:
            return decision.Decision(next_state=state, explanation={"offer": why})
    if state.at is None or now.at - state.at > patience:
        offer = best_effort.Offer(wall=state.wall, degraded=why)
        return decision.Decision(next_state=state, offer=offer, explanation={"offer": why})
    held = {"offer": f"last offer kept: {why}"}
    return decision.Decision(next_state=state, offer=state.again(), explanation=held)


def _ratio(now: snapshot.Snapshot) -> float:
    """Batch CPU is counted in CPUs of the usual speed."""
    return node_ratios.parse(now.node.annotations.get(node_ratios.NORMALIZATION, "")) or 1.0


# The sums ----------------------------------------------------------------------------------------


def measured(
    now: snapshot.Snapshot,
    past: series.History,
    name: str,
    strategy: strategies.Colocation,
    *,
    seed: bool,
) -> Seen | None:
    """Measurements of one resource; ``None`` where the node's own use is unknown."""
    is_cpu = name == resources.CPU
    scale = 1000.0 if is_cpu else 1.0
    seconds = float(strategy.metric_aggregate_duration_seconds or 300)
    cached = strategy.metric_memory_collect_policy == "usageWithPageCache"
    of_pod = meter.CPU if is_cpu else meter.MEMORY if cached else meter.MEMORY_ANON
    of_node = meter.CPU if is_cpu else meter.MEMORY if cached else meter.WORKING_SET
    whole = past.node.window("", of_node, now.at, seconds)
    capacity = _capacity(now, past, name)
    if whole is None or capacity is None:
        return None
    use = _use(now, past, of_pod, seconds, scale)
    away, lost = 0.0, 0
    if is_cpu:
        away = past.cpus_average(now.outside, now.at, seconds)
        lost = capacity - now.cpu_capacity
    node = max(int((whole.average - away) * scale), 0)
    low = (qos.Band.BATCH, qos.Band.FREE)
    high = [pod for pod in now.pods if pod.active and _band(pod) not in low]
    # In a cluster, what runs beside Kubernetes is part of the system.
    beside = [pod for pod in high if pod.kube_qos is None and now.slo is not None]
    rest = max(node - sum(use.values()), 0)
    return Seen(
        name=name,
        base=(now.node.allocatable.get(name, capacity) if seed else capacity) - lost,
        reserved=usage.reserved(now, name, capacity, seed=seed),
        node=node,
        system=rest + sum(use.get(pod.uid, 0) for pod in beside),
        reclaimable=int(past.predicted.reclaimable.get(name, 0.0) * scale),
        workloads=tuple((pod, use.get(pod.uid)) for pod in high if pod not in beside),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Measurements of one resource, workload by workload."""

    name: str
    base: int
    reserved: int
    node: int
    system: int
    reclaimable: int
    #: High-priority workloads and what each uses; ``None``: not measured.
    workloads: tuple[tuple[pods.Pod, int | None], ...]

    def sums(
        self, zone: int | None = None, of_zone: batch_formulas.ZonePart | None = None
    ) -> batch_formulas.Sums:
        """Sums of the node, or of one of its NUMA nodes."""
        whole = of_zone or batch_formulas.ZonePart()
        used = requested = either = prod = 0
        for pod, measured_use in self.workloads:
            part = 1.0 if zone is None else batch_formulas.share(pod, self.name, zone, whole)
            asked = pod.requests.get(self.name, 0)
            used += int(_used(pod, measured_use, self.name) * part)
            requested += int(asked * part)
            # The peer leaves a pod without metrics out of this sum; here its request counts.
            either += int(max(measured_use or 0, asked) * part)
            prod += int(asked * part) if _band(pod) is qos.Band.PROD else 0
        return batch_formulas.Sums(
            base=whole.of(self.base),
            reserved=whole.of(self.reserved),
            node=whole.of(self.node),
            system=whole.of(self.system),
            used=used,
            requested=requested,
            either=either,
            prod_requested=prod,
            reclaimable=whole.of(self.reclaimable),
        )


def _use(
    now: snapshot.Snapshot, past: series.History, what: meter.Meter, seconds: float, scale: float
) -> dict[str, int]:
    """Use of each workload; a workload with too short a history is missing."""
    use: dict[str, int] = {}
    own = {pod.group for pod in now.pods if pod.group is not None}
    for pod in now.pods:
        if pod.group is not None and own.isdisjoint(cgroup.ancestors(pod.group)):
            window = past.groups.window(pod.group, what, now.at, seconds)
            if window is not None:
                use[pod.uid] = int(window.average * scale)
    return use


def _band(pod: pods.Pod) -> qos.Band:
    return pod.band or qos.Band.default_of(pod.qos)


def _used(pod: pods.Pod, amount: int | None, name: str) -> int:
    if amount is None or (pod.qos is qos.Qos.LSE and name == resources.CPU):
        return pod.requests.get(name, 0)
    return amount


def _capacity(now: snapshot.Snapshot, past: series.History, name: str) -> int | None:
    if name == resources.CPU:
        return now.declared_cpu
    if declared := now.node.capacity.get(name):
        return declared
    total = past.node.last("", meter.MEMORY_TOTAL)
    return None if total is None else int(total)


POLICY = declaration.Policy(
    stem=STEM,
    summary="batch and mid resources that the node offers",
    protects="it bounds what the node offers to best-effort work",
    decide=decide,
    settings=Settings(),
    state=State(),
    kept=State,
    keep=lambda state: state.kept or state,
)
