"""Reservations as the API server, or a standalone scheduler, has them.

Covers: one object to a ``Reservation``; those for a unit or a cgroup as workloads.
Does not cover: listing and watching (``cluster``).

What a reservation for a unit or cgroup holds is given to it as to a declared workload: from the
moment it is available its CPUs are nobody else's, whether the unit runs yet or not, and its memory
is counted as asked for. Once the unit runs, that memory is kept from being reclaimed
(``memory.min``, cgroup v2): a reservation promises room, so all of it is protected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from koordlet.kubeapi import objects, pod_annotations, shapes
from koordlet.model import moment, pod, qos, reservation, resources, strategies, wishes
from koordlet.workloads import matching

#: Where the node that holds it stands; the peer's definition makes it selectable.
NODE_FIELD = "status.nodeName"
NAMESPACE = "reservation"
#: Where such a workload is known from.
SOURCE = "reservation"
#: The whole of what is reserved.
_KEPT = wishes.Wishes(memory_qos=strategies.MemoryQos(min_limit_percent=100))
#: Annotations of a reservation that its workload has, too.
_PASSED = ("node.koordinator.sh/resctrl", pod_annotations.RESOURCE_SPEC)


def decode(body: objects.Object) -> reservation.Reservation:
    """Parts of a wrong type are as if they were not there, and are said."""
    problems: list[str] = []
    status, spec = (shapes.section(body, name, problems) for name in ("status", "spec"))
    notes = shapes.texts(
        shapes.section(objects.metadata(body), "annotations", problems), problems, "annotation"
    )
    grant = pod_annotations.read(
        pod_annotations.RESOURCE_STATUS, notes, pod_annotations.grant, problems
    )
    amounts = resources.read(objects.part(status, "allocatable"), problems, "allocatable")
    milli = amounts.get(resources.CPU, 0)
    return reservation.Reservation(
        name=objects.key(body)[1],
        uid=objects.text(body, "uid"),
        phase=_text(status.get("phase")),
        node=_text(status.get("nodeName")),
        owners=tuple(objects.parts(spec, "owners")),
        cpus=grant.cpus if grant is not None else None,
        # A fraction is never exclusive.
        cpu_count=milli // 1000 if milli and milli % 1000 == 0 else None,
        amounts=amounts,
        match=_match(notes, problems),
        drawn_by=tuple(_text(owner.get("uid")) for owner in objects.parts(status, "currentOwners")),
        used_at=_used(status),
        annotations={key: notes[key] for key in _PASSED if key in notes},
        problems=tuple(problems),
    )


def decode_all(data: bytes, problems: list[str]) -> tuple[reservation.Reservation, ...]:
    """Decode a JSON list; ``ValueError`` for anything else."""
    listed = shapes.parse_bytes(data)
    if not isinstance(listed, list):
        raise ValueError("not a list of reservations")
    several = tuple(decode(body) for body in listed if isinstance(body, Mapping))
    problems += [f"reservation {held.name}: {why}" for held in several for why in held.problems]
    return several


def workloads(several: Iterable[reservation.Reservation]) -> tuple[pod.Pod, ...]:
    """Workloads for reservations whose consumer on this node is not a pod."""
    return tuple(
        pod.Pod(
            uid=reserved.uid or f"{NAMESPACE}/{reserved.name}",
            namespace=NAMESPACE,
            name=reserved.name,
            qos=qos.Qos.LSE,
            raw_qos=qos.Qos.LSE,
            band=qos.Band.default_of(qos.Qos.LSE),
            source=SOURCE,
            match=reserved.match,
            cpus=reserved.cpus,
            cpu_count=reserved.cpu_count if reserved.cpus is None else None,
            requests=reserved.amounts,
            wishes=_KEPT if reserved.amounts.get(resources.MEMORY) else wishes.NONE,
            annotations=reserved.annotations,
            problems=reserved.problems,
        )
        for reserved in several
        if reserved.match and reserved.holds
    )


def _match(notes: Mapping[str, Any], problems: list[str]) -> str:
    try:
        return matching.parse(notes.get(matching.ANNOTATION, ""))
    except ValueError as error:
        problems.append(str(error))
        return ""


def _used(status: Mapping[str, Any]) -> float:
    """Time of the last use by an owner; the transition keeps the time of becoming available."""
    for part in objects.parts(status, "conditions"):
        if (part.get("type"), part.get("reason")) == ("Ready", "Succeeded"):
            try:
                return moment.parse(part.get("lastProbeTime"))
            except ValueError:
                return 0.0
    return 0.0


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
