"""``oom-score-adj``: of the pod as a number, of its containers as a JSON object."""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.model import wishes
from koordlet.workloads import shapes
from koordlet.workloads.annotations import eviction

KEY = "koordinator.sh/oom-score-adj"
OF_CONTAINERS = "koordinator.sh/oom-score-adj-spec"

#: What /proc/PID/oom_score_adj takes (proc_pid_oom_score_adj(5)).
_LOW, _HIGH = -1000, 1000
_TABLE = shapes.table(shapes.integer(_LOW, _HIGH))


def decode(notes: Mapping[str, str], problems: list[str]) -> wishes.OomScore | None:
    """Both annotations."""
    pod = eviction.int32(notes, KEY, problems)
    if pod is not None and not _LOW <= pod <= _HIGH:
        problems.append(f"{KEY}: expected {_LOW} to {_HIGH}, found {pod}")
        pod = None
    containers: dict[str, int] = {}
    text = notes.get(OF_CONTAINERS)
    if text is not None:
        inner: list[str] = []
        try:
            containers = _TABLE(shapes.parse(text), inner)
        except ValueError as error:
            inner.append(str(error))
        problems.extend(f"annotation {OF_CONTAINERS}: {one}" for one in inner)
    return (
        wishes.OomScore(pod=pod, containers=containers) if pod is not None or containers else None
    )
