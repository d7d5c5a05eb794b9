"""Reservations as the API server, or a standalone scheduler, has them.

Covers: one object to a ``Reservation``; those for a unit or a cgroup as workloads.
Does not cover: listing and watching (``cluster``).

What a reservation for a unit or cgroup holds is given to it as to a declared workload: from the
moment it is available its CPUs are nobody else's, whether the unit runs yet or not, and its memory
is counted as asked for. Once the unit runs, that memory is kept from being reclaimed
(``memory.min``, cgroup v2): a reservation promises room, so all of it is protected.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from koordlet.kubeapi import objects
from koordlet.model import (
    cpuset,
    moment,
    pod,
    qos,
    quantity,
    reservation,
    resources,
    strategies,
    surrogates,
    wishes,
)
from koordlet.workloads import matching, shapes

#: Where the node that holds it stands; the peer's definition makes it selectable.
NODE_FIELD = "status.nodeName"
NAMESPACE = "reservation"
_STATUS = "scheduling.koordinator.sh/resource-status"
#: The whole of what is reserved.
_KEPT = wishes.Wishes(memory_qos=strategies.MemoryQos(min_limit_percent=100))
#: Annotations of a reservation that its workload has, too.
_PASSED = ("node.koordinator.sh/resctrl", "scheduling.koordinator.sh/resource-spec")


def decode(body: objects.Object) -> reservation.Reservation:
    """Parts of a wrong type are as if they were not there, and are said."""
    problems: list[str] = []
    status, spec = (_said(body, name, problems) for name in ("status", "spec"))
    notes = _said(objects.metadata(body), "annotations", problems)
    owners = spec.get("owners")
    return reservation.Reservation(
        name=objects.key(body)[1],
        uid=objects.text(body, "uid"),
        phase=_text(status.get("phase")),
        node=_text(status.get("nodeName")),
        owners=tuple(owner for owner in owners if isinstance(owner, Mapping))
        if isinstance(owners, list)
        else (),
        cpus=_cpus(notes, problems),
        cpu_count=_count(_part(status, "allocatable")),
        amounts=resources.read(_part(status, "allocatable"), problems, "allocatable"),
        match=_match(notes, problems),
        drawn_by=tuple(_text(part.get("uid")) for part in _parts(status, "currentOwners")),
        used_at=_used(status),
        annotations={key: str(notes[key]) for key in _PASSED if key in notes},
        problems=tuple(problems),
    )


def decode_all(data: bytes, problems: list[str]) -> tuple[reservation.Reservation, ...]:
    """Decode a JSON list; ``ValueError`` for anything else."""
    try:
        found = json.loads(data)
    except RecursionError as error:
        msg = "nested too deeply"
        raise ValueError(msg) from error
    if not isinstance(found, list):
        msg = "not a list of reservations"
        raise ValueError(msg)
    found = surrogates.whole(found)
    several = tuple(decode(one) for one in found if isinstance(one, Mapping))
    problems += [f"reservation {one.name}: {why}" for one in several for why in one.problems]
    return several


def workloads(several: Iterable[reservation.Reservation]) -> tuple[pod.Pod, ...]:
    """Workloads for reservations whose consumer on this node is not a pod."""
    return tuple(
        pod.Pod(
            uid=one.uid or f"{NAMESPACE}/{one.name}",
            namespace=NAMESPACE,
            name=one.name,
            qos=qos.Qos.LSE,
            raw_qos=qos.Qos.LSE,
            band=qos.Band.default_of(qos.Qos.LSE),
            source="reservation",
            match=one.match,
            cpus=one.cpus,
            cpu_count=one.cpu_count if one.cpus is None else None,
            requests=one.amounts,
            wishes=_KEPT if one.amounts.get(resources.MEMORY) else wishes.NONE,
            annotations=one.annotations,
            problems=one.problems,
        )
        for one in several
        if one.match and one.holds
    )


def _cpus(notes: Mapping[str, Any], problems: list[str]) -> cpuset.CPUSet | None:
    spelled = _json(notes, _STATUS, problems).get("cpuset")
    if not isinstance(spelled, str) or not spelled:
        return None
    try:
        return cpuset.CPUSet.parse(spelled)
    except ValueError as error:
        problems.append(f"{_STATUS}: {error}")
        return None


def _match(notes: Mapping[str, Any], problems: list[str]) -> str:
    try:
        return matching.parse(str(notes.get(matching.ANNOTATION) or ""))
    except ValueError as error:
        problems.append(str(error))
        return ""


def _json(notes: Mapping[str, Any], key: str, problems: list[str]) -> Mapping[str, Any]:
    spelled = notes.get(key)
    if not spelled:
        return {}
    try:
        found = json.loads(str(spelled))
    except (ValueError, RecursionError) as error:
        problems.append(f"{key}: not JSON: {str(error)[:80]}")
        return {}
    return found if isinstance(found, Mapping) else {}


def _used(status: Mapping[str, Any]) -> float:
    """Time of the last use by an owner; the transition keeps the time of becoming available."""
    for part in _parts(status, "conditions"):
        if (part.get("type"), part.get("reason")) == ("Ready", "Succeeded"):
            try:
                return moment.parse(part.get("lastProbeTime"))
            except ValueError:
                return 0.0
    return 0.0


def _count(amounts: Mapping[str, Any]) -> int | None:
    """Number of whole CPUs; a fraction is never exclusive."""
    try:
        milli = quantity.milli(str(amounts.get("cpu") or "0"))
    except ValueError:
        return None
    return milli // 1000 if milli > 0 and milli % 1000 == 0 else None


def _part(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = body.get(name)
    return found if isinstance(found, Mapping) else {}


def _said(body: Mapping[str, Any], name: str, problems: list[str]) -> Mapping[str, Any]:
    """Mapping of a value; anything else is a problem."""
    found = body.get(name)
    if found is not None and not isinstance(found, Mapping):
        problems.append(f"{name}: expected an object, found {shapes.shown(found)}")
    return _part(body, name)


def _parts(body: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = body.get(name)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
