"""LoadAwareScheduling: what nodes use, with what their newest pods will use, not what is requested.

Covers: thresholds, estimates, expiry, the score. Does not cover: measuring (the nodes' agents).

Rules, the peer's:
1. The use of a node is what it reported, and for each pod that the report cannot know well the part
   of its estimate that is missing in it, and the estimate of the pod that is tried.
2. A report cannot know well a pod that it does not name (unless it tells of the node as a whole),
   one that came after the report's interval began, and one in the time after its start for which
   the arguments or its annotations ask for an estimate.
3. Production uses what pods use that are there, are production and are reported as such; another
   pod of production counts by its estimate.
4. A node without a NodeMetric is not judged. One whose report is too old is refused, passes or is
   judged by it, as the arguments say, and scores nothing.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Mapping
from typing import Any

from koordlet.kubeapi import node_annotations
from koordlet.model import moment
from koordlet.model.record import dataclass
from koordlet.scheduler import framework
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.events import ActionType
from koordlet.scheduler.objects import json_annotations, peer_keys, requests, wire
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.objects.usage import NodeUsage
from koordlet.scheduler.objects.wire import BadObjectError, Body

EXPIRED = "node(s) nodeMetric expired"
_DEFAULTS = {requests.CPU: 250, requests.MEMORY: 200 << 20}
#: Whose pods count as nothing where they ask for nothing.
_FRUGAL = "koord-mid"
_PROD = "koord-prod"
#: What best-effort pods call their resources.
_NAMES = {
    "koord-batch": {
        requests.CPU: "kubernetes.io/batch-cpu",
        requests.MEMORY: "kubernetes.io/batch-memory",
    },
    "koord-mid": {
        requests.CPU: "kubernetes.io/mid-cpu",
        requests.MEMORY: "kubernetes.io/mid-memory",
    },
}
#: The node's annotation, as the peer's structure spells it.
_THRESHOLDS = {
    **dict.fromkeys(("usageThresholds", "prodUsageThresholds")),
    "aggregatedUsage": dict.fromkeys(
        (
            *("usageThresholds", "usageAggregationType", "usageAggregatedDuration"),
            *("scoreAggregationType", "scoreAggregatedDuration"),
        )
    ),
}
#: Of seconds: more is no number of them.
_DIGITS = 12
Shares = Mapping[str, int]
Statistic = tuple[str, int]
_LAST = ("", 0)


@dataclass(frozen=True, slots=True)
class Aggregated:
    """Statistics over a while instead of the last value; empty: not used."""

    thresholds: Shares
    #: Which statistic, over how many seconds: against the thresholds, and for the score.
    used: Statistic = _LAST
    scored: Statistic = _LAST

    @property
    def filters(self) -> bool:
        """Whether they stand for the last value; all of them may be 0, which is off."""
        return bool(self.thresholds and self.used[0])


@dataclass(frozen=True, slots=True)
class UsageThresholds:
    """Shares in percent by resource, in the three groups of the peer."""

    usage: Shares
    prod: Shares
    aggregated: Aggregated


@dataclass(frozen=True, slots=True)
class EstimationWindow:
    """For how many seconds a pod counts by its estimate, whatever is reported; 0: not at all."""

    scheduled: int
    initialized: int

    def end(self, pod: Pod) -> float:
        """Until when; an initialized pod has waited for whatever the first number is for."""
        if self.initialized > 0 and pod.initialized:
            return pod.initialized + self.initialized
        return pod.assigned + self.scheduled if self.scheduled > 0 and pod.assigned else 0.0

    def of(self, pod_class: PodClass) -> EstimationWindow:
        """The same with what a pod says itself."""
        own = pod_class.annotations
        return EstimationWindow(
            _whole(own.get(peer_keys.LOAD_AFTER_SCHEDULED), self.scheduled),
            _whole(own.get(peer_keys.LOAD_AFTER_INITIALIZED), self.initialized),
        )


class LoadAwareScheduling(framework.Plugin):
    """Nodes that are busy, and nodes that will be."""

    name = "LoadAwareScheduling"
    listens = ActionType.NODE | ActionType.NODE_FEED | ActionType.POD_GONE

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(args)
        #: By name of the node; given by whoever reads the objects.
        self.usages: dict[str, NodeUsage] = {}
        #: Seconds since 1970.
        self.wall: Callable[[], float] = time.time
        self.filters_expired = wire.flag(args, "filterExpiredNodeMetrics", default=True)
        self.ignores_expired = wire.flag(args, "enableScheduleWhenNodeMetricsExpired")
        self.expiration = wire.integer(args, "nodeMetricExpirationSeconds", 180)
        dominant = wire.integer(args, "dominantResourceWeight")
        weights = {} if dominant else {requests.CPU: 1, requests.MEMORY: 1}
        self.weights = _shares(args, "resourceWeights") or weights
        self.dominant = dominant
        usual = {requests.CPU: 65, requests.MEMORY: 95}
        self.limits = UsageThresholds(
            _shares(args, "usageThresholds") or usual,
            _shares(args, "prodUsageThresholds"),
            _aggregated(wire.mapping(args, "aggregated")),
        )
        self.scores_prod = wire.flag(args, "scoreAccordingProdUsage")
        self.with_system = wire.flag(args, "prodUsageIncludeSys")
        factors = {requests.CPU: 85, requests.MEMORY: 70}
        self.factors = {**factors, **_shares(args, "estimatedScalingFactors")}
        self.customised = wire.flag(args, "allowCustomizeEstimation")
        self.windows = EstimationWindow(
            wire.integer(args, "estimatedSecondsAfterPodScheduled"),
            wire.integer(args, "estimatedSecondsAfterInitialized"),
        )

    def filter(self, pod_class: PodClass, columns: Columns) -> framework.Filter | None:
        # Who belongs to a node, and may be its load, is not sent away by it.
        resident = pod_class.reserving is not None and pod_class.reserving.resident
        if not self.usages or pod_class.owner[0] == "DaemonSet" or resident:
            return None
        prod, own = pod_class.band == _PROD, self.estimate(pod_class)

        def refuses(node: Node, row: int) -> framework.Verdict | None:
            usage = self.usages.get(node.name)
            if usage is None:
                return None
            reason = self._excess(node, usage, columns, row, own, prod=prod)
            return framework.Verdict((reason,), resolvable=True) if reason else None

        return framework.ByNode(columns, refuses)

    def _excess(
        self, node: Node, usage: NodeUsage, columns: Columns, row: int, own: Shares, *, prod: bool
    ) -> str:
        """Why a node is refused: its use exceeds a threshold, or its report is too old."""
        if self.filters_expired and self.expired(usage):
            return "" if self.ignores_expired else EXPIRED
        if not usage.reported:
            return ""
        limits = self.limits_of(node)
        prod = prod and any(limits.prod.values())
        many = limits.aggregated
        shares, statistic, words = limits.prod if prod else limits.usage, _LAST, "usage"
        if not prod and many.filters:
            shares, statistic, words = many.thresholds, many.used, "aggregated usage"
        if not any(shares.values()):
            return ""
        used = self.used(usage, columns, row, statistic, prod=prod)
        room = raw_allocatable(node)
        for name, share in sorted(shares.items()):
            total = room.get(name, 0)
            much = used.get(name, 0) + own.get(name, 0)
            # Per cent, rounded half up.
            if share and total and (200 * much + total) // (2 * total) > share:
                return f"node(s) {name} {words} exceed threshold"
        return ""

    def score(self, pod_class: PodClass, columns: Columns) -> framework.Score | None:
        if not self.usages:
            return None
        prod = self.scores_prod and pod_class.band == _PROD
        own, statistic = self.estimate(pod_class), _LAST if prod else self.limits.aggregated.scored
        # The scarcest is looked for among all that the arguments name, also without a weight.
        weights = {name: self.weights.get(name, 0) for name in self._named}

        def rates(node: Node, row: int) -> int:
            """The share that would be left."""
            usage = self.usages.get(node.name)
            if usage is None or self.expired(usage) or not usage.reported:
                return 0
            used = self.used(usage, columns, row, statistic, prod=prod)
            room, scores = raw_allocatable(node), []
            for name in weights:
                total = room.get(name, 0)
                left = total - used.get(name, 0) - own.get(name, 0)
                scores.append(left * framework.MAX_SCORE // total if left > 0 and total else 0)
            counts = [*weights.values(), self.dominant]
            summed = sum(map(operator.mul, counts, [*scores, min(scores)]))
            return summed // sum(counts) if sum(counts) else 0

        return framework.ScoreByNode(columns, rates)

    @property
    def _named(self) -> frozenset[str]:
        """All resources that the arguments speak of."""
        groups = (self.limits.usage, self.limits.prod, self.limits.aggregated.thresholds)
        return frozenset({*_DEFAULTS, *self.weights, *self.factors}.union(*groups))

    def expired(self, usage: NodeUsage) -> bool:
        """Whether a report is too old to be believed."""
        return usage.updated is None or self.wall() - usage.updated >= self.expiration

    def estimate(self, pod_class: PodClass) -> dict[str, int]:
        """What a pod will use."""
        factors = {**self.factors, **(_custom(pod_class) if self.customised else {})}
        names = _NAMES.get(pod_class.band, {})
        amounts = {}
        for name in sorted({*self.weights, *self.factors}):
            spelled = names.get(name, name)
            asked = pod_class.requests.real.get(spelled, 0)
            limit = pod_class.requests.limits.get(spelled, 0)
            most = max(asked, limit)
            if most == 0:
                amounts[name] = 0 if pod_class.band == _FRUGAL else _DEFAULTS.get(name, 0)
                continue
            # Rounded half up, in integers.
            value = (2 * most * factors.get(name, 100) + 100) // 200
            amounts[name] = min(value, limit) if limit else value
        return amounts

    def used(
        self, usage: NodeUsage, columns: Columns, row: int, statistic: Statistic, *, prod: bool
    ) -> dict[str, int]:
        """What a node uses, with what is missing of its newest pods."""
        base, blind = self._base(usage, statistic, prod=prod)
        total = dict(base)
        fresh = (usage.updated or 0.0) - usage.interval
        for pod in columns.pods[row].values():
            # Without amounts it is not named.
            known = usage.pods.get(pod.key) or None
            misnamed = prod and known is not None and pod.key not in usage.prod
            if prod and pod.pod_class.band != _PROD:
                continue
            if prod and known is not None and not misnamed:
                _add(total, known)
            recent = not pod.assigned or pod.assigned > fresh or self._unsettled(pod, usage)
            measured = (known is not None or usage.whole) and not misnamed
            if measured and not recent and not blind:
                continue
            counted = {} if blind or misnamed or known is None else known
            missing = self.estimate(pod.pod_class)
            _add(total, {name: max(0, missing[name] - counted.get(name, 0)) for name in missing})
        return total

    def _unsettled(self, pod: Pod, usage: NodeUsage) -> bool:
        """Whether a pod has to count by its estimate for a while yet."""
        windows = self.windows.of(pod.pod_class) if self.customised else self.windows
        return windows.end(pod) > (usage.updated or 0.0)

    def _base(
        self, usage: NodeUsage, statistic: Statistic, *, prod: bool
    ) -> tuple[Mapping[str, int], bool]:
        """The use apart from single pods; whether a statistic that was asked for is missing."""
        if prod:
            return (usage.system if self.with_system else {}), False
        kind, seconds = statistic
        if not kind:
            return usage.node, False
        if seconds:
            reported = usage.windows.get(seconds, {}).get(kind)
            return (reported, False) if reported else ({}, True)
        # The longest that has it; where none has, the last value.
        having = [length for length, window in usage.windows.items() if window.get(kind)]
        return (usage.windows[max(having)][kind] if having else usage.node), False

    def limits_of(self, node: Node) -> UsageThresholds:
        """The node's own limits replace those of the arguments, group by group."""
        body = json_annotations.body(node.annotations.get(peer_keys.THRESHOLDS), _THRESHOLDS)
        if not body:
            return self.limits
        try:
            own = _aggregated(wire.mapping(body, "aggregatedUsage"))
            return UsageThresholds(
                _shares(body, "usageThresholds") or self.limits.usage,
                _shares(body, "prodUsageThresholds") or self.limits.prod,
                own if own.filters else self.limits.aggregated,
            )
        except BadObjectError:
            return self.limits


def raw_allocatable(node: Node) -> Mapping[str, int]:
    """What the machine has, where its amounts were amplified."""
    raw = node_annotations.raw_allocatable(node.annotations, [])
    if not raw:
        return node.allocatable
    return {**node.allocatable, **requests.within(raw, requests.MOST_ALLOCATABLE)}


def _aggregated(body: Body) -> Aggregated:
    return Aggregated(
        _shares(body, "usageThresholds"),
        (wire.text(body, "usageAggregationType"), _seconds(body, "usageAggregatedDuration")),
        (wire.text(body, "scoreAggregationType"), _seconds(body, "scoreAggregatedDuration")),
    )


def _seconds(body: Body, key: str) -> int:
    spelled = body.get(key)
    if spelled is None:
        return 0
    try:
        return int(moment.duration(spelled))
    except ValueError as error:
        raise BadObjectError(f"{key}: {error}") from error


def _shares(body: Body, key: str) -> dict[str, int]:
    if body.get(key) is None:
        return {}
    shares = {str(name): wire.integer(wire.mapping(body, key), name) for name in body[key]}
    if any(not 0 <= share <= 10_000 for share in shares.values()):
        raise BadObjectError(f"{key}: a number from 0 to 10000 is needed")
    return shares


def _custom(pod_class: PodClass) -> Shares:
    body = json_annotations.body(pod_class.annotations.get(peer_keys.LOAD_FACTORS))
    return {
        str(name): value
        for name, value in body.items()
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10_000
    }


def _whole(text: str | None, usual: int) -> int:
    """A number of seconds that an annotation has; else what is usual."""
    spelled = text is not None and text.isascii() and text.isdecimal() and len(text) < _DIGITS
    return int(text) if text is not None and spelled else usual


def _add(total: dict[str, int], amounts: Mapping[str, int]) -> None:
    for name, much in amounts.items():
        total[name] = total.get(name, 0) + much
