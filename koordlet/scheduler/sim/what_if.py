"""What if some objects were others: two simulations of one cluster, and what differs.

Covers: the objects of the second, the document. Does not cover: printing (``cli.quotas``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from koordlet.scheduler.sim.simulation import Result

Body = Mapping[str, Any]


def replaced(bodies: Sequence[Body], changed: Sequence[Body]) -> list[Body]:
    """The objects, with some in place of those of the same kind and name."""
    names = {_named(body) for body in changed}
    return [*(body for body in bodies if _named(body) not in names), *changed]


def _named(body: Body) -> tuple[object, ...]:
    meta = body.get("metadata") or {}
    return body.get("kind"), meta.get("namespace") or "default", meta.get("name")


def document(before: Result, after: Result) -> dict[str, Any]:
    """The pods whose node differs, and the quotas of both."""
    old, new = _nodes(before), _nodes(after)
    pods = [
        {"pod": pod, "before": old.get(pod), "after": new.get(pod)}
        for pod in sorted(old.keys() | new.keys())
        if old.get(pod) != new.get(pod)
    ]
    return {"pods": pods, "before": before.quotas, "after": after.quotas}


def _nodes(result: Result) -> dict[str, str | None]:
    """The node of each pod that was tried; ``None``: it waits."""
    return {
        **{waiting["pod"]: None for waiting in result.pending},
        **{placement["pod"]: placement["node"] for placement in result.placements},
    }
