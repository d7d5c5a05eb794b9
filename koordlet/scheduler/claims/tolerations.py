"""Taints of devices, and who bears them."""

from __future__ import annotations

from collections.abc import Iterable

from koordlet.scheduler.objects import resource_claims, resource_slices

#: A taint that only informs.
_NO_EFFECT = "None"


def tolerated(
    taints: Iterable[resource_slices.DeviceTaint],
    tolerations: Iterable[resource_claims.DeviceToleration],
) -> bool:
    """Whether a request bears all taints of a device."""
    return all(
        taint.effect == _NO_EFFECT
        or any(tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
    )


def tolerates(
    toleration: resource_claims.DeviceToleration, taint: resource_slices.DeviceTaint
) -> bool:
    """The rule of taints of nodes, with two operators only."""
    if toleration.effect not in {"", taint.effect} or toleration.key not in {"", taint.key}:
        return False
    if toleration.operator in {"", "Equal"}:
        return toleration.value == taint.value
    return toleration.operator == "Exists"
