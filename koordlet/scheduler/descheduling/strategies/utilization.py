"""Strategies by what is requested of nodes: LowNodeUtilization and HighNodeUtilization.

Covers: both, with requests or with the use that agents report. Does not cover: Koordinator's rules
about real use (``low_node_load``).

Rules:
1. Under-used is a node that is not cordoned and has at most the threshold of every resource that is
   given; over-used one that has more than the target of any. The rest is left alone.
2. Pods leave over-used nodes while all under-used ones together have room below their targets
   (HighNodeUtilization: leave under-used nodes while the others have room).
3. Nodes go by the mean of their percentages. (The peer adds milli-CPU and bytes, so that memory
   decides alone.)
4. Where reports count, a node is left alone whose report is missing, older than LowNodeLoad's, or
   without a resource of the thresholds. (The peer does nothing at all then.)
5. A query of Prometheus tells shares of nodes and nothing of pods: one leaves a node in a round, or
   as many as ``evictionLimits.node`` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from koordlet.model.record import dataclass
from koordlet.scheduler.descheduling import order, prometheus_source, selection
from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.descheduling.fields import Fields
from koordlet.scheduler.descheduling.limits import EvictionAnswer
from koordlet.scheduler.descheduling.prometheus_source import QueryAnswer
from koordlet.scheduler.descheduling.state import is_cordoned
from koordlet.scheduler.descheduling.strategies import load_settings
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.objects import requests, terms

BASIC = (requests.CPU, requests.MEMORY, requests.PODS)
#: What has a threshold where a query tells the use of nodes.
METRIC = "MetricResource"
SOURCES = KUBERNETES_METRICS, PROMETHEUS = "KubernetesMetrics", "Prometheus"
_Amounts = dict[str, float]


@dataclass(slots=True)
class NodeUse:
    """One node: what is used of what."""

    row: int
    used: _Amounts
    capacity: _Amounts

    def percent(self, name: str) -> float:
        """The use of a resource; of one that the node does not have, none."""
        capacity = self.capacity.get(name, 0)
        return 100.0 * self.used.get(name, 0) / capacity if capacity else 0.0

    def mean(self, names: Sequence[str]) -> float:
        """The mean of the percentages."""
        return sum(map(self.percent, names)) / len(names)


def thresholds(fields: Fields, key: str) -> Mapping[str, float]:
    """Percentages by resource."""
    percentages = fields.percentages(key)
    if not percentages:
        fields.fail(key, "no resource threshold is configured", "name cpu, memory or pods")
    return percentages


def same_resources(
    fields: Fields, low: tuple[str, Mapping[str, float]], high: tuple[str, Mapping[str, float]]
) -> None:
    """Refuse thresholds of different resources, or a low one above a high one."""
    for bounds, other in ((low, high), (high, low)):
        if missing := sorted(bounds[1].keys() - other[1].keys()):
            fields.fail(
                other[0],
                f"{missing[0]} has a value in {bounds[0]} and none here",
                "name the same resources in both",
            )
    for name, value in low[1].items():
        if value > high[1][name]:
            fields.fail(
                f"{low[0]}.{name}",
                f"{value:g} is above {high[0]}.{name}, which is {high[1][name]:g}",
            )


def deviated(uses: Sequence[NodeUse], given: Mapping[str, float], sign: int) -> dict[str, float]:
    """Thresholds around the mean of the nodes that have the resource, within 0 and 100."""
    around = {}
    for name, value in given.items():
        several = [use.percent(name) for use in uses if use.capacity.get(name)]
        mean = sum(several) / len(several) if several else 0.0
        around[name] = min(100.0, max(0.0, mean + sign * value))
    return around


class _Utilization:
    """What both have in common."""

    name = ""

    def __init__(self, fields: Fields) -> None:
        self._least = fields.count("numberOfNodes")
        self._namespaces = selection.choice(fields, "evictableNamespaces", exclude_only=True)
        #: Whether use is what agents report, and not what pods request.
        self._measured = False
        #: What a Prometheus is asked; empty: nothing.
        self.query = ""
        self._low = thresholds(fields, "thresholds")
        self._names = tuple(dict.fromkeys((*self._low, *BASIC)))

    def _uses(self, scene: rounds.Scene) -> list[NodeUse]:
        """The nodes in view; where reports count, those whose agent sends one (rule 4)."""
        if self.query:
            shares = self._answer(scene).shares
            return [
                NodeUse(row, {METRIC: float(int(100 * shares[name]))}, {METRIC: 100.0})
                for row in scene.rows
                if (name := scene.state.node(row).name) in shares
            ]
        columns = scene.state.columns
        lines = {name: columns.resource(name) for name in self._names}
        uses = []
        for row in scene.rows:
            capacity = {name: float(columns.allocatable[line, row]) for name, line in lines.items()}
            used = {name: float(columns.requested[line, row]) for name, line in lines.items()}
            if self._measured:
                measured = self._reported(scene, row)
                if measured is None:
                    continue
                used = {**measured, requests.PODS: used[requests.PODS]}
            uses.append(NodeUse(row, used, capacity))
        return uses

    def _answer(self, scene: rounds.Scene) -> QueryAnswer:
        return scene.state.answers.get(self.query, prometheus_source.NOT_ASKED)

    def _why_unknown(self, scene: rounds.Scene) -> str:
        """Why nobody knows what of a node is used."""
        if self.query:
            why = self._answer(scene).error
            return f"of {PROMETHEUS}: {why or 'the query has no sample of them'}"
        wanted = ", ".join(name for name in self._names if name != requests.PODS)
        return f"no report that is new enough has {wanted}"

    def _reported(self, scene: rounds.Scene, row: int) -> _Amounts | None:
        """What the agent of a node reports; ``None``: nothing that counts (rule 4)."""
        usage = scene.state.usages.get(scene.state.node(row).name)
        if usage is None or usage.updated is None:
            return None
        if scene.state.now.wall - usage.updated >= load_settings.EXPIRES_SECONDS:
            return None
        return None if self._lacks(usage.node) else self._amounts(usage.node)

    def _lacks(self, measured: Mapping[str, float]) -> bool:
        """Whether a resource of the thresholds is not measured."""
        return any(name not in measured for name in self._low if name != requests.PODS)

    def _amounts(self, of: Mapping[str, float]) -> _Amounts:
        return {name: float(of.get(name, 0)) for name in self._names}

    def _pod_use(self, scene: rounds.Scene, resident: Resident) -> _Amounts | None:
        """What a pod takes along; ``None`` where nobody measures it."""
        if self.query:
            return {}
        asked: Mapping[str, float] = resident.pod.pod_class.requests.real
        if self._measured:
            usage = scene.state.usages.get(resident.pod.node)
            measured = None if usage is None else usage.pods.get(resident.pod.key)
            if measured is None or self._lacks(measured):
                return None
            asked = measured
        return {**self._amounts(asked), requests.PODS: 1.0}

    def _drain(
        self,
        scene: rounds.Scene,
        sources: Iterable[NodeUse],
        targets: Sequence[NodeUse],
        left: _Amounts,
        reason: Callable[[NodeUse], str],
        *,
        goes_on: Callable[[NodeUse], bool],
        wanted: Callable[[Resident], bool] = lambda _: True,
        most: int | None = None,
    ) -> rounds.Intents:
        """Evict from each source, least important first, while there is reason and room."""
        taints = [scene.state.node(target.row).taints for target in targets]
        for source in sources:
            several = order.least_first(scene.evictable(source.row, wanted), scene.judge)
            count = 0
            for resident in several:
                if not goes_on(source) or any(amount <= 0 for amount in left.values()):
                    break
                if most is not None and count >= most:
                    break
                taken = self._pod_use(scene, resident)
                if taken is None or not self._namespaces.admits(resident.pod.namespace):
                    continue
                if not any(_bears(resident, each) for each in taints):
                    continue
                answer = yield rounds.Intent(resident, reason(source))
                if answer is EvictionAnswer.NODE_LIMIT:
                    break
                if answer.evicted:
                    count += 1
                    for name in left:
                        source.used[name] -= taken.get(name, 0)
                        left[name] -= taken.get(name, 0)


def _bears(resident: Resident, taints: Sequence[terms.Taint]) -> bool:
    """Whether a pod tolerates all taints that keep pods off a node."""
    tolerations = resident.pod.pod_class.tolerations
    return all(
        terms.tolerated(tolerations, taint) for taint in taints if taint.effect in terms.HARD
    )


class LowNodeUtilization(_Utilization):
    """From nodes above the targets to nodes below all thresholds."""

    name = "LowNodeUtilization"

    def __init__(self, fields: Fields) -> None:
        super().__init__(fields)
        self._high = thresholds(fields, "targetThresholds")
        self._deviates = fields.flag("useDeviationThresholds")
        if self._deviates:
            same_resources(
                fields,
                ("thresholds", dict.fromkeys(self._low, 0.0)),
                ("targetThresholds", self._high),
            )
        else:
            same_resources(fields, ("thresholds", self._low), ("targetThresholds", self._high))
        limits = fields.child("evictionLimits")
        self._per_node = limits.whole("node")
        limits.done()
        metrics = fields.child("metricsUtilization")
        source = metrics.read("source", _source, "")
        served = metrics.flag("metricsServer")
        self._measured = bool(served or source == KUBERNETES_METRICS)
        if served and source:
            metrics.fail("metricsServer", "source takes its place", "leave metricsServer out")
        if source == PROMETHEUS:
            self._ask(fields, metrics.child("prometheus"))
        elif metrics.get("prometheus") is not None and source:
            metrics.fail("prometheus", f"does not count with source {source}", "leave it out")
        metrics.done()
        fields.done()

    def _ask(self, fields: Fields, prometheus: Fields) -> None:
        """Take use from a query, which says nothing of pods (rule 5)."""
        self.query = prometheus.text("query")
        if not self.query:
            prometheus.fail("query", f"is needed with source {PROMETHEUS}")
        prometheus.done()
        for key, given in (("thresholds", self._low), ("targetThresholds", self._high)):
            if [*given] != [METRIC]:
                fields.fail(key, f"{METRIC} alone has a threshold with source {PROMETHEUS}")
        self._names = (METRIC,)
        if self._per_node is None:
            self._per_node = 1

    def intents(self, scene: rounds.Scene) -> rounds.Intents:
        """Classify all nodes, then drain the fullest first."""
        uses = self._uses(scene)
        if unknown := len(scene.rows) - len(uses):
            scene.note(f"{unknown} nodes are left alone: {self._why_unknown(scene)}")
        if not uses:
            return
        low, high = dict(self._low), dict(self._high)
        if self._deviates:
            low, high = deviated(uses, low, -1), deviated(uses, high, 1)
        under = [
            use
            for use in uses
            if not is_cordoned(scene.state.node(use.row))
            and all(use.percent(name) <= value for name, value in low.items())
        ]
        chosen = {use.row for use in under}
        over = [
            use
            for use in uses
            if use.row not in chosen
            and any(use.percent(name) > value for name, value in high.items())
        ]
        scene.relieve(len(over))
        if idle := _idle(len(under), len(over), len(uses), self._least):
            scene.note(idle)
            return
        bound = {use.row: _bounds(use, high) for use in (*under, *over)}
        left = {
            name: sum(bound[use.row][name] - use.used[name] for use in under)
            for name in self._names
        }
        over.sort(key=lambda use: -use.mean(tuple(high)))
        yield from self._drain(
            scene, over, under, left,
            lambda use: _over(use, high),
            goes_on=lambda use: any(
                use.used[name] > bound[use.row][name] for name in self._names
            ),
            most=self._per_node,
        )  # fmt: skip


def _source(value: object, _problems: list[str]) -> str:
    if value not in SOURCES:
        raise ValueError(f"expected one of {', '.join(SOURCES)}, found {value!r}")
    return str(value)


def _bounds(use: NodeUse, high: Mapping[str, float]) -> _Amounts:
    """The amounts up to which a node may be used, whole ones."""
    return {
        name: float(int(capacity * high[name] / 100)) if name in high else capacity
        for name, capacity in use.capacity.items()
    }


def _over(use: NodeUse, high: Mapping[str, float]) -> str:
    spelled = ", ".join(
        f"{name} {use.percent(name):.2f}% > {value:.2f}%"
        for name, value in high.items()
        if use.percent(name) > value
    )
    return f"node is overutilized: {spelled or 'amounts above the target'}"


def _idle(under: int, over: int, every: int, least: int) -> str:
    """Why nothing is to be done."""
    if not under:
        return "no node is underutilized"
    if under <= least:
        return f"{under} nodes are underutilized, which is no more than numberOfNodes ({least})"
    if under == every:
        return "all nodes are underutilized"
    return "" if over else "all nodes are under target utilization"


class HighNodeUtilization(_Utilization):
    """Empties under-used nodes, so that they can go; needs a scheduler that packs."""

    name = "HighNodeUtilization"

    def __init__(self, fields: Fields) -> None:
        super().__init__(fields)
        modes = fields.texts("evictionModes")
        if stray := [mode for mode in modes if mode != "OnlyThresholdingResources"]:
            fields.fail("evictionModes", f"{stray[0]!r} is not OnlyThresholdingResources")
        self._only = bool(modes)
        fields.done()

    def intents(self, scene: rounds.Scene) -> rounds.Intents:
        """The emptiest first."""
        uses = self._uses(scene)
        under: list[NodeUse] = []
        rest: list[NodeUse] = []
        for use in uses:
            below = all(use.percent(name) <= value for name, value in self._low.items())
            (under if below else rest).append(use)
        targets = [use for use in rest if not is_cordoned(scene.state.node(use.row))]
        idle = _idle(len(under), len(targets), len(uses), self._least)
        if idle:
            scene.note(idle if targets or not under else "no node has room for more pods")
            return
        left = {
            name: sum(use.capacity[name] - use.used[name] for use in targets)
            for name in self._names
        }
        under.sort(key=lambda use: use.mean(tuple(self._low)))
        yield from self._drain(
            scene, under, targets, left,
            lambda _use: "node is underutilized, and its pods have room elsewhere",
            goes_on=lambda _use: True,
            wanted=self._wanted,
        )  # fmt: skip

    def _wanted(self, resident: Resident) -> bool:
        if not self._only:
            return True
        asked = resident.pod.pod_class.requests.real
        return any(asked.get(name, 0) for name in self._low)
