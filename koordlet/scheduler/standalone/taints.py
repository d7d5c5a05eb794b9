"""Taints from node conditions, and the pods that they evict: no I/O, no clock.

Covers: the taints of Kubernetes' node controllers, since when a taint is there, when a pod's
toleration ends.
Does not cover: reading and writing objects (``controllers``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from koordlet.model import moment
from koordlet.scheduler.objects import terms, wire
from koordlet.scheduler.objects.wire import BadObjectError, Body

_PREFIX = "node.kubernetes.io/"
#: The effect of a taint that pods leave for.
_ENDS = "NoExecute"
#: Condition and status to the taint's key, and its effects.
_MEANT: Mapping[tuple[str, str], tuple[str, tuple[str, ...]]] = {
    ("MemoryPressure", "True"): ("memory-pressure", ("NoSchedule",)),
    ("DiskPressure", "True"): ("disk-pressure", ("NoSchedule",)),
    ("PIDPressure", "True"): ("pid-pressure", ("NoSchedule",)),
    ("NetworkUnavailable", "True"): ("network-unavailable", ("NoSchedule",)),
    ("Ready", "False"): ("not-ready", ("NoSchedule", _ENDS)),
    ("Ready", "Unknown"): ("unreachable", ("NoSchedule", _ENDS)),
}
_OURS = frozenset(_PREFIX + key for key, _ in _MEANT.values())
#: What an API server adds to every pod: so long it bears a node that is not heard.
SECONDS = 300


def wanted(node: Body, now: str) -> list[dict[str, Any]] | None:
    """The taints that a node should have; ``None``: no change.

    Taints that are not of conditions stay as they are, and so does the time of those that last.
    """
    has = [dict(taint) for taint in wire.bodies(wire.mapping(node, "spec"), "taints")]
    meant: list[tuple[str, str]] = []
    for condition in wire.bodies(wire.mapping(node, "status"), "conditions"):
        taint_of = _MEANT.get((wire.text(condition, "type"), wire.text(condition, "status")))
        if taint_of is not None:
            meant += [(_PREFIX + taint_of[0], effect) for effect in taint_of[1]]
    kept = [taint for taint in has if taint.get("key") not in _OURS or _name(taint) in meant]
    there = {_name(taint) for taint in kept}
    added = [
        {"key": key, "effect": effect, "timeAdded": now}
        for key, effect in meant
        if (key, effect) not in there
    ]
    made = kept + added
    return None if made == has else made


def _name(taint: Body) -> tuple[str, str]:
    return wire.text(taint, "key"), wire.text(taint, "effect")


def dated(spec: Body, before: Body, now: str) -> dict[str, Any]:
    """A node's or a device's fields; a taint that ends pods says since when it is there.

    One that was there before keeps its time, however often the object is handed in.
    """
    since = {
        (*_name(taint), wire.text(taint, "value")): taint.get("timeAdded")
        for taint in wire.bodies(before, "taints")
    }
    taints = [
        {"timeAdded": since.get((*_name(taint), wire.text(taint, "value"))) or now, **taint}
        if wire.text(taint, "effect") == _ENDS
        else dict(taint)
        for taint in wire.bodies(spec, "taints")
    ]
    return {**spec, **({"taints": taints} if taints else {})}


def leaves(pod: Body, taints: Sequence[Body], now: float) -> float | None:
    """When NoExecute taints evict a pod; ``None``: never."""
    tolerations = wire.bodies(wire.mapping(pod, "spec"), "tolerations")
    ends = [
        _end(tolerations, taint, now) for taint in taints if wire.text(taint, "effect") == _ENDS
    ]
    return min((end for end in ends if end is not None), default=None)


def _end(tolerations: Iterable[Body], taint: Body, now: float) -> float | None:
    """When a pod's toleration of one taint ends."""
    mark = terms.taint(taint)
    limits: list[float | None] = []
    for toleration in tolerations:
        try:
            if terms.tolerates(terms.toleration(toleration), mark):
                seconds = toleration.get("tolerationSeconds")
                limits.append(float(seconds) if isinstance(seconds, int | float) else None)
        except BadObjectError:
            continue
    if not limits:
        return now
    bounded = [limit for limit in limits if limit is not None]
    since = now
    with contextlib.suppress(ValueError):
        since = moment.parse(taint.get("timeAdded"))
    return since + max(0.0, min(bounded)) if bounded else None


def tolerations(spec: Body, *, best_effort: bool) -> list[dict[str, Any]]:
    """The tolerations of a new pod, with those that an API server adds."""
    has = [dict(toleration) for toleration in wire.bodies(spec, "tolerations")]
    known = [terms.toleration(taint) for taint in has]
    added = [
        {"key": _PREFIX + key, "operator": "Exists", "effect": _ENDS}
        | {"tolerationSeconds": SECONDS}
        for key in ("not-ready", "unreachable")
        if not terms.tolerated(known, terms.Taint(_PREFIX + key, "", _ENDS))
    ]
    memory = terms.Taint(f"{_PREFIX}memory-pressure", "", "NoSchedule")
    if not best_effort and not terms.tolerated(known, memory):
        added.append({"key": memory.key, "operator": "Exists", "effect": memory.effect})
    return has + added
