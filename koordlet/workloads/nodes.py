"""A Kubernetes Node into our model.

Covers: names, texts, capacity, allocatable, its strategy of co-location, conditions, taints.
Does not cover: what other annotations mean to a policy, which reads them itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.kubeapi import node_annotations, objects, shapes
from koordlet.model import resources, snapshot
from koordlet.workloads import colocation


def decode(body: Mapping[str, object], where: str = "Node") -> snapshot.NodeInfo:
    """The node; a part that does not fit is left out and said."""
    problems: list[str] = []
    meta, spec, status = (
        shapes.section(body, name, problems) for name in ("metadata", "spec", "status")
    )
    annotations = shapes.texts(
        shapes.section(meta, "annotations", problems), problems, "annotation"
    )
    labels = shapes.texts(shapes.section(meta, "labels", problems), problems, "label")
    capacity = resources.read(shapes.section(status, "capacity", problems), problems, "capacity")
    return snapshot.NodeInfo(
        name=str(meta.get("name") or ""),
        labels=labels,
        annotations=annotations,
        capacity=capacity,
        # As the API server fills it in.
        allocatable=resources.read(
            shapes.section(status, "allocatable", problems), problems, "allocatable"
        )
        if status.get("allocatable") is not None
        else capacity,
        raw_allocatable=node_annotations.raw_allocatable(annotations, problems),
        colocation=colocation.of_node(labels, annotations, problems),
        conditions={
            str(condition.get("type")): condition.get("status") == "True"
            for condition in objects.parts(status, "conditions")
        },
        taints=tuple(
            f"{taint.get('key')}:{taint.get('effect')}" for taint in objects.parts(spec, "taints")
        ),
        problems=tuple(f"{where}: {problem}" for problem in problems),
    )
