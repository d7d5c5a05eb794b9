"""DisruptionRates as objects spell them: how many pods may be disrupted in which time.

Covers: the fields, their defaults and bounds; the disruptions that a status keeps, both ways.
Does not cover: counting (``scheduler.disruption``), the schema (``report.crds``).

Rules:
1. A specification that cannot be read is as a whole not in force, with every fault by its field:
   half a budget would be another budget.
2. An entry of the status that cannot be read is left out: the others still count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from koordlet.kubeapi import objects, selectors, shapes
from koordlet.model import moment
from koordlet.model.record import dataclass

#: A status keeps so many disruptions of one ledger; all of a window must be among them.
MOST_KEPT = 64
MOST_COUNT, MOST_LIMITS, LONGEST_WINDOW = 50, 4, 7 * 86400.0
#: Causes that are counted and never refused, unless the object names others.
EXEMPT = frozenset({"NodePressure", "NodeShutdown", "TaintNoExecute"})
_WHOLE_PERCENT = 100
_PERCENT = re.compile(r"([0-9]{1,3})%")


@dataclass(frozen=True, slots=True)
class CountOrPercent:
    """A number of pods, or a percentage of them."""

    number: int
    percent: bool = False

    def floor(self, whole: int) -> int:
        """Rounded down, and of a percentage at least 1."""
        return max(1, self.number * whole // 100) if self.percent else self.number

    def ceiling(self, whole: int) -> int:
        """Rounded up."""
        return -(-self.number * whole // 100) if self.percent else self.number

    def __str__(self) -> str:
        return f"{self.number}%" if self.percent else str(self.number)


@dataclass(frozen=True, slots=True)
class RateLimit:
    """So many disruptions in any window of this length."""

    count: CountOrPercent
    window_seconds: float


DEFAULT_LIMITS = (RateLimit(CountOrPercent(1), 3600.0),)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateSpec:
    """The specification of a DisruptionRate."""

    #: ``None``: each controller of the namespace by itself.
    selector: selectors.Compiled | None = None
    limits: tuple[RateLimit, ...] = DEFAULT_LIMITS
    min_up: CountOrPercent | None = None
    min_gap_seconds: float = 0.0
    #: Of each count, kept back from background movers.
    reserve: CountOrPercent = CountOrPercent(0)
    exempt: frozenset[str] = EXEMPT

    @property
    def longest(self) -> float:
        """Seconds after which a disruption limits nothing any more."""
        return max(self.min_gap_seconds, *(limit.window_seconds for limit in self.limits))


@dataclass(frozen=True, slots=True, kw_only=True)
class Disruption:
    """The start of a pod's end, or of its way elsewhere."""

    #: Without the namespace, which is the object's.
    pod: str
    uid: str
    at: float
    cause: str
    #: The component, or empty where nobody of ours caused it.
    by: str = ""
    #: It counts: the system wanted it. A user's or a controller's own delete does not.
    accepted: bool = True
    #: It was accepted and the pod still ran ten minutes later: it counts no more.
    lapsed: bool = False
    #: ``KIND/NAME`` of the controller; empty where there is none.
    controller: str = ""
    #: Decided by a mover that only watches: it counts for such alone, and no status has it.
    shadow: bool = False
    #: The server has not answered yet: it counts, and no status has it.
    asked: bool = False

    def body(self) -> dict[str, Any]:
        """The entry of a status."""
        return {
            "pod": self.pod,
            "uid": self.uid,
            "time": moment.spell(self.at),
            "cause": self.cause,
            "by": self.by,
            "accepted": self.accepted,
            **({"lapsed": True} if self.lapsed else {}),
            **({"controller": self.controller} if self.controller else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionRate:
    """One DisruptionRate."""

    namespace: str
    name: str
    uid: str = ""
    generation: int = 0
    #: ``None``: it cannot be read, and ``faults`` say why.
    spec: RateSpec | None = None
    faults: tuple[str, ...] = ()
    disruptions: tuple[Disruption, ...] = ()
    status: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


def disruption_rate(body: objects.Object) -> DisruptionRate:
    """A DisruptionRate from its JSON; what is wrong with it is in its faults."""
    meta, status = objects.metadata(body), objects.part(body, "status")
    faults: list[str] = []
    spec = _spec(body.get("spec"), faults)
    generation = meta.get("generation")
    return DisruptionRate(
        namespace=objects.text(body, "namespace") or "default",
        name=objects.text(body, "name"),
        uid=objects.text(body, "uid"),
        generation=generation if isinstance(generation, int) else 0,
        spec=None if faults else spec,
        faults=tuple(faults),
        disruptions=tuple(_stored(objects.parts(status, "disruptions"))),
        status=status,
    )


def _stored(entries: Iterable[Mapping[str, Any]]) -> Iterable[Disruption]:
    for entry in entries:
        uid, pod = entry.get("uid"), entry.get("pod")
        try:
            at = moment.parse(entry.get("time"))
        except ValueError:
            continue
        if isinstance(uid, str) and isinstance(pod, str) and uid:
            yield Disruption(
                pod=pod,
                uid=uid,
                at=at,
                cause=str(entry.get("cause") or ""),
                by=str(entry.get("by") or ""),
                accepted=entry.get("accepted") is not False,
                lapsed=entry.get("lapsed") is True,
                controller=str(entry.get("controller") or ""),
            )


def _spec(body: object, faults: list[str]) -> RateSpec | None:
    if not isinstance(body, Mapping):
        faults.append("spec: an object is needed")
        return None
    fields: dict[str, Any] = {}
    for key, name, reader in _FIELDS:
        if body.get(key) is None:
            continue
        try:
            fields[name] = reader(body[key])
        except ValueError as error:
            faults.append(f"spec.{key}: {error}")
    faults += [f"spec.{key} is not known" for key in body.keys() - _KNOWN]
    if ("selector" in body) is (body.get("byController") is True):
        faults.append("spec: exactly one of selector and byController: true is needed")
    return None if faults else RateSpec(**fields)


def _selector(value: object) -> selectors.Compiled:
    compiled = selectors.from_object(value)
    if compiled is None:
        raise ValueError("an object is needed")
    return compiled


def _limits(value: object) -> tuple[RateLimit, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_LIMITS:
        raise ValueError(f"a list of 1 to {MOST_LIMITS} limits is needed")
    return tuple(map(_limit, value))


def _limit(value: object) -> RateLimit:
    if not isinstance(value, Mapping) or value.keys() != {"count", "window"}:
        raise ValueError(f"count and window are needed, found {shapes.shown(value)}")
    count, window = count_or_percent(value["count"]), seconds(value["window"])
    if not count.percent and count.number > MOST_COUNT:
        raise ValueError(f"a count of {count} is above {MOST_COUNT}: a status keeps {MOST_KEPT}")
    if not 0 < window <= LONGEST_WINDOW:
        raise ValueError(f"the window {shapes.shown(value['window'])} is not above 0 and up to 7d")
    return RateLimit(count, window)


def count_or_percent(value: object) -> CountOrPercent:
    """A number that is not negative, or a text such as ``80%``; ``ValueError`` for others."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31:
        return CountOrPercent(value)
    match = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if match is None or int(match[1]) > _WHOLE_PERCENT:
        raise ValueError(f"expected a number or a percentage, found {shapes.shown(value)}")
    return CountOrPercent(int(match[1]), percent=True)


def seconds(value: object) -> float:
    """A duration that is not negative; days (``7d``) are taken as well."""
    spelled = str(value)
    if spelled.endswith("d") and spelled[:-1].isascii() and spelled[:-1].isdigit():
        return 86400.0 * int(spelled[:-1][:6])
    length = moment.duration(value)
    if length < 0:
        raise ValueError(f"a duration is not negative, found {shapes.shown(value)}")
    return length


def _gap(value: object) -> float:
    length = seconds(value)
    if length > LONGEST_WINDOW:
        raise ValueError(f"{shapes.shown(value)} is longer than 7d")
    return length


def _causes(value: object) -> frozenset[str]:
    if not isinstance(value, list) or not all(isinstance(cause, str) for cause in value):
        raise ValueError(f"expected a list of causes, found {shapes.shown(value)}")
    return frozenset(value)


_FIELDS = (
    ("selector", "selector", _selector),
    ("limits", "limits", _limits),
    ("minUp", "min_up", count_or_percent),
    ("minGap", "min_gap_seconds", _gap),
    ("reserve", "reserve", count_or_percent),
    ("exempt", "exempt", _causes),
)
_KNOWN = {"byController", *(key for key, _, _ in _FIELDS)}
