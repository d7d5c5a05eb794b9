"""The Node's taints: ours keep schedulers without our feed away from a node under pressure. Pure.

Covers: which conditions are worth one, how they are laid beside those of others.
Does not cover: when they are written (``report.tainting``), the conditions (``policy``).

Rules:
1. Our keys have our prefix. ``node.kubernetes.io/…`` belongs to the control plane, which makes it
   of the kubelet's conditions and would take away what it did not make.
2. Whatever has another key stays as it is, where it is; so does ours where it is right.
3. A workload near its own limit harms nobody but itself: no taint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from koordlet.report import view

#: Condition to the key of its taint.
KEYS: Mapping[str, str] = {
    "MemoryPressure": "koordlet.io/memory-pressure",
    "DiskPressure": "koordlet.io/disk-pressure",
    "PIDPressure": "koordlet.io/pid-pressure",
    "MemoryStalled": "koordlet.io/memory-stalled",
    "CPUStalled": "koordlet.io/cpu-stalled",
    "IOStalled": "koordlet.io/io-stalled",
    "SwapPressure": "koordlet.io/swap-pressure",
}
_OURS = frozenset(KEYS.values())


def wanted(now: view.ReportView) -> frozenset[str]:
    """The keys of the conditions that hold."""
    holding = (
        condition
        for condition in now.plan.conditions
        if condition.subject == "node" and condition.status
    )
    return frozenset(KEYS[one.type] for one in holding if one.type in KEYS)


def ours(marks: Iterable[str]) -> frozenset[str]:
    """The taints of koordlet as ``KEY:EFFECT``."""
    return frozenset(mark for mark in marks if mark.rpartition(":")[0] in _OURS)


def laid(node: Mapping[str, Any], keys: Iterable[str], effect: str) -> list[Any] | None:
    """All taints that the node shall have; ``None``: those that it has."""
    spec = node.get("spec")
    listed = spec.get("taints") if isinstance(spec, Mapping) else None
    has = listed if isinstance(listed, list) else []
    missing = dict.fromkeys(sorted(keys))
    kept = []
    for one in has:
        key = one.get("key") if isinstance(one, Mapping) else None
        if key not in _OURS:
            kept.append(one)
        elif key in missing and one.get("effect") == effect:
            kept.append(one)
            del missing[key]
    made = [*kept, *({"key": key, "effect": effect} for key in missing)]
    return None if made == has else made
