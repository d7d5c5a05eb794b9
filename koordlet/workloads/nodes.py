"""A Kubernetes Node into our model.

Covers: names, texts, capacity, allocatable, its strategy of co-location, conditions, taints.
Does not cover: what other annotations mean to a policy, which reads them itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.model import resources, snapshot
from koordlet.workloads import colocation, shapes

#: The peer's annotation: a resource list.
RAW_ALLOCATABLE = "node.koordinator.sh/raw-allocatable"


def decode(body: Mapping[str, object], where: str = "Node") -> snapshot.NodeInfo:
    """The node; a part that does not fit is left out and said."""
    problems: list[str] = []
    meta, spec, status = (
        shapes.section(body, name, problems) for name in ("metadata", "spec", "status")
    )
    annotations = _texts(meta, "annotations", problems)
    labels = _texts(meta, "labels", problems)
    return snapshot.NodeInfo(
        name=str(meta.get("name") or ""),
        labels=labels,
        annotations=annotations,
        capacity=resources.read(shapes.section(status, "capacity", problems), problems, "capacity"),
        allocatable=resources.read(
            shapes.section(status, "allocatable", problems), problems, "allocatable"
        ),
        raw_allocatable=_raw_allocatable(annotations, problems),
        colocation=colocation.of_node(labels, annotations, problems),
        conditions=_conditions(status),
        taints=_taints(spec),
        problems=tuple(f"{where}: {problem}" for problem in problems),
    )


def _raw_allocatable(annotations: Mapping[str, str], problems: list[str]) -> resources.Amounts:
    """Allocatable before Koordinator amplified it; empty if it did not."""
    if RAW_ALLOCATABLE not in annotations:
        return {}
    where = f"annotation {RAW_ALLOCATABLE}"
    try:
        said = shapes.mapping(shapes.parse(annotations[RAW_ALLOCATABLE]))
    except ValueError as error:
        problems.append(f"{where}: {error}")
        return {}
    return resources.read(said, problems, where)


def _conditions(status: Mapping[str, object]) -> dict[str, bool]:
    listed = status.get("conditions")
    return {
        str(one.get("type")): one.get("status") == "True"
        for one in (listed if isinstance(listed, list) else ())
        if isinstance(one, dict)
    }


def _taints(spec: Mapping[str, object]) -> tuple[str, ...]:
    listed = spec.get("taints")
    return tuple(
        f"{one.get('key')}:{one.get('effect')}"
        for one in (listed if isinstance(listed, list) else ())
        if isinstance(one, dict)
    )


def _texts(body: Mapping[str, object], key: str, problems: list[str]) -> dict[str, str]:
    section = shapes.section(body, key, problems)
    problems.extend(
        f"{key}: {str(name)[:80]}: expected a text, found {shapes.shown(value)}"
        for name, value in section.items()
        if not isinstance(value, str)
    )
    return {str(name): value for name, value in section.items() if isinstance(value, str)}
