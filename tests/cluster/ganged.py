"""A control plane that serves gangs in every form, and our scheduler on it.

Covers: the gates of Kubernetes' own kind, the definitions of both peers, pods and PodGroups of each
form. Does not cover: what becomes of them (``test_gangs``, ``test_gang_differential``).
"""

from __future__ import annotations

import base64
import collections
import http
import json
import socket
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, pod_groups
from tests.cluster.deployed import ACCOUNT, PODS, Deployed, pod
from tests.kit import deadline
from tests.oracle.objects import Body

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MERGE = "application/merge-patch+json"
_WORKLOADS = "GenericWorkload=true"
_GATES = (
    f"{_WORKLOADS},GangScheduling=true,WorkloadAwarePreemption=true"
    ",TopologyAwareWorkloadScheduling=true"
)
#: Flags of the programs of a lab, by name.
FLAGS = {
    "kube-apiserver": (
        f"--feature-gates={_GATES}",
        f"--runtime-config={kinds.NATIVE_POD_GROUPS.api_version}=true",
    ),
    "kube-scheduler": (f"--feature-gates={_GATES}",),
    "kube-controller-manager": (f"--feature-gates={_WORKLOADS}",),
}
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
podMaxBackoffSeconds: 1
profiles: [{schedulerName: koordlet-scheduler}]
"""
_COUNT = {"type": "integer", "format": "int32"}
_TEXT = {"type": "string"}
_AMOUNT = {"anyOf": [{"type": "integer"}, _TEXT], "x-kubernetes-int-or-string": True}


def definition(*, subresource: bool) -> Body:
    """The definition of PodGroups: scheduler-plugins' has a status of its own, Koordinator's none.

    What it does not name the server drops.
    """
    spec: Body = {
        "minMember": _COUNT,
        "minResources": {"type": "object", "additionalProperties": _AMOUNT},
        "scheduleTimeoutSeconds": _COUNT,
    }
    counts = dict.fromkeys(("scheduled", "running", "succeeded", "failed"), _COUNT)
    moment = {"scheduleStartTime": {"type": "string", "format": "date-time"}}
    status = {"phase": _TEXT, "occupiedBy": _TEXT, **counts, **moment}
    parts = {"spec": spec, "status": status}
    schema = {key: {"type": "object", "properties": fields} for key, fields in parts.items()}
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": schema}},
        **({"subresources": {"status": {}}} if subresource else {}),
    }
    group, plural = kinds.POD_GROUPS.group, kinds.POD_GROUPS.plural
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "PodGroup", "plural": plural, "singular": "podgroup"},
            "versions": [version],
        },
    }


def group_path(name: str = "", *, native: bool = False) -> str:
    """The path of a PodGroup of either kind, or of all."""
    kind = kinds.NATIVE_POD_GROUPS if native else kinds.POD_GROUPS
    return f"/apis/{kind.api_version}/namespaces/default/podgroups{name and f'/{name}'}"


def native_group(name: str, minimum: int | None, **spec: Any) -> Body:
    """A PodGroup of Kubernetes' own kind; without a minimum it is ``basic``."""
    policy: Body = {"basic": {}} if minimum is None else {"gang": {"minCount": minimum}}
    return {"metadata": {"name": name}, "spec": {"schedulingPolicy": policy, **spec}}


class Ganged(Deployed):
    """A control plane with the gates on, and one scheduler of ours."""

    def define(self, *, subresource: bool) -> None:
        """Serve the PodGroups of one of the peers."""
        body = definition(subresource=subresource)
        path = f"{DEFINITIONS}/{body['metadata']['name']}"
        status, stored = self.admin.ask("GET", path)
        if status == http.HTTPStatus.OK:
            body["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
            self.admin.need("PUT", path, body)
        else:
            self.admin.need("POST", DEFINITIONS, body)

        def served() -> bool:
            status, answer = self.admin.ask("GET", f"/apis/{kinds.POD_GROUPS.api_version}")
            if status != http.HTTPStatus.OK:
                return False
            names = {resource["name"] for resource in answer["resources"]}
            return names == ({"podgroups", "podgroups/status"} if subresource else {"podgroups"})

        deadline.until(served, "PodGroups are served as defined")

    def group(self, name: str, minimum: int, *, native: bool = False) -> Body:
        """A PodGroup of the peers' kind, or of Kubernetes' own."""
        body = native_group(name, minimum)
        if not native:
            body["spec"] = {"minMember": minimum}
        api = kinds.NATIVE_POD_GROUPS if native else kinds.POD_GROUPS
        body |= {"apiVersion": api.api_version, "kind": "PodGroup"}
        created: Body = self.admin.need("POST", group_path(native=native), body)
        return created

    def members(
        self, gang: str, count: int, *, form: str = "label", minimum: int = 0, **spec: Any
    ) -> list[str]:
        """Pods of a gang; their paths.

        ``cpu``: what each requests; ``owner``: a reference; ``start``: the first one's number.
        """
        cpu, owner = spec.pop("cpu", "100m"), spec.pop("owner", None)
        paths, start = [], spec.pop("start", 0)
        for number in range(start, start + count):
            body = pod(f"{gang}-{number}", ACCOUNT, terminationGracePeriodSeconds=0, **spec)
            body["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
            body["metadata"]["ownerReferences"] = [] if owner is None else [owner]
            _spell(body, gang, form, minimum)
            self.admin.need("POST", PODS, body)
            paths.append(f"{PODS}/{body['metadata']['name']}")
        return paths

    def message(self, path: str) -> str:
        """Why a pod has no node."""
        conditions = self.admin.need("GET", path)["status"].get("conditions", [])
        scheduled = {condition["type"]: condition for condition in conditions}
        return str(scheduled.get("PodScheduled", {}).get("message", ""))

    def until_refused(self, paths: list[str], words: str) -> None:
        """Wait until each of these pods is refused with such words."""
        deadline.until(
            lambda: all(words in self.message(path) for path in paths),
            f"{paths} are refused: {words}",
        )

    def until_status(self, name: str, **wanted: Any) -> Body:
        """The status of a PodGroup of the peers' kind once it says this."""

        def status() -> Body | None:
            known: Body = self.admin.need("GET", group_path(name)).get("status", {})
            return known if wanted.items() <= known.items() else None

        return deadline.until(status, f"the status of {name} says {wanted}")

    def condition(self, name: str) -> Body:
        """The condition of a PodGroup of Kubernetes' own kind; empty: it has none."""
        status = self.admin.need("GET", group_path(name, native=True)).get("status", {})
        [condition, *_] = status.get("conditions") or [{}]
        assert condition.get("type", "PodGroupScheduled") == "PodGroupScheduled"
        return dict(condition)

    def phase(self, paths: list[str], phase: str) -> None:
        """What a kubelet would say of its pods."""
        for path in paths:
            self.admin.need("PATCH", f"{path}/status", {"status": {"phase": phase}}, MERGE)

    def delete(self, paths: list[str]) -> None:
        """Objects go at once."""
        for path in paths:
            self.admin.need("DELETE", f"{path}?gracePeriodSeconds=0")

    def granted(self) -> collections.Counter[str]:
        """How often each pod was given a node."""
        return collections.Counter(
            event["objectRef"]["name"]
            for event in self.audit()
            if event["objectRef"].get("subresource") == "binding"
            and event["responseStatus"]["code"] == http.HTTPStatus.CREATED
        )

    def hold_bindings(self, listener: socket.socket, names: list[str]) -> None:
        """From now on the server does not answer who binds these pods: a webhook does not."""
        port = listener.getsockname()[1]
        authority = Path(self.lab.pki, "ca.crt").read_bytes()
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["pods/binding"],
        }
        hook = {
            "name": "hold.example.com",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": f"https://127.0.0.1:{port}/", "caBundle": _base64(authority)},
            "failurePolicy": "Fail",
            "matchConditions": [
                {"name": "names", "expression": f"request.name in {json.dumps(names)}"}
            ],
            "rules": [rule],
            "sideEffects": "None",
            "timeoutSeconds": 30,
        }
        body = {"metadata": {"name": "hold"}, "webhooks": [hook]}
        self.admin.need("POST", WEBHOOKS, body)


def _spell(body: Body, gang: str, form: str, minimum: int) -> None:
    """Name the gang as the form does."""
    marks = {
        "label": ("labels", {pod_groups.POD_GROUP: gang}),
        "light": (
            "labels",
            {pod_groups.LIGHT_NAME: gang, pod_groups.LIGHT_MINIMUM: str(minimum)},
        ),
        "annotation": (
            "annotations",
            {pod_groups.GANG_NAME: gang, pod_groups.GANG_MINIMUM: str(minimum)},
        ),
    }
    if form == "native":
        body["spec"]["schedulingGroup"] = {"podGroupName": gang}
    else:
        place, texts = marks[form]
        body["metadata"].setdefault(place, {}).update(texts)


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
