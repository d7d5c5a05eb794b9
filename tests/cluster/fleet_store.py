"""The objects of one fleet on a real API server: made, read, deleted before the next fleet comes.

Covers: everything but pods; what controllers make for a pod. Does not cover: what the objects are
(``fleet``), pods and what becomes of them (``kube_scheduler``).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection

from tests.cluster.fleet_nodes import HELD
from tests.kit import deadline, k8s_lab
from tests.oracle.clusters import SPACES
from tests.oracle.objects import Body, selects

#: The first status of an answer that is a refusal.
REFUSED = 400
MERGE = "application/merge-patch+json"
CLAIMS = "/api/v1/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
_SPACED_CLAIMS = "/api/v1/namespaces/d/persistentvolumeclaims"
_NODES = "/api/v1/nodes"
_DEVICES = "/apis/resource.k8s.io/v1"
#: Lists that no pod changes.
_FIXED = (
    "/api/v1/nodes",
    "/api/v1/namespaces",
    "/api/v1/services",
    "/apis/apps/v1/replicasets",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/storage.k8s.io/v1/volumeattachments",
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/storage.k8s.io/v1/csistoragecapacities",
    f"{_DEVICES}/deviceclasses",
    f"{_DEVICES}/resourceslices",
)
#: Lists that are emptied for the next fleet; pods first, as claims stay while a pod uses them.
_LEFT = (
    *(f"/api/v1/namespaces/{space}/pods" for space in SPACES),
    *(f"/api/v1/namespaces/{space}/services" for space in SPACES),
    *(f"/apis/apps/v1/namespaces/{space}/replicasets" for space in SPACES),
    *(f"/apis/policy/v1/namespaces/{space}/poddisruptionbudgets" for space in SPACES),
    _SPACED_CLAIMS,
    *(f"/api/v1/namespaces/{space}/persistentvolumeclaims" for space in SPACES if space != "d"),
    "/apis/storage.k8s.io/v1/volumeattachments",
    VOLUMES,
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/storage.k8s.io/v1/namespaces/d/csistoragecapacities",
    *(f"{_DEVICES}/namespaces/{space}/resourceclaims" for space in SPACES),
    f"{_DEVICES}/resourceslices",
    f"{_DEVICES}/namespaces/d/resourceclaimtemplates",
    f"{_DEVICES}/deviceclasses",
    _NODES,
)


class FleetStore:
    """What the fleet before left is deleted first."""

    def __init__(self, admin: k8s_lab.Admin) -> None:
        self._admin = admin
        self._release(_NODES, _SPACED_CLAIMS)
        for path in _LEFT:
            # At once also where they are given time already.
            admin.need("DELETE", path, {"gracePeriodSeconds": 0})
        deadline.until(self._is_empty, "the objects of the fleet before are gone")
        self._fixed: list[Body] = []
        self._claimed: list[Body] = []
        #: By path.
        self._budgets: dict[str, Body] = {}
        self._looks = itertools.count()
        #: Controllers of pods: their UID, by namespace and name.
        self._owners: dict[str, str] = {}

    def create(self, objects: dict[str, list[Body]]) -> None:
        """Create these, by the path that makes them."""
        for path, bodies in objects.items():
            for body in bodies:
                created = self._admin.need("POST", path, body)
                self._end(f"{path}/{created['metadata']['name']}", created)
                if created["kind"] == "ReplicaSet":
                    self._owners[key_of(created)] = created["metadata"]["uid"]
                if created["kind"] == "PodDisruptionBudget":
                    self._budgets[f"{path}/{created['metadata']['name']}"] = created

    def hollow_nodes(self, bodies: list[Body]) -> None:
        """Nodes without machines; some are about to go."""
        self._admin.hollow_nodes(bodies)
        for node in bodies:
            self._end(f"{_NODES}/{node['metadata']['name']}", node)

    def own(self, pod: Body) -> str:
        """Where the pod is made; its controller is the one that there is."""
        meta = pod["metadata"]
        for owner in meta.get("ownerReferences", ()):
            owner["uid"] = self._owners[f"{meta['namespace']}/{owner['name']}"]
        return f"/api/v1/namespaces/{meta['namespace']}/pods"

    def world(self) -> list[Body]:
        """Every object that decides, as the server has it; read anew where a pod may change it."""
        self._fixed = self._fixed or self._listed(*_FIXED)
        self._claimed = self._claimed or self._listed(VOLUMES, CLAIMS, f"{_DEVICES}/resourceclaims")
        return [*self._fixed, *self._claimed, *self._budgets.values()]

    def forget_claims(self) -> None:
        """Read claims and volumes anew: a pod may have changed them."""
        self._claimed = []

    def count(self, pods: Collection[Body]) -> None:
        """Wait until each budget counts these pods, which are bound."""
        for budget in self._budgets:
            is_counted = functools.partial(self._is_counted, budget, pods)
            deadline.until(is_counted, f"{budget} counts its pods")

    def _is_counted(self, path: str, pods: Collection[Body]) -> bool:
        """Whether the disruption controller knows which of the budget's pods are ready.

        Of several budgets of a pod that changed it looks at one, and at each that was patched.
        """
        patch = {"metadata": {"annotations": {"look": str(next(self._looks))}}}
        budget = self._budgets[path] = self._admin.need("PATCH", path, patch, MERGE)
        space, selector = budget["metadata"]["namespace"], budget["spec"]["selector"]
        labels = [
            pod["metadata"].get("labels", {})
            for pod in pods
            if pod["metadata"]["namespace"] == space and _is_ready(pod)
        ]
        ready = sum(selects(selector, own) for own in labels)
        status: Body = budget.get("status", {})
        return "observedGeneration" in status and bool(status["currentHealthy"] == ready)

    def is_complete(self, path: str) -> bool:
        """Whether there is every claim that controllers make for a pod."""
        pod = self._admin.need("GET", path)
        name, spec = pod["metadata"]["name"], pod["spec"]
        claims = {claim["name"] for claim in pod["status"].get("resourceClaimStatuses", ())}
        wanted = {
            claim["name"]
            for claim in spec.get("resourceClaims", ())
            if "resourceClaimTemplateName" in claim
        }
        volumes = [volume["name"] for volume in spec.get("volumes", ()) if "ephemeral" in volume]
        space = f"/api/v1/namespaces/{pod['metadata']['namespace']}/persistentvolumeclaims"
        answers = [self._admin.ask("GET", f"{space}/{name}-{volume}") for volume in volumes]
        return wanted <= claims and all(status < REFUSED for status, _ in answers)

    def _release(self, *paths: str) -> None:
        """Let what was kept for the fleet before go."""
        for path in paths:
            for body in self._admin.items(path):
                if HELD in body["metadata"].get("finalizers", ()):
                    own = f"{path}/{body['metadata']['name']}"
                    rest = [end for end in body["metadata"]["finalizers"] if end != HELD]
                    self._admin.need("PATCH", own, {"metadata": {"finalizers": rest}}, MERGE)

    def _end(self, path: str, body: Body) -> None:
        """Delete what a finalizer then keeps."""
        if HELD in body["metadata"].get("finalizers", ()):
            self._admin.need("DELETE", path)

    def _is_empty(self) -> bool:
        return not self._listed(*_LEFT)

    def _listed(self, *paths: str) -> list[Body]:
        return [body for path in paths for body in self._admin.items(path)]


def key_of(body: Body) -> str:
    """Namespace and name."""
    return f"{body['metadata']['namespace']}/{body['metadata']['name']}"


def misses_claim(pod: Body, world: list[Body]) -> bool:
    """Whether a pod names a ResourceClaim that is not there."""
    names = {
        claim["resourceClaimName"]
        for claim in pod["spec"].get("resourceClaims", ())
        if "resourceClaimName" in claim
    }
    there = {body["metadata"]["name"] for body in world if body["kind"] == "ResourceClaim"}
    return bool(names - there)


def _is_ready(pod: Body) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    is_ending = "deletionTimestamp" in pod["metadata"]
    return not is_ending and any(
        (own["type"], own["status"]) == ("Ready", "True") for own in conditions
    )
