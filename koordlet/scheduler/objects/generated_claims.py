"""The claim that a template makes for one pod.

Covers: its name, owner, annotation, what the template says. Does not cover: when it is made
(``standalone.claims``, ``sim.claims``; in a cluster a controller of Kubernetes does it).
"""

from __future__ import annotations

from typing import Any

from koordlet.kubeapi import kinds
from koordlet.scheduler.objects.resource_claims import POD_CLAIM_NAME, ClaimTemplate


def body(template: ClaimTemplate, pod: str, uid: str, pod_claim: str) -> dict[str, Any]:
    """A claim for a pod by name and UID, and for one of its entries; the store ends its name."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid}
    return {
        "apiVersion": kinds.RESOURCE_CLAIMS.api_version,
        "kind": kinds.RESOURCE_CLAIMS.name,
        "metadata": {
            "generateName": f"{pod}-{pod_claim}-",
            "namespace": template.namespace,
            "labels": dict(template.labels),
            "annotations": {**template.annotations, POD_CLAIM_NAME: pod_claim},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": dict(template.spec),
    }
