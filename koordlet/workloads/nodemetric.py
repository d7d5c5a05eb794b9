"""The peer's NodeMetric into usage. Covers: its status. Does not cover: its spec."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from koordlet.model import nodemetric, resources
from koordlet.workloads import shapes

_DURATION = re.compile(r"(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})(?:\.\d+)?s)?\Z", re.ASCII)


def decode(body: Mapping[str, object], where: str = "NodeMetric") -> nodemetric.NodeMetric:
    """Decode a NodeMetric; invalid parts are ignored."""
    problems: list[str] = []
    status = shapes.section(body, "status", problems)
    node = shapes.section(status, "nodeMetric", problems)
    made = nodemetric.NodeMetric(
        updated=shapes.guarded(shapes.instant, status.get("updateTime"), "updateTime", problems),
        node=_usage(node, "nodeUsage", problems),
        system=_usage(node, "systemUsage", problems),
        pods={
            f"{one.get('namespace', '')}/{one.get('name', '')}": _usage(one, "podUsage", problems)
            for one in _objects(status, "podsMetric", problems)
        },
        applications={
            str(one.get("name", "")): _usage(one, "usage", problems)
            for one in _objects(status, "hostApplicationMetric", problems)
        },
        windows=_windows(node, problems),
    )
    return replace(made, problems=tuple(f"{where}: {problem}" for problem in problems))


def _windows(
    node: Mapping[str, object], problems: list[str]
) -> dict[int, dict[str, resources.Amounts]]:
    found: dict[int, dict[str, resources.Amounts]] = {}
    for one in _objects(node, "aggregatedNodeUsages", problems):
        text = one.get("duration")
        match = _DURATION.match(text) if isinstance(text, str) and text else None
        if match is None:
            problems.append(f"aggregatedNodeUsages: {shapes.shown(text)} is not a duration")
            continue
        hours, minutes, seconds = (int(part or 0) for part in match.groups())
        usage = shapes.section(one, "usage", problems)
        found[hours * 3600 + minutes * 60 + seconds] = {
            name: _usage(usage, name, problems) for name in usage
        }
    return found


def _usage(body: Mapping[str, object], key: str, problems: list[str]) -> dict[str, int]:
    listed = shapes.section(shapes.section(body, key, problems), "resources", problems)
    return resources.read(listed, problems, key)


def _objects(
    body: Mapping[str, object], key: str, problems: list[str]
) -> Iterator[Mapping[str, object]]:
    listed = body.get(key)
    if listed is not None and not isinstance(listed, list):
        problems.append(f"{key}: expected a list, found {shapes.shown(listed)}")
        return
    for one in listed or ():
        if isinstance(one, dict):
            yield one
        else:
            problems.append(f"{key}: expected an object, found {shapes.shown(one)}")
