"""The status of a PodDisruptionBudget, as its controller writes it: no I/O, no clock.

Covers: expected, desired and current health, how many may go. Does not cover: controllers' scales:
a standalone scheduler knows none, so what is expected is how many pods there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from koordlet.model import moment
from koordlet.scheduler.objects import terms, wire
from koordlet.scheduler.objects.wire import BadObjectError, Body

#: Seconds after which a pod that was said to go, and is still there, counts again.
_DISRUPTED = 120.0


def status(budget: Body, pods: Sequence[Body], now: float) -> dict[str, Any]:
    """The status to write; ``BadObjectError`` where the budget cannot be read."""
    meta, spec = wire.mapping(budget, "metadata"), wire.mapping(budget, "spec")
    selector = terms.selector(spec, "selector")
    namespace = wire.text(meta, "namespace") or "default"
    metas = ((pod, wire.mapping(pod, "metadata")) for pod in pods if selector is not None)
    mine = [
        pod
        for pod, own in metas
        if wire.text(own, "namespace") == namespace
        and terms.holds(selector, wire.labels(own))
        and not ended(pod)
    ]
    leaving = _leaving(budget, mine, now)
    healthy = sum(_healthy(pod) and _name(pod) not in leaving for pod in mine)
    desired = _desired(spec, len(mine))
    allowed = max(0, healthy - desired) if mine else 0
    return {
        "expectedPods": len(mine),
        "desiredHealthy": desired,
        "currentHealthy": healthy,
        "disruptionsAllowed": allowed,
        "disruptedPods": leaving,
        "observedGeneration": wire.integer(meta, "generation"),
    }


def _leaving(budget: Body, pods: Sequence[Body], now: float) -> dict[str, str]:
    """Pods whose eviction was announced lately and that are not deleted yet."""
    stated = wire.mapping(wire.mapping(budget, "status"), "disruptedPods")
    staying = {_name(pod) for pod in pods if not _terminating(pod)}
    leaving = {}
    for name, since in stated.items():
        try:
            fresh = now - moment.parse(since) < _DISRUPTED
        except ValueError:
            continue
        if fresh and name in staying:
            leaving[str(name)] = str(since)
    return leaving


def _desired(spec: Body, expected: int) -> int:
    """The number of pods that must stay healthy; percentages are rounded up."""
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if most is not None:
        return max(0, expected - _share(most, expected))
    return max(0, _share(1 if least is None else least, expected))


def _share(spelled: Any, whole: int) -> int:
    if isinstance(spelled, str) and spelled.endswith("%") and spelled[:-1].isdigit():
        return math.ceil(int(spelled[:-1]) * whole / 100)
    if isinstance(spelled, int) and not isinstance(spelled, bool):
        return spelled
    raise BadObjectError(f"{spelled!r} is neither a number nor a percentage")


def ended(pod: Body) -> bool:
    """Whether a pod has terminated."""
    return wire.mapping(pod, "status").get("phase") in {"Succeeded", "Failed"}


def _healthy(pod: Body) -> bool:
    """Whether a pod is ready; without a Ready condition, whether it has a node."""
    if _terminating(pod) or not wire.text(wire.mapping(pod, "spec"), "nodeName"):
        return False
    stated = wire.bodies(wire.mapping(pod, "status"), "conditions")
    ready = [condition.get("status") for condition in stated if condition.get("type") == "Ready"]
    return not ready or ready[0] == "True"


def _terminating(pod: Body) -> bool:
    return wire.mapping(pod, "metadata").get("deletionTimestamp") is not None


def _name(pod: Body) -> str:
    return wire.text(wire.mapping(pod, "metadata"), "name")
