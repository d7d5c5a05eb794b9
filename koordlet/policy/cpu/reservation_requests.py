"""Requests to reserve CPUs: from node annotations, the kubelet and the operator.

Covers: reading each of them into one kind of wish.
Does not cover: granting wishes, remembering them (``reserved_cpus``).

Of the node's own reservation the strongest counts alone: the annotation's ``reservedCPUs``, its
``resources.cpu``, the configuration's ``cpus``, its ``quantity``. All others add to it.

The kubelet's reservation is its ``reservedSystemCPUs``, whatever its policy: who names CPUs means
them. From quantities it takes CPUs under the static policy only, and packs them as we do.
"""

from __future__ import annotations

import enum
import typing
from collections.abc import Iterator, Mapping

from koordlet.kubeapi import node_annotations
from koordlet.model import cpuset, qos, resources, snapshot
from koordlet.model import pod as pods
from koordlet.model.record import dataclass

if typing.TYPE_CHECKING:
    from koordlet.model import kubelet

ANNOTATION = node_annotations.RESERVATION
SYSTEM_ANNOTATION = node_annotations.SYSTEM_QOS

NODE, KUBELET, SYSTEM = "node", "kubelet", "system"


class Use(enum.Enum):
    """The use of reserved CPUs."""

    #: Nobody that we place.
    MACHINE = "machine"
    #: System QoS, which nobody else uses.
    SYSTEM = "system"
    #: System QoS, which shares them with the pools.
    SHARED = "shared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A request for listed CPUs, or for a number of CPUs."""

    #: One wish of each source counts, and one is remembered.
    source: str
    origin: str
    use: Use = Use.MACHINE
    cpus: cpuset.CPUSet | None = None
    count: int = 0
    #: The workload that they are for.
    holder: str = "node"
    uid: str = ""
    #: Something about it that makes no sense, and costs nothing.
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Broken:
    """An unreadable wish: the last valid one of its source stays in force."""

    source: str
    why: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """A source that has not answered yet: its last wish stays in force."""

    source: str


Found = Wish | Broken | Unknown


def of(
    now: snapshot.Snapshot, cpus: cpuset.CPUSet | None, quantity_milli: int | None
) -> Iterator[Found]:
    """All wishes of this moment; ``cpus`` and ``quantity_milli`` are the configuration's."""
    notes = now.node.annotations
    if not now.node.known:
        yield from (Unknown(NODE), Unknown(SYSTEM))
    else:
        yield _annotated(notes) or _configured(cpus, quantity_milli)
        system = _system(notes)
        if system is not None:
            yield system
    if now.kubelet is not None:
        asked = now.kubelet.configuration
        yield Unknown(KUBELET) if asked is None else _kubelet(asked)
    yield from (_declared(pod) for pod in now.pods if _is_declared(pod))


def _annotated(notes: Mapping[str, str]) -> Found | None:
    """The reservation of the node; ``None`` when it says nothing about CPUs."""
    if ANNOTATION not in notes:
        return None
    reservation = node_annotations.reservation(notes[ANNOTATION])
    origin = f"annotation {ANNOTATION}"
    if reservation.fault:
        return Broken(NODE, f"{origin}: {reservation.fault}")
    problem = f"{origin}: {reservation.problem}" if reservation.problem else ""
    if reservation.cpus is not None:
        return Wish(source=NODE, origin=origin, cpus=reservation.cpus, problem=problem)
    if resources.CPU not in reservation.amounts:
        return None
    count = reservation.amounts[resources.CPU] // 1000
    return Wish(source=NODE, origin=origin, count=count, problem=problem)


def _system(notes: Mapping[str, str]) -> Found | None:
    if SYSTEM_ANNOTATION not in notes:
        return None
    system = node_annotations.system(notes[SYSTEM_ANNOTATION])
    origin = f"annotation {SYSTEM_ANNOTATION}"
    if system.fault:
        return Broken(SYSTEM, f"{origin}: {system.fault}")
    if system.cpus is None:
        return None
    use = Use.SYSTEM if system.exclusive else Use.SHARED
    return Wish(source=SYSTEM, origin=origin, use=use, cpus=system.cpus)


def _configured(cpus: cpuset.CPUSet | None, quantity_milli: int | None) -> Wish:
    if cpus is not None:
        return Wish(source=NODE, origin="configuration policies.reserved_cpus.cpus", cpus=cpus)
    if quantity_milli:
        origin = "configuration policies.reserved_cpus.quantity"
        return Wish(source=NODE, origin=origin, count=_whole(quantity_milli))
    return Wish(source=NODE, origin="nothing")


def _kubelet(asked: kubelet.Configuration) -> Wish:
    if asked.reserved_cpus:
        origin = "the kubelet's reservedSystemCPUs"
        return Wish(source=KUBELET, origin=origin, cpus=asked.reserved_cpus)
    milli = asked.system_reserved.get(resources.CPU, 0) + asked.kube_reserved.get(resources.CPU, 0)
    if asked.cpu_manager_policy != "static" or milli <= 0:
        return Wish(source=KUBELET, origin="the kubelet reserves nothing")
    origin = "the kubelet's systemReserved and kubeReserved"
    return Wish(source=KUBELET, origin=origin, count=_whole(milli))


def _is_declared(pod: pods.Pod) -> bool:
    """A system workload that was declared with CPUs: they are its own."""
    asks = pod.cpus is not None or bool(pod.cpu_count)
    return pod.qos is qos.Qos.SYSTEM and pod.declared and asks


def _declared(pod: pods.Pod) -> Wish:
    return Wish(
        source=f"workload/{pod.uid}",
        origin=f"{pod.source} for {pod.key}",
        use=Use.SYSTEM,
        cpus=pod.cpus,
        count=pod.cpu_count or 0,
        holder=pod.key,
        uid=pod.uid,
    )


def _whole(milli: int) -> int:
    """CPUs for thousandths of them, rounded up; a negative amount is none."""
    return max(0, -(-milli // 1000))
