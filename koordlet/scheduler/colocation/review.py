"""An AdmissionReview of a new pod, and its answer. Pure.

Covers: ``admission.k8s.io/v1``, the JSON patch, warnings. Does not cover: HTTP
(``process.webhook``), what profiles do (``mutation``).

Rules:
1. Whatever the review holds, the pod is allowed: a profile is a convenience. What was left out is
   said in warnings, which kubectl prints.
2. Only the creation of pods is looked at.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any

from koordlet.kubeapi import objects
from koordlet.model import printable
from koordlet.scheduler.colocation import profile
from koordlet.scheduler.colocation.mutation import ColocatedPod

Body = Mapping[str, Any]

_VERSION, _KIND = "admission.k8s.io/v1", "AdmissionReview"
#: An API server cuts a warning here, and counts those that are longer against the others.
_LONGEST_WARNING = 256
#: Sections of a pod whose fields are patched one by one; all else of it stays.
_SECTIONS = ("metadata", "spec")


def request(body: object) -> Body:
    """The request of a review; ``ValueError`` where it is none."""
    inner = objects.part(body, "request") if isinstance(body, Mapping) else {}
    if not isinstance(body, Mapping) or body.get("kind") != _KIND or not inner.get("uid"):
        raise ValueError(f"not an {_KIND} of {_VERSION} with a request that has a uid")
    if body.get("apiVersion") != _VERSION:
        raise ValueError(f"apiVersion is {str(body.get('apiVersion'))[:60]!r}, not {_VERSION!r}")
    return inner


def pod(asked: Body) -> Body | None:
    """The pod that a request would create; ``None`` by rule 2."""
    resource = objects.part(asked, "resource")
    is_pod = (resource.get("group") or "", resource.get("resource")) == ("", "pods")
    created = asked.get("operation") == "CREATE" and not asked.get("subResource")
    body = asked.get("object")
    return body if is_pod and created and isinstance(body, Mapping) else None


def identity(asked: Body, new: Body) -> str:
    """What decides a draw: pods of a controller have no name yet, but their request has an UID."""
    name = objects.text(new, "name") or asked["uid"]
    return profile.identity(asked.get("namespace") or "", name)


def answer(asked: Body, before: Body | None, after: ColocatedPod | None) -> dict[str, Any]:
    """The review with its response."""
    response: dict[str, Any] = {"uid": asked["uid"], "allowed": True}
    if before is not None and after is not None:
        if operations := list(_patch(before, after.body)):
            response["patchType"] = "JSONPatch"
            response["patch"] = base64.b64encode(json.dumps(operations).encode()).decode()
        if after.faults:
            response["warnings"] = [
                printable.escaped(fault)[:_LONGEST_WARNING] for fault in after.faults
            ]
    return {"apiVersion": _VERSION, "kind": _KIND, "response": response}


def _patch(before: Body, after: Body) -> Iterator[dict[str, Any]]:
    for section in _SECTIONS:
        old, new = objects.part(before, section), objects.part(after, section)
        if section not in before and new:
            yield {"op": "add", "path": f"/{section}", "value": new}
            continue
        for key in sorted(old.keys() | new.keys()):
            path = f"/{section}/{key.replace('~', '~0').replace('/', '~1')}"
            if key not in new:
                yield {"op": "remove", "path": path}
            elif key not in old or old[key] != new[key]:
                yield {"op": "add", "path": path, "value": new[key]}
