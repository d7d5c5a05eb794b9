"""NodeMetric's status: what node, pods and host applications use, over which windows. Pure.

Covers: reading the wish (``CollectPolicy``), the status. Does not cover: when it is written
(``report.writing``), computing windows (``history``).

Rules:
1. A window that its samples do not fill to the half is an empty map, as the peer writes it.
2. Memory is without page cache, the peer's default, also where another policy is wished: of pods
   what is anonymous or unevictable, of the node what is not available.
3. An unknown use is never zero: while less than half of a window is known of the node there is
   nothing to report (``lacking``), and what stands there keeps its old time, by which others judge
   it. A window that is known to half and not as a whole
   is told as short, by a condition of the Node.
4. Of pods and applications the average over the plain window; without one they are left out:
   a pod that was never measured is not a pod that uses nothing.
"""

from __future__ import annotations

import enum
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from koordlet.history import series, shares, space, window
from koordlet.model import duration, meter, moment, pod, qos
from koordlet.model.record import dataclass
from koordlet.report import documents, quantities, scopes, view

_QUANTILES = tuple((f"p{part * 100:.0f}", part) for part in window.REPORTED)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_FLOORS = {"reportIntervalSeconds": 30, "aggregateDurationSeconds": 60}

#: What is remembered is shorter than a day: longer windows say nothing, numbers without end hurt.
_LONGEST, _MOST_WINDOWS = 24 * 3600, 16

#: What is missing beyond this part makes a window short.
_WHOLE = 0.9

Rows = Iterator[dict[str, Any]]


class Lacking(enum.Enum):
    """Completeness of the node's window."""

    NOTHING = "the node's use is known"
    PART = "the node's use is known for only a part of the window"
    ALL = "the node's use is unknown yet: NodeMetric keeps its last values and time"


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectPolicy:
    """Collection settings of a NodeMetric's spec."""

    report_seconds: int = 60
    window_seconds: int = 300
    durations: tuple[int, ...] = (300, 600, 1800)


def wish(body: Mapping[str, Any]) -> CollectPolicy:
    """Read the settings from the spec; invalid values get their defaults."""
    policy = documents.part(body, "spec", "metricCollectPolicy")
    plain = CollectPolicy()
    listed = documents.part(policy, "nodeAggregatePolicy").get("durations")
    asked = listed if isinstance(listed, list) else []
    durations = tuple(seconds for text in asked[:_MOST_WINDOWS] if (seconds := _seconds(text)))
    return CollectPolicy(
        report_seconds=_floored(policy, "reportIntervalSeconds", plain.report_seconds),
        window_seconds=_floored(policy, "aggregateDurationSeconds", plain.window_seconds),
        durations=durations or plain.durations,
    )


def node(now: view.ReportView, past: series.History, want: CollectPolicy) -> dict[str, Any]:
    """The part about the node."""
    at, seconds = now.snapshot.at, want.window_seconds
    whole = _Subject(past.node, "node")
    system = _Subject(past.shares, "shares", shares.SYSTEM)
    numa = (
        (node.node, _Subject(past.numa, "numa", str(node.node)).average(at, seconds))
        for node in sorted(now.snapshot.topology.nodes, key=lambda node: node.node)
    )
    return {
        "nodeUsage": whole.average(at, seconds),
        "systemUsage": system.average(at, seconds),
        "aggregatedNodeUsages": [whole.aggregated(at, each) for each in want.durations],
        "aggregatedSystemUsages": [system.aggregated(at, each) for each in want.durations],
        "numaUsages": [
            {"numaNodeID": number, "nodeUsage": used} for number, used in numa if used["resources"]
        ],
    }


def lacking(now: view.ReportView, past: series.History, want: CollectPolicy) -> Lacking:
    """Completeness of the node's window."""
    cpu = past.node.window("", meter.CPU, now.snapshot.at, want.window_seconds)
    memory = past.node.window("", meter.WORKING_SET, now.snapshot.at, want.window_seconds)
    if cpu is None or memory is None:
        return Lacking.ALL
    whole = min(cpu.covered, memory.covered) >= _WHOLE * want.window_seconds
    return Lacking.NOTHING if whole else Lacking.PART


def pods(now: view.ReportView, past: series.History, want: CollectPolicy) -> Rows:
    """One row for each pod that was measured, by namespace and name; lazily, they may be many."""
    for workload in sorted(now.snapshot.pods, key=lambda pod: (pod.namespace, pod.name)):
        if workload.active and workload.namespace and not scopes.is_host_application(workload):
            used = _of(workload, past, now.snapshot.at, want)
            if used["resources"]:
                names = {"namespace": workload.namespace, "name": workload.name}
                yield {**names, **_classes(workload), "podUsage": used}


def applications(now: view.ReportView, past: series.History, want: CollectPolicy) -> Rows:
    """One row for each host application that was measured."""
    for workload in sorted(now.snapshot.pods, key=lambda pod: pod.name):
        if scopes.is_host_application(workload):
            used = _of(workload, past, now.snapshot.at, want)
            if used["resources"]:
                yield {"name": workload.name, **_classes(workload), "usage": used}


def status(
    now: view.ReportView,
    measured: Mapping[str, Any],
    pod_rows: list[Any],
    application_rows: list[Any],
) -> dict[str, Any]:
    """The whole status of parts that were made before."""
    made: dict[str, Any] = {
        "updateTime": moment.spell(now.snapshot.wall),
        "nodeMetric": measured,
        "podsMetric": pod_rows,
        "hostApplicationMetric": application_rows,
    }
    expected = (
        ("prodReclaimableMetric", now.predicted.reclaimable),
        ("prodPeakMetric", now.predicted.peak),
    )
    for key, amounts in expected:
        if amounts:
            texts = {
                name: _text(amounts[name], what.unit)
                for name, what in quantities.resources("node")
                if name in amounts
            }
            made[key] = {"resource": {"resources": texts}}
    return made


@dataclass(frozen=True, slots=True)
class _Subject:
    """A subject whose resources are reported."""

    where: space.Space
    table: str
    name: str = ""

    def average(self, at: float, seconds: float) -> dict[str, Any]:
        return self._amounts(self._windows(at, seconds), lambda used: used.average)

    def aggregated(self, at: float, seconds: int) -> dict[str, Any]:
        windows = self._windows(at, seconds)
        usage = {"avg": self._amounts(windows, lambda used: used.average)}
        for name, part in _QUANTILES:
            usage[name] = self._amounts(windows, operator.methodcaller("quantile", part))
        return {"duration": duration.text(seconds), "usage": usage if windows else {}}

    def _windows(self, at: float, seconds: float) -> list[tuple[str, str, window.Window]]:
        """Resource, unit and window of what is known."""
        several = (
            (name, what.unit, self.where.window(self.name, what, at, seconds))
            for name, what in quantities.resources(self.table)
        )
        return [(name, unit, used) for name, unit, used in several if used is not None]

    def _amounts(
        self,
        windows: Iterable[tuple[str, str, window.Window]],
        read: Callable[[window.Window], float],
    ) -> dict[str, Any]:
        return {"resources": {name: _text(read(used), unit) for name, unit, used in windows}}


def _of(workload: pod.Pod, past: series.History, at: float, want: CollectPolicy) -> dict[str, Any]:
    subject = _Subject(past.groups, "groups", workload.group or "")
    return subject.average(at, want.window_seconds) if workload.group else {"resources": {}}


def _classes(workload: pod.Pod) -> dict[str, str]:
    band = workload.band or qos.Band.default_of(workload.qos)
    return {"priority": band.label, "qos": workload.qos.value}


def _text(amount: float, unit: str) -> str:
    """An amount as Kubernetes spells it."""
    return f"{int(amount * 1000)}m" if unit == "cores" else str(int(amount))


def _seconds(text: object) -> int:
    """A Go duration in whole seconds; 0 for what is none."""
    if not isinstance(text, str) or not re.fullmatch(f"(?:{_DURATION.pattern})+", text):
        return 0
    whole = sum(float(number) * _SECONDS[unit] for number, unit in _DURATION.findall(text))
    return int(min(whole, _LONGEST))


def _floored(settings: Mapping[str, Any], key: str, plain: int) -> int:
    value = settings.get(key)
    good = isinstance(value, int) and not isinstance(value, bool)
    return min(max(_FLOORS[key], value), _LONGEST) if good and isinstance(value, int) else plain
