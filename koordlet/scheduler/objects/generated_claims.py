"""Claims that are made for one pod: of a template, or for its extended resources.

Covers: templates; name, owner, annotation and specification of such a claim. Does not cover: when
one of a template is made (``standalone.claims``, ``sim.claims``; in a cluster a controller of
Kubernetes does it), what the other one asks for (``extended_resources``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from koordlet.kubeapi import kinds
from koordlet.model.record import dataclass
from koordlet.scheduler.objects import resource_claims, wire
from koordlet.scheduler.objects.resource_claims import EXTENDED_RESOURCE_CLAIM, POD_CLAIM_NAME
from koordlet.scheduler.objects.wire import Body


@dataclass(frozen=True, slots=True)
class ClaimTemplate:
    """What claims that are made from it shall be."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Body


def decode_template(body: Body) -> ClaimTemplate:
    """A template from its JSON; the claim in it is decoded once to see that it can be."""
    meta, spec = wire.mapping(body, "metadata"), wire.mapping(body, "spec")
    own = wire.mapping(spec, "metadata")
    wire.part(body, "spec", lambda template: wire.part(template, "spec", resource_claims.asked))
    return ClaimTemplate(
        namespace=wire.text(meta, "namespace") or "default",
        name=wire.name(meta),
        labels=wire.labels(own),
        annotations={k: str(v) for k, v in wire.mapping(own, "annotations").items()},
        spec=wire.mapping(spec, "spec"),
    )


def of_template(template: ClaimTemplate, pod: str, uid: str, pod_claim: str) -> dict[str, Any]:
    """A claim for a pod by name and UID, and for one of its entries; the store ends its name."""
    made = _claim(template.namespace, pod, uid, pod_claim)
    own = made["metadata"]
    own |= {
        "labels": dict(template.labels),
        "annotations": {**template.annotations, POD_CLAIM_NAME: pod_claim},
    }
    own["ownerReferences"][0]["blockOwnerDeletion"] = True
    return made | {"spec": dict(template.spec)}


def of_resources(
    namespace: str, pod: str, uid: str, requests: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """A claim that stands for a pod's extended resources; the store ends its name."""
    made = _claim(namespace, pod, uid, "extended-resources")
    made["metadata"]["annotations"] = {EXTENDED_RESOURCE_CLAIM: "true"}
    return made | {"spec": {"devices": {"requests": list(requests)}}}


def _claim(namespace: str, pod: str, uid: str, ending: str) -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid, "controller": True}
    return {
        "apiVersion": kinds.RESOURCE_CLAIMS.api_version,
        "kind": kinds.RESOURCE_CLAIMS.name,
        "metadata": {
            "generateName": f"{pod}-{ending}-",
            "namespace": namespace,
            "ownerReferences": [owner],
        },
    }
