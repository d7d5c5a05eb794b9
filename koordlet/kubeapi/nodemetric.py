"""The peer's NodeMetric into usage, for agent and scheduler.

Covers: its status, how often it is written. Does not cover: the rest of its spec.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from koordlet.kubeapi import shapes
from koordlet.model import moment, nodemetric, resources

#: The peer's default of ``spec.metricCollectPolicy.reportIntervalSeconds``.
INTERVAL = 60
_SECONDS = shapes.integer(0)
#: 100 times an amount stays within 64 bits.
_MOST = 2**55


def decode(body: Mapping[str, object], where: str = "NodeMetric") -> nodemetric.NodeMetric:
    """Decode a NodeMetric; invalid parts are ignored."""
    problems: list[str] = []
    policy = shapes.section(shapes.section(body, "spec", problems), "metricCollectPolicy", problems)
    status = shapes.section(body, "status", problems)
    node = shapes.section(status, "nodeMetric", problems)
    interval = policy.get("reportIntervalSeconds")
    pods = {
        f"{metric.get('namespace') or 'default'}/{metric.get('name', '')}": metric
        for metric in shapes.sections(status, "podsMetric", problems)
    }
    use = _usage(node, "nodeUsage", problems)
    made = nodemetric.NodeMetric(
        updated=shapes.guarded(shapes.instant, status.get("updateTime"), "updateTime", problems),
        interval=shapes.guarded(_SECONDS, interval, "reportIntervalSeconds", problems) or INTERVAL,
        reported=bool(use),
        node=use,
        system=_usage(node, "systemUsage", problems),
        pods={key: _usage(metric, "podUsage", problems) for key, metric in pods.items()},
        prod=frozenset(
            key for key, metric in pods.items() if metric.get("priority") == "koord-prod"
        ),
        applications={
            str(metric.get("name", "")): _usage(metric, "usage", problems)
            for metric in shapes.sections(status, "hostApplicationMetric", problems)
        },
        windows=_windows(node, problems),
    )
    return replace(made, problems=tuple(f"{where}: {problem}" for problem in problems))


def _windows(
    node: Mapping[str, object], problems: list[str]
) -> dict[int, dict[str, resources.Amounts]]:
    windows: dict[int, dict[str, resources.Amounts]] = {}
    for window in shapes.sections(node, "aggregatedNodeUsages", problems):
        try:
            seconds = int(moment.duration(window.get("duration") or "0"))
        except ValueError as error:
            problems.append(f"aggregatedNodeUsages: {error}")
            continue
        usage = shapes.section(window, "usage", problems)
        windows[seconds] = {name: _usage(usage, name, problems) for name in usage}
    return windows


def _usage(body: Mapping[str, object], key: str, problems: list[str]) -> dict[str, int]:
    listed = shapes.section(shapes.section(body, key, problems), "resources", problems)
    amounts = resources.read(listed, problems, key)
    return {name: min(amount, _MOST) for name, amount in amounts.items()}
