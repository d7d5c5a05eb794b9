"""The pods of Deployments that are given without their pods, as manuals write them.

Covers: one Deployment to pending pods. Does not cover: any other controller, rolling updates.

Where a pod in the input matches the selector, the Deployment has been at work and its pods are what
they are: nothing is made.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from koordlet.scheduler.objects import terms, wire
from koordlet.scheduler.objects.wire import BadObjectError, Body

#: More than any simulation needs of one template.
_MOST = 100_000


def pods(deployment: Body, known: Iterable[Body]) -> Sequence[dict[str, Any]]:
    """The pods that its controller would make; ``BadObjectError`` where it cannot be read."""
    meta, spec = wire.mapping(deployment, "metadata"), wire.mapping(deployment, "spec")
    name, namespace = wire.text(meta, "name"), wire.text(meta, "namespace") or "default"
    selector = terms.selector(spec, "selector")
    if selector is None or not selector.labels:
        raise BadObjectError("spec.selector is missing")
    if any(_of(pod, namespace, selector) for pod in known):
        return ()
    replicas = wire.integer(spec, "replicas", 1)
    if not 0 <= replicas <= _MOST:
        raise BadObjectError(f"spec.replicas is {replicas}, {_MOST} at most")
    template = wire.mapping(spec, "template")
    labels = wire.labels(wire.mapping(template, "metadata"))
    if not terms.holds(selector, labels):
        raise BadObjectError("spec.selector does not match the labels of its template")
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "controller": True}
    meta = {**wire.mapping(template, "metadata"), "namespace": namespace}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**meta, "name": f"{name}-{number}", "ownerReferences": [owner]},
            "spec": copy.deepcopy(dict(wire.mapping(template, "spec"))),
        }
        for number in range(replicas)
    ]


def _of(pod: Body, namespace: str, selector: Any) -> bool:
    meta = pod.get("metadata")
    if not isinstance(meta, dict) or (meta.get("namespace") or "default") != namespace:
        return False
    labels = meta.get("labels")
    return isinstance(labels, dict) and bool(terms.holds(selector, labels))
