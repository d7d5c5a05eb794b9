"""A pod with scheduling gates that is handed in again: what may change of it.

Covers: KEP-3838. Does not cover: pods without gates, which do not change.

Rules, those of an API server:
1. Gates are only removed.
2. ``nodeSelector`` only gains keys.
3. Required node affinity only becomes stricter: where there was none it may be any; a term only
   gains requirements at its end; terms are neither added nor removed, for they are alternatives.
4. Preferred node affinity is free, and so are labels and annotations. All else stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from koordlet.kubeapi import objects, refusals

Body = Mapping[str, Any]

_NEEDS = "requiredDuringSchedulingIgnoredDuringExecution"
_WISHES = "preferredDuringSchedulingIgnoredDuringExecution"
_TERMS = "nodeSelectorTerms"
_FREE = {"nodeSelector", "affinity", "schedulingGates"}


def patch(stored: Body, wish: Body) -> dict[str, Any]:
    """The merge patch that makes the wish of the stored pod; ``Invalid`` by rules 1 to 4."""
    old, new = objects.part(stored, "spec"), objects.part(wish, "spec")
    if fault := next(_faults(old, new), ""):
        raise refusals.Invalid(fault, fix="delete the pod and hand it in anew, or leave it out")
    marks = {key: objects.part(objects.metadata(wish), key) for key in ("labels", "annotations")}
    node = _node_affinity(new)
    return {
        "metadata": marks,
        "spec": {
            "schedulingGates": objects.listed(new, "schedulingGates"),
            "nodeSelector": objects.part(new, "nodeSelector"),
            "affinity": {"nodeAffinity": {key: node.get(key) for key in (_NEEDS, _WISHES)}},
        },
    }


def _faults(old: Body, new: Body) -> Iterator[str]:
    gates = objects.parts(old, "schedulingGates")
    for path, gate in objects.each(new, "spec.schedulingGates"):
        if gate not in gates:
            yield f"{path}: a gate may only be removed, and {gate.get('name')!r} is new"
    chosen = objects.part(new, "nodeSelector")
    for key, value in objects.part(old, "nodeSelector").items():
        if chosen.get(key) != value:
            yield f"spec.nodeSelector: may only gain keys, and {key!r} is gone or another"
    required = _node_affinity(old).get(_NEEDS)
    if required is not None:
        yield from _loosened(required, objects.part(_node_affinity(new), _NEEDS))
    was, becomes = (
        {**{key: spec[key] for key in spec.keys() - _FREE}, "affinity": _of_pods(spec)}
        for spec in (old, new)
    )
    for key in sorted(was.keys() | becomes.keys()):
        if was.get(key) != becomes.get(key):
            yield (
                f"spec.{key}: of a pod with gates only schedulingGates, nodeSelector and"
                " affinity.nodeAffinity may change"
            )


def _loosened(old: Body, new: Body) -> Iterator[str]:
    path = f"spec.affinity.nodeAffinity.{_NEEDS}.{_TERMS}"
    before, after = objects.parts(old, _TERMS), objects.parts(new, _TERMS)
    if len(before) != len(after):
        yield f"{path}: {len(before)} terms cannot become {len(after)}"
        return
    for place, (term, other) in enumerate(zip(before, after, strict=True)):
        several = [
            (objects.listed(term, key), objects.listed(other, key))
            for key in ("matchExpressions", "matchFields")
        ]
        # A term without requirements matches nothing: any would make it wider.
        empty = not any(was for was, _ in several) and any(now for _, now in several)
        if empty or any(now[: len(was)] != was for was, now in several):
            yield f"{path}[{place}]: may only gain requirements at its end"


def _node_affinity(spec: Body) -> Body:
    return objects.part(objects.part(spec, "affinity"), "nodeAffinity")


def _of_pods(spec: Body) -> dict[str, Any]:
    affinity = objects.part(spec, "affinity")
    return {key: value for key, value in affinity.items() if key != "nodeAffinity" and value}
