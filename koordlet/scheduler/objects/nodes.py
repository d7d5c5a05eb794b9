"""A Node as the scheduler sees it.

Covers: decoding; what cannot be read refuses the node. Does not cover: its columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from koordlet.kubeapi import node_annotations, shapes
from koordlet.model import cpuset, resources
from koordlet.model.record import dataclass
from koordlet.scheduler.objects import requests, terms, wire
from koordlet.scheduler.objects.wire import Body

#: Of Kubernetes until 1.23.
_PREFER_AVOID = "scheduler.alpha.kubernetes.io/preferAvoidPods"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What decides about a node."""

    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: tuple[terms.Taint, ...] = ()
    unschedulable: bool = False
    #: Its condition Ready is True, or nobody says.
    ready: bool = True
    allocatable: Mapping[str, int]
    #: Name, always with a tag or digest, to bytes.
    images: Mapping[str, int]
    features: frozenset[str] = frozenset()
    #: CPUs that the node keeps for itself.
    reserved_cpus: cpuset.CPUSet = field(default_factory=cpuset.CPUSet)
    #: What of it cannot be read, and is as if it were missing.
    problems: tuple[str, ...] = ()


class NodeDecoder:
    """Decodes nodes; remembers what each set aside for itself.

    Where nobody can read what an annotation says about CPUs, what was valid last holds, as it does
    in the node's agent: a typing error frees no CPUs.
    """

    def __init__(self) -> None:
        self._last: dict[str, node_annotations.NodeReservation] = {}

    def decode(self, body: Body) -> Node:
        """A Node from its JSON; ``BadObjectError`` names the field that cannot be used."""
        meta, spec = wire.mapping(body, "metadata"), wire.mapping(body, "spec")
        status = wire.mapping(body, "status")
        name = wire.name(meta)
        notes = shapes.texts(wire.mapping(meta, "annotations"), [], "annotation")
        known = "allocatable" if status.get("allocatable") is not None else "capacity"
        problems: list[str] = []
        allocatable = requests.readable(
            wire.mapping(status, known), requests.MOST_ALLOCATABLE, problems, known
        )
        if _PREFER_AVOID in notes:
            problems.append(
                f"annotation {_PREFER_AVOID} is ignored: Kubernetes removed what read it;"
                " a NodeAvoidance says what a workload avoids"
            )
        reserved = self._reserved(name, notes.get(node_annotations.RESERVATION), problems)
        return Node(
            name=name,
            labels=wire.labels(meta),
            annotations=notes,
            taints=tuple(map(terms.taint, wire.bodies(spec, "taints"))),
            unschedulable=wire.flag(spec, "unschedulable"),
            ready=_ready(status),
            allocatable=rest(allocatable, reserved),
            images={
                image: max(0, min(wire.integer(row, "sizeBytes"), 2**50))
                for row in wire.bodies(status, "images")
                for image in wire.strings(row, "names")
            },
            features=frozenset(wire.strings(status, "declaredFeatures")),
            reserved_cpus=reserved.cpus or cpuset.CPUSet(),
            problems=tuple(problems),
        )

    def _reserved(
        self, name: str, text: str | None, problems: list[str]
    ) -> node_annotations.NodeReservation:
        declared = _NOTHING if text is None else node_annotations.reservation(text)
        problems += [
            f"annotation {node_annotations.RESERVATION}: {why}"
            for why in dict.fromkeys((declared.fault, declared.problem, *declared.unread.values()))
            if why
        ]
        if declared.fault:
            return self._last.get(name, declared)
        if text is None:
            self._last.pop(name, None)
        else:
            self._last[name] = declared
        return declared


def _ready(status: Body) -> bool:
    """Whether no condition says that a node is not ready; one that cannot be read says nothing."""
    conditions = status.get("conditions")
    return all(
        condition.get("status") == "True"
        for condition in (conditions if isinstance(conditions, list) else ())
        if isinstance(condition, Mapping) and condition.get("type") == "Ready"
    )


def decode(body: Body) -> Node:
    """A Node that nobody saw before."""
    return NodeDecoder().decode(body)


_NOTHING = node_annotations.NodeReservation()
#: What best-effort pods may use was computed without the reservation already.
_BATCH = (resources.BATCH_CPU, resources.BATCH_MEMORY)


def rest(
    allocatable: Mapping[str, int], reserved: node_annotations.NodeReservation
) -> Mapping[str, int]:
    """What is left for pods."""
    aside = {} if reserved.cpus_only else dict(reserved.amounts)
    if reserved.cpus is not None and not reserved.cpus_only:
        aside[resources.CPU] = 1000 * len(reserved.cpus)
    if not aside:
        return allocatable
    return {
        name: amount if name in _BATCH else max(0, amount - aside.get(name, 0))
        for name, amount in allocatable.items()
    }


def image_name(image: str) -> str:
    """With ``:latest`` where there is no tag or digest: a colon before a ``/`` is a port's."""
    return f"{image}:latest" if image.rfind(":") <= image.rfind("/") else image
