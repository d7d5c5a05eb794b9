"""A Node as the scheduler sees it.

Covers: decoding; what cannot be read refuses the node. Does not cover: its columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from koordlet.model import cpuset
from koordlet.model.record import dataclass
from koordlet.scheduler.objects import node_reservation, requests, terms, wire
from koordlet.scheduler.objects.wire import BadObjectError, Body


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What decides about a node."""

    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: tuple[terms.Taint, ...] = ()
    unschedulable: bool = False
    allocatable: Mapping[str, int]
    #: Name, always with a tag or digest, to bytes.
    images: Mapping[str, int]
    features: frozenset[str] = frozenset()
    #: CPUs that the node keeps for itself.
    reserved_cpus: cpuset.CPUSet = field(default_factory=cpuset.CPUSet)


def decode(body: Body) -> Node:
    """A Node from its JSON; ``BadObjectError`` names the field that cannot be used."""
    meta, spec = wire.mapping(body, "metadata"), wire.mapping(body, "spec")
    status = wire.mapping(body, "status")
    name = wire.text(meta, "name")
    if not name:
        raise BadObjectError("metadata.name is missing")
    notes = {str(key): str(value) for key, value in wire.mapping(meta, "annotations").items()}
    reserved = node_reservation.read(notes)
    known = "allocatable" if status.get("allocatable") is not None else "capacity"
    return Node(
        name=name,
        labels=wire.labels(meta),
        annotations=notes,
        taints=tuple(map(terms.taint, wire.bodies(spec, "taints"))),
        unschedulable=wire.flag(spec, "unschedulable"),
        allocatable=reserved.rest(requests.amounts(status, known, requests.MOST_ALLOCATABLE)),
        images=_images(status),
        features=frozenset(wire.strings(status, "declaredFeatures")),
        reserved_cpus=reserved.cpus,
    )


def _images(status: Body) -> dict[str, int]:
    return {
        image: max(0, min(wire.integer(body, "sizeBytes"), 2**50))
        for body in wire.bodies(status, "images")
        for image in wire.strings(body, "names")
    }


def image_name(image: str) -> str:
    """With ``:latest`` where there is no tag or digest: a colon before a ``/`` is a port's."""
    return f"{image}:latest" if image.rfind(":") <= image.rfind("/") else image
