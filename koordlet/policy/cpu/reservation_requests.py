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
import json
import typing
from collections.abc import Callable, Iterator, Mapping

from koordlet.model import cpuset, qos, quantity, resources, snapshot
from koordlet.model import pod as pods
from koordlet.model.record import dataclass

if typing.TYPE_CHECKING:
    from koordlet.model import kubelet

ANNOTATION = "node.koordinator.sh/reservation"
SYSTEM_ANNOTATION = "node.koordinator.sh/system-qos-resource"

NODE, KUBELET, SYSTEM = "node", "kubelet", "system"
#: What ``applyPolicy`` may be: both reserve the same CPUs, and differ for the scheduler alone.
_APPLY = ("", "Default", "ReservedCPUsOnly")


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
        yield _guarded(NODE, ANNOTATION, notes, _annotated) or _configured(cpus, quantity_milli)
        system = _guarded(SYSTEM, SYSTEM_ANNOTATION, notes, _system)
        if system is not None:
            yield system
    if now.kubelet is not None:
        asked = now.kubelet.configuration
        yield Unknown(KUBELET) if asked is None else _kubelet(asked)
    yield from (_declared(pod) for pod in now.pods if _is_declared(pod))


def _guarded(
    source: str,
    key: str,
    notes: Mapping[str, str],
    read: Callable[[Mapping[str, object]], Wish | None],
) -> Found | None:
    text = notes.get(key)
    if text is None:
        return None
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return Broken(source, f"annotation {key} is not JSON: {text[:80]!r}")
    if not isinstance(body, dict):
        return Broken(source, f"annotation {key} is not an object: {text[:80]!r}")
    try:
        return read(body)
    except ValueError as error:
        return Broken(source, f"annotation {key}: {error}")


def _annotated(body: Mapping[str, object]) -> Wish | None:
    """The reservation of the node; ``None`` when it says nothing about CPUs."""
    origin, problem = f"annotation {ANNOTATION}", ""
    apply = body.get("applyPolicy") or ""
    if apply not in _APPLY:
        problem = f"{origin}: applyPolicy {str(apply)[:40]!r} is unknown, Default applies"
    listed = body.get("reservedCPUs")
    if listed not in (None, ""):
        cpus = _list("reservedCPUs", listed)
        return Wish(source=NODE, origin=origin, cpus=cpus, problem=problem)
    amounts = body.get("resources")
    if amounts is not None and not isinstance(amounts, dict):
        raise ValueError(f"resources: expected an object, found {str(amounts)[:40]!r}")
    amount = (amounts or {}).get(resources.CPU)
    if amount is None:
        return None
    try:
        count = _whole(quantity.milli(_text(amount)))
    except ValueError as error:
        raise ValueError(f"resources.cpu: {error}") from None
    return Wish(source=NODE, origin=origin, count=count, problem=problem)


def _system(body: Mapping[str, object]) -> Wish | None:
    listed, alone = body.get("cpuset"), body.get("cpusetExclusive")
    if listed in (None, ""):
        return None
    if alone not in (None, True, False):
        raise ValueError(f"cpusetExclusive: expected true or false, found {str(alone)[:40]!r}")
    return Wish(
        source=SYSTEM,
        origin=f"annotation {SYSTEM_ANNOTATION}",
        use=Use.SHARED if alone is False else Use.SYSTEM,
        cpus=_list("cpuset", listed),
    )


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


def _list(name: str, value: object) -> cpuset.CPUSet:
    try:
        return cpuset.CPUSet.parse(_text(value))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"expected text, found {type(value).__name__}")
    return str(value)
