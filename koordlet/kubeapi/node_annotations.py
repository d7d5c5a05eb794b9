"""What a node sets aside for itself and for system work, read once for agent and scheduler.

Covers: the annotations ``reservation`` and ``system-qos-resource``, ``raw-allocatable``.
Does not cover: which CPUs those are on the machine (``policy.cpu.reserved_cpus``), what is left for
pods (``scheduler.objects.nodes``).

Rules:
1. ``reservedCPUs`` counts where it says something, otherwise ``resources.cpu``, in whole CPUs: the
   agent cannot take half a CPU from the pools.
2. An amount that cannot be read costs itself alone. Where what is said about CPUs cannot be read
   (the list, without a list the amount, or the whole annotation), ``fault`` says why, and whoever
   acts on it holds what was valid last: a typing error frees no CPUs.
3. ``applyPolicy: ReservedCPUsOnly``: the amounts are the kubelet's affair already; only the CPUs
   are withheld from workloads that are bound to CPUs.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import field

from koordlet.kubeapi import pod_annotations, shapes
from koordlet.model import cpuset, resources
from koordlet.model.record import dataclass

RESERVATION = "node.koordinator.sh/reservation"
SYSTEM_QOS = "node.koordinator.sh/system-qos-resource"
#: A resource list.
RAW_ALLOCATABLE = "node.koordinator.sh/raw-allocatable"

_STRUCTURE: Mapping[str, None] = {"resources": None, "reservedCPUs": None, "applyPolicy": None}
_SYSTEM_STRUCTURE = {"cpuset": None, "cpusetExclusive": None}
_APPLY = ("", "Default", "ReservedCPUsOnly")
_AMOUNTS = pod_annotations.of(pod_annotations.amounts)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReservation:
    """The annotation ``reservation``."""

    #: CPUs by number; ``None``: no list.
    cpus: cpuset.CPUSet | None = None
    #: Without the CPUs of a list.
    amounts: resources.Amounts = field(default_factory=dict)
    #: Only the CPUs count, not the amounts (rule 3).
    cpus_only: bool = False
    #: Why what it says about CPUs cannot be used.
    fault: str = ""
    #: By resource, or for all of them under "": why the amount cannot be used.
    unread: Mapping[str, str] = field(default_factory=dict)
    #: What makes no sense, and costs nothing.
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemCpus:
    """The annotation ``system-qos-resource``."""

    #: ``None``: no list.
    cpus: cpuset.CPUSet | None = None
    #: Nobody else runs on them.
    exclusive: bool = True
    #: Why nothing of it can be used.
    fault: str = ""


@functools.lru_cache(maxsize=256)
def reservation(text: str) -> NodeReservation:
    """The annotation's text; what of it cannot be read is said in the value."""
    try:
        body = shapes.canonical(shapes.mapping(shapes.parse(text)), _STRUCTURE)
    except ValueError as error:
        return NodeReservation(fault=str(error), unread={"": str(error)})
    amounts, unread = _amounts(body.get("resources"))
    listed, apply = body.get("reservedCPUs"), body.get("applyPolicy") or ""
    cpus: cpuset.CPUSet | None = None
    fault = unread.get("") or unread.get(resources.CPU, "")
    if listed not in (None, ""):
        try:
            cpus, fault = shapes.cpus(listed, []), ""
        except ValueError as error:
            fault = f"reservedCPUs: {error}"
        amounts.pop(resources.CPU, None)
    return NodeReservation(
        cpus=cpus,
        amounts=amounts,
        cpus_only=apply == "ReservedCPUsOnly",
        fault=fault,
        unread=unread,
        problem=""
        if apply in _APPLY
        else f"applyPolicy {shapes.shown(apply)} is unknown, Default applies",
    )


def _amounts(listed: object) -> tuple[dict[str, int], dict[str, str]]:
    """Amounts by resource, and why others cannot be read; negative ones reserve nothing."""
    if listed is not None and not isinstance(listed, dict):
        return {}, {"": f"resources: expected an object, found {shapes.shown(listed)}"}
    amounts: dict[str, int] = {}
    unread: dict[str, str] = {}
    for name, spelled in (listed or {}).items():
        problems: list[str] = []
        amount = resources.read({} if spelled is None else {name: spelled}, problems, "resources")
        if problems and "is negative" in problems[0]:
            amount = {name: 0}
        elif problems:
            unread[name] = problems[0]
        amounts |= amount
    if resources.CPU in amounts:
        amounts[resources.CPU] = 1000 * -(-amounts[resources.CPU] // 1000)
    return amounts, unread


@functools.lru_cache(maxsize=256)
def system(text: str) -> SystemCpus:
    """The annotation's text."""
    try:
        body = shapes.canonical(shapes.mapping(shapes.parse(text)), _SYSTEM_STRUCTURE)
        listed, alone = body.get("cpuset"), body.get("cpusetExclusive")
        return SystemCpus(
            cpus=None if listed in (None, "") else shapes.cpus(listed, []),
            exclusive=alone is None or shapes.boolean(alone, []),
        )
    except ValueError as error:
        return SystemCpus(fault=str(error))


def raw_allocatable(notes: Mapping[str, str], problems: list[str]) -> resources.Amounts:
    """What was allocatable before amounts were amplified; empty where none were."""
    return pod_annotations.read(RAW_ALLOCATABLE, notes, _AMOUNTS, problems) or {}
