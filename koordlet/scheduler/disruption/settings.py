"""The configuration of the limiter: ReschedulingConfiguration.

Covers: keys, defaults and bounds; the table of the reference page. Does not cover: a peer's
limits of a mover, which are that mover's (``limiter.Mover``).

A document that cannot be used is refused with the field; an unknown key is an error, as a limit
that is misspelled would not limit.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from koordlet.kubeapi import disruption_rates, kinds, shapes
from koordlet.kubeapi.disruption_rates import CountOrPercent, RateLimit
from koordlet.model import errors
from koordlet.model.record import dataclass
from koordlet.scheduler.disruption import headroom
from koordlet.scheduler.disruption.headroom import Headroom

API_VERSION, KIND = kinds.DISRUPTION_RATES.api_version, "ReschedulingConfiguration"


class Aggressiveness(enum.Enum):
    """How far background movers go.

    The percentage of every budget, evictions a minute; the gain for which a pod is moved, and in
    how many rounds in a row it has to be seen.
    """

    LOW = ("Low", 25, 2, 0.30, 10)
    NORMAL = ("Normal", 50, 10, 0.15, 5)
    HIGH = ("High", 100, 30, 0.05, 2)

    def __init__(self, word: str, share: int, per_minute: int, gain: float, rounds: int) -> None:
        self.word, self.share, self.per_minute = word, share, per_minute
        self.gain, self.rounds = gain, rounds


@dataclass(frozen=True, slots=True)
class DefaultRate:
    """The rate of controllers without a DisruptionRate, from a priority on."""

    priority_at_least: int
    limit: RateLimit


@dataclass(frozen=True, slots=True)
class RateFloor:
    """How strict a DisruptionRate may be for pods below a priority."""

    priority_at_least: int
    max_min_up: CountOrPercent | None = None
    min_count_per_day: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LimiterSettings:
    """The bounds of evictions in the whole cluster; ``None``: as the dial or a formula says."""

    per_minute: int | None = None
    in_flight: int = 50
    per_node_in_flight: int = 2
    per_node_five_minutes: int = 5
    per_namespace_in_flight: int | None = None
    per_controller_in_flight: CountOrPercent | None = None
    per_controller_unavailable: CountOrPercent | None = None
    cool_down_seconds: float = 1800.0
    not_ready_percent: int = 20
    pending_percent: int = 25
    shares: Mapping[str, int] = field(default_factory=dict)
    background: frozenset[str] = frozenset({"defragment", "descheduler"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSettings:
    """Which plans of moves begin by themselves; 0 seconds: none."""

    make_room_after: float = 0.0
    consolidate_every: float = 0.0
    #: They move pods, and do not only show which they would.
    acts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionSettings:
    """How pods make room for more important ones."""

    #: A reservation holds the place of the preemptor until it is bound.
    hold_place: bool = False
    #: Equals make room for a workload that is below its fair share.
    fair: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionSettings:
    """Everything that is configured about disruptions."""

    aggressiveness: Aggressiveness = Aggressiveness.NORMAL
    #: The highest priority first.
    defaults: tuple[DefaultRate, ...] = ()
    floor: RateFloor | None = None
    limiter: LimiterSettings = field(default_factory=LimiterSettings)
    plans: PlanSettings = field(default_factory=PlanSettings)
    headroom: tuple[Headroom, ...] = ()
    preemption: PreemptionSettings = field(default_factory=PreemptionSettings)
    #: Replacements at the front of the queue come before pods of a higher priority, too.
    front_across_priorities: bool = False

    @property
    def per_minute(self) -> int:
        """Evictions a minute of all movers without a limit of their own."""
        own = self.limiter.per_minute
        return self.aggressiveness.per_minute if own is None else own


@dataclass(frozen=True, slots=True)
class SettingKey:
    """One key: where it stands, what it takes, what it means."""

    path: str
    takes: str
    default: str
    meaning: str
    reader: Callable[[Any], Any]
    #: The field of the record.
    name: str


def _word(value: object) -> Aggressiveness:
    for dial in Aggressiveness:
        if dial.word == value:
            return dial
    words = ", ".join(dial.word for dial in Aggressiveness)
    raise ValueError(f"expected one of {words}, found {shapes.shown(value)}")


def _whole(value: object) -> int:
    return int(shapes.integer(0, 2**31 - 1)(value, []))


def _priority(value: object) -> int:
    return int(shapes.integer(-(2**31), 2**31 - 1)(value, []))


def _acts(value: object) -> bool:
    if value not in {"Shadow", "Act"}:
        raise ValueError(f"expected one of Shadow, Act, found {shapes.shown(value)}")
    return value == "Act"


def _fair(value: object) -> bool:
    if value not in {"Never", "Fair"}:
        raise ValueError(f"expected one of Never, Fair, found {shapes.shown(value)}")
    return value == "Fair"


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, found {shapes.shown(value)}")
    return value


def _percent(value: object) -> int:
    spelled = value.removesuffix("%") if isinstance(value, str) else value
    whole = int(spelled) if isinstance(spelled, str) and spelled.isdigit() else spelled
    return int(shapes.integer(0, 100)(whole, []))


def _shares(value: object) -> dict[str, int]:
    return {str(name): _percent(share) for name, share in shapes.mapping(value).items()}


def _names(value: object) -> frozenset[str]:
    return frozenset(shapes.listing(shapes.text)(value, []))


def _table(value: object, readers: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
    body = shapes.mapping(value)
    if unknown := sorted(map(str, body.keys() - readers.keys())):
        raise ValueError(f"{unknown[0]!r} is not known; known are {', '.join(readers)}")
    return {key: readers[key](item) for key, item in body.items()}


def _defaults(value: object) -> tuple[DefaultRate, ...]:
    if not isinstance(value, list):
        raise ValueError(f"expected a list, found {shapes.shown(value)}")
    readers = {
        "priorityAtLeast": _priority,
        "count": disruption_rates.count_or_percent,
        "window": disruption_rates.seconds,
    }
    rows = []
    for item in value:
        row = _table(item, readers)
        if row.keys() != readers.keys():
            raise ValueError(f"each row needs {', '.join(readers)}, found {shapes.shown(item)}")
        if not 0 < row["window"] <= disruption_rates.LONGEST_WINDOW:
            raise ValueError(f"a window is above 0 and up to 7d, found {shapes.shown(item)}")
        rows.append(DefaultRate(row["priorityAtLeast"], RateLimit(row["count"], row["window"])))
    return tuple(sorted(rows, key=lambda rate: -rate.priority_at_least))


def _floor(value: object) -> RateFloor:
    row = _table(
        value,
        {
            "priorityAtLeast": _priority,
            "maxMinUp": disruption_rates.count_or_percent,
            "minCountPerDay": _whole,
        },
    )
    if "priorityAtLeast" not in row:
        raise ValueError("priorityAtLeast is needed: from there on pods may be as strict as given")
    return RateFloor(row["priorityAtLeast"], row.get("maxMinUp"), row.get("minCountPerDay", 0))


_COUNT = disruption_rates.count_or_percent
#: In the order of the reference page.
KEYS = (
    SettingKey(
        "aggressiveness", "`Low`, `Normal`, `High`", "`Normal`",
        "How far background movers go: 25, 50 or 100 % of every budget, and 2, 10 or 30 evictions a"
        " minute. `BetterAffinity` moves for a gain of 0.30, 0.15 or 0.05 that 10, 5 or 2 rounds in"
        " a row have seen.", _word, "aggressiveness",
    ),
    SettingKey(
        "disruption.defaults", "list of `{priorityAtLeast, count, window}`", "none",
        "The rate of each controller without a DisruptionRate, by the highest priority of its"
        " pods.", _defaults, "defaults",
    ),
    SettingKey(
        "disruption.floor", "`{priorityAtLeast, maxMinUp, minCountPerDay}`", "none",
        "How strict a DisruptionRate may be for pods below that priority; a stricter one is"
        " honoured up to here, with condition `Clipped`.", _floor, "floor",
    ),
    SettingKey(
        "limiter.perMinute", "whole number", "by `aggressiveness`",
        "Evictions a minute of all movers without a limit of their own.", _whole, "per_minute",
    ),
    SettingKey(
        "limiter.inFlight", "whole number", "`50`", "Evictions in flight at once.", _whole,
        "in_flight",
    ),
    SettingKey(
        "limiter.perNodeInFlight", "whole number", "`2`",
        "Evictions in flight from one node.", _whole, "per_node_in_flight",
    ),
    SettingKey(
        "limiter.perNodeFiveMinutes", "whole number", "`5`",
        "Evictions from one node in five minutes.", _whole, "per_node_five_minutes",
    ),
    SettingKey(
        "limiter.perNamespaceInFlight", "whole number", "unlimited",
        "Evictions in flight in one namespace.", _whole, "per_namespace_in_flight",
    ),
    SettingKey(
        "limiter.perControllerInFlight", "number or percentage", "by replicas",
        "Evictions in flight of one controller, and its evictions in five minutes: 10 % of more"
        " than 10 replicas, 2 of 4 to 10, 1 of fewer.", _COUNT, "per_controller_in_flight",
    ),
    SettingKey(
        "limiter.perControllerUnavailable", "number or percentage", "by replicas",
        "Pods of one controller that may be in flight or not up, the next one included; the same"
        " formula.", _COUNT, "per_controller_unavailable",
    ),
    SettingKey(
        "limiter.coolDown", "duration", "`30m`",
        "Time between two moves of one controller's pods by background movers and migrations.",
        disruption_rates.seconds, "cool_down_seconds",
    ),
    SettingKey(
        "limiter.notReadyPercent", "0 to 100", "`20`",
        "Nobody is evicted while more of the nodes than this are not ready.", _percent,
        "not_ready_percent",
    ),
    SettingKey(
        "limiter.pendingPercent", "0 to 100", "`25`",
        "Nobody is moved while more of the pods than this wait for a node.", _percent,
        "pending_percent",
    ),
    SettingKey(
        "limiter.shares", "map of component to percentage", "none",
        "The part of each count of a DisruptionRate that a component may use, at least 1.",
        _shares, "shares",
    ),
    SettingKey(
        "limiter.background", "list of components", "`defragment`, `descheduler`",
        "The components that keep off the `reserve` of a DisruptionRate, and share what"
        " `aggressiveness` gives.", _names, "background",
    ),
    SettingKey(
        "plans.makeRoomAfter", "duration", "never",
        "A pod that its scheduler has refused for so long gets a plan of moves that would make room"
        " for it.", disruption_rates.seconds, "make_room_after",
    ),
    SettingKey(
        "plans.consolidateEvery", "duration", "never",
        "So often a plan of moves that would empty a node is made, while no pod waits.",
        disruption_rates.seconds, "consolidate_every",
    ),
    SettingKey(
        "plans.mode", "`Shadow`, `Act`", "`Shadow`",
        "Whether plans that begin by themselves move pods, or only show which they would.", _acts,
        "acts",
    ),
    SettingKey(
        "headroom", "list of `{cpu, memory, …, nodes}`", "none",
        "So many nodes (1 to 1000; 1 where it is left out) are to have room for a pod of that size;"
        " while fewer have it, and no pod waits, a plan of moves would make room on one more.",
        headroom.read, "headroom",
    ),
    SettingKey(
        "preemption.equalPriority", "`Never`, `Fair`", "`Never`",
        "Whether a pod whose workload is below its fair share of what its priority has takes the"
        " place of a pod of the same priority whose workload is above its own.", _fair, "fair",
    ),
    SettingKey(
        "preemption.holdPlace", "`true`, `false`", "`false`",
        "Whether a reservation holds the room of the victims for the preemptor: no other pod gets"
        " it, whatever its priority.", _flag, "hold_place",
    ),
    SettingKey(
        "queue.frontAcrossPriorities", "`true`, `false`", "`false`",
        "Whether replacements of pods that were moved come before pods of a higher priority, too,"
        " and not before their equals alone.", _flag, "front_across_priorities",
    ),
)  # fmt: skip


def read(body: Mapping[str, Any], where: str) -> DisruptionSettings:
    """Read a ReschedulingConfiguration; ``ConfigError`` names the field."""
    if body.get("apiVersion") != API_VERSION:
        raise errors.ConfigError(
            f"apiVersion {shapes.shown(body.get('apiVersion'))} is not {API_VERSION}", culprit=where
        )
    flat = _flattened(body, where)
    top: dict[str, Any] = {}
    sections: dict[str, dict[str, Any]] = {"limiter": {}, "plans": {}, "preemption": {}}
    for key in KEYS:
        if flat.get(key.path) is None:
            continue
        try:
            value = key.reader(flat[key.path])
        except ValueError as error:
            raise errors.ConfigError(str(error), culprit=f"{where}: {key.path}") from error
        sections.get(key.path.partition(".")[0], top)[key.name] = value
    return DisruptionSettings(
        **top,
        limiter=LimiterSettings(**sections["limiter"]),
        plans=PlanSettings(**sections["plans"]),
        preemption=PreemptionSettings(**sections["preemption"]),
    )


def _flattened(body: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Each key by its path; ``ConfigError`` for one that is not known."""
    flat: dict[str, Any] = {}
    for key, value in body.items():
        if key in {"apiVersion", "kind", "metadata"}:
            continue
        if key not in {"disruption", "limiter", "plans", "preemption", "queue"}:
            flat[key] = value
        elif isinstance(value, Mapping):
            flat |= {f"{key}.{inner}": item for inner, item in value.items()}
        elif value is not None:
            raise errors.ConfigError("expected an object", culprit=f"{where}: {key}")
    known = {key.path for key in KEYS}
    if unknown := sorted(flat.keys() - known):
        raise errors.ConfigError(
            "is not known", culprit=f"{where}: {unknown[0]}", fix=f"known are {', '.join(known)}"
        )
    return flat
