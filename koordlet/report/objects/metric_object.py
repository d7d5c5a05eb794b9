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
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from koordlet.history import shares, window
from koordlet.model import meter, pod, qos
from koordlet.model.record import dataclass
from koordlet.report import usage_families, view

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
    policy = _mapping(_mapping(body, "spec"), "metricCollectPolicy")
    plain = CollectPolicy()
    listed = _mapping(policy, "nodeAggregatePolicy").get("durations")
    asked = listed if isinstance(listed, list) else []
    durations = tuple(seconds for one in asked[:_MOST_WINDOWS] if (seconds := _seconds(one)))
    return CollectPolicy(
        report_seconds=_floored(policy, "reportIntervalSeconds", plain.report_seconds),
        window_seconds=_floored(policy, "aggregateDurationSeconds", plain.window_seconds),
        durations=durations or plain.durations,
    )


class Windows(Protocol):
    """One kind of subjects in the past."""

    def window(
        self, subject: str, what: meter.Meter, now: float, seconds: float
    ) -> window.Window | None:
        """Value of a meter over the window; ``None`` if too little is known."""


class MetricHistory(Protocol):
    """Used part of ``history.series.History``."""

    @property
    def groups(self) -> Windows:
        """Values by cgroup path."""

    @property
    def node(self) -> Windows:
        """One subject, the empty name."""

    @property
    def numa(self) -> Windows:
        """Values by NUMA node number, as text."""

    @property
    def shares(self) -> Windows:
        """Values by QoS class."""


def node(now: view.ReportView, past: MetricHistory, want: CollectPolicy) -> dict[str, Any]:
    """The part about the node."""
    at = now.snapshot.at
    whole = _Subject(past.node, "", meter.CPU, meter.WORKING_SET)
    system = _Subject(past.shares, shares.SYSTEM, meter.CPU_SHARE, meter.MEMORY_SHARE)
    numa: list[dict[str, Any]] = [
        {
            "numaNodeID": one.node,
            "nodeUsage": _Subject(past.numa, str(one.node)).average(at, want.window_seconds),
        }
        for one in sorted(now.snapshot.topology.nodes, key=lambda one: one.node)
    ]
    numa = [one for one in numa if one["nodeUsage"]["resources"]]
    return {
        "nodeUsage": whole.average(at, want.window_seconds),
        "systemUsage": system.average(at, want.window_seconds),
        "aggregatedNodeUsages": [whole.aggregated(at, each) for each in want.durations],
        "aggregatedSystemUsages": [system.aggregated(at, each) for each in want.durations],
        "numaUsages": numa,
    }


def lacking(now: view.ReportView, past: MetricHistory, want: CollectPolicy) -> Lacking:
    """Completeness of the node's window."""
    several = [
        past.node.window("", one, now.snapshot.at, want.window_seconds)
        for one in (meter.CPU, meter.WORKING_SET)
    ]
    known = [one for one in several if one is not None]
    if len(known) < len(several):
        return Lacking.ALL
    whole = min(one.covered for one in known) >= _WHOLE * want.window_seconds
    return Lacking.NOTHING if whole else Lacking.PART


def pods(now: view.ReportView, past: MetricHistory, want: CollectPolicy) -> Rows:
    """One row for each pod that was measured, by namespace and name; lazily, they may be many."""
    for one in sorted(now.snapshot.pods, key=lambda one: (one.namespace, one.name)):
        if one.active and one.namespace and not usage_families.is_host_application(one):
            used = _of(one, past, now.snapshot.at, want)
            if used["resources"]:
                names = {"namespace": one.namespace, "name": one.name}
                yield {**names, **_classes(one), "podUsage": used}


def applications(now: view.ReportView, past: MetricHistory, want: CollectPolicy) -> Rows:
    """One row for each host application that was measured."""
    for one in sorted(now.snapshot.pods, key=lambda one: one.name):
        if usage_families.is_host_application(one):
            used = _of(one, past, now.snapshot.at, want)
            if used["resources"]:
                yield {"name": one.name, **_classes(one), "usage": used}


def status(
    now: view.ReportView,
    measured: Mapping[str, Any],
    pod_rows: list[Any],
    application_rows: list[Any],
) -> dict[str, Any]:
    """The whole status of parts that were made before."""
    made: dict[str, Any] = {
        "updateTime": time_text(now.snapshot.wall),
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
            shown = _amounts(amounts.get("cpu"), amounts.get("memory"))
            made[key] = {"resource": {"resources": shown}}
    return made


def time_text(wall: float) -> str:
    """A time as API objects have it."""
    return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class _Subject:
    """A subject whose CPU and memory are reported."""

    where: Windows
    name: str
    cpu: meter.Meter = meter.CPU
    memory: meter.Meter = meter.WORKING_SET

    def average(self, at: float, seconds: float) -> dict[str, Any]:
        cpu, memory = self._windows(at, seconds)
        return {
            "resources": _amounts(
                None if cpu is None else cpu.average, None if memory is None else memory.average
            )
        }

    def aggregated(self, at: float, seconds: int) -> dict[str, Any]:
        cpu, memory = self._windows(at, seconds)
        usage: dict[str, Any] = {"avg": self.average(at, seconds)}
        for name, part in _QUANTILES:
            values = (None if one is None else one.quantile(part) for one in (cpu, memory))
            usage[name] = {"resources": _amounts(*values)}
        known = cpu is not None or memory is not None
        return {"duration": duration_text(seconds), "usage": usage if known else {}}

    def _windows(
        self, at: float, seconds: float
    ) -> tuple[window.Window | None, window.Window | None]:
        return (
            self.where.window(self.name, self.cpu, at, seconds),
            self.where.window(self.name, self.memory, at, seconds),
        )


def _of(one: pod.Pod, past: MetricHistory, at: float, want: CollectPolicy) -> dict[str, Any]:
    subject = _Subject(past.groups, one.group or "", meter.CPU, meter.MEMORY_ANON)
    return subject.average(at, want.window_seconds) if one.group else {"resources": {}}


def _classes(one: pod.Pod) -> dict[str, str]:
    band = one.band or qos.Band.default_of(one.qos)
    return {"priority": band.label, "qos": one.qos.value}


def _amounts(cpu: float | None, memory: float | None) -> dict[str, str]:
    made = {}
    if cpu is not None:
        made["cpu"] = f"{int(cpu * 1000)}m"
    if memory is not None:
        made["memory"] = str(int(memory))
    return made


def duration_text(seconds: int) -> str:
    """Duration as Go prints it: ``5m0s``, ``1h0m0s``."""
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    if hours:
        return f"{hours}h{minutes}m{rest}s"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def _seconds(text: object) -> int:
    """A Go duration in whole seconds; 0 for what is none."""
    if not isinstance(text, str) or not re.fullmatch(f"(?:{_DURATION.pattern})+", text):
        return 0
    whole = sum(float(number) * _SECONDS[unit] for number, unit in _DURATION.findall(text))
    return int(min(whole, _LONGEST))


def _floored(found: Mapping[str, Any], key: str, plain: int) -> int:
    value = found.get(key)
    good = isinstance(value, int) and not isinstance(value, bool)
    return min(max(_FLOORS[key], value), _LONGEST) if good and isinstance(value, int) else plain


def _mapping(found: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = found.get(key)
    return value if isinstance(value, Mapping) else {}
