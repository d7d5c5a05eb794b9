"""Elastic quotas on a real API server, with the account of the deployed scheduler.

Covers: a pod that waits for its quota, what is written back, the built-in quotas, what the role
allows. Does not cover: the arithmetic (``tests.scheduler.quotas``).
"""

from __future__ import annotations

import http
import json
from collections.abc import Iterator

import pytest

from koordlet.kubeapi import elastic_quotas, kinds
from tests.cluster.deployed import ACCOUNT, PODS, Deployed, pod
from tests.cluster.ganged import CONFIG, DEFINITIONS
from tests.kit import deadline, k8s_lab
from tests.kit.quotas import KEY, quota
from tests.oracle.objects import Body

pytestmark = pytest.mark.cluster

_KIND = kinds.ELASTIC_QUOTAS
QUOTAS = f"/apis/{_KIND.api_version}/namespaces/default/{_KIND.plural}"
_BUILT_IN = f"/apis/{_KIND.api_version}/namespaces/koordinator-system/{_KIND.plural}"
_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": f"{_KIND.plural}.{_KIND.group}",
        "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
    },
    "spec": {
        "group": _KIND.group,
        "scope": "Namespaced",
        "names": {"kind": _KIND.name, "plural": _KIND.plural, "singular": "elasticquota"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": _ANYTHING, "status": _ANYTHING},
                    }
                },
            }
        ],
    },
}


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """A control plane with the definition, one hollow node, and one scheduler of ours."""
    folder = tmp_path_factory.mktemp("quotas")
    with k8s_lab.cluster(folder / "k8s", nodes=1, audit=True) as lab:
        cluster = Deployed(lab, folder, CONFIG)
        try:
            cluster.install(nodes=1)
            cluster.admin.need("POST", DEFINITIONS, DEFINITION)
            space = {"metadata": {"name": "koordinator-system"}}
            cluster.admin.need("POST", "/api/v1/namespaces", space)
            deadline.until(
                lambda: cluster.admin.ask("GET", QUOTAS)[0] == http.HTTPStatus.OK, "quotas served"
            )
            cluster.start("scheduler")
            cluster.leader()
            yield cluster
        finally:
            cluster.close()


def test_a_pod_waits_for_its_quota_and_the_amounts_are_written_back(deployed: Deployed) -> None:
    """The second pod has no room in the quota, though on the node; nothing was forbidden."""
    admin = deployed.admin
    body = quota("team", {"cpu": "1"}, {"cpu": "2"})
    for key in ("uid", "creationTimestamp"):
        del body["metadata"][key]
    admin.need("POST", QUOTAS, body)
    deadline.until(lambda: len(admin.need("GET", _BUILT_IN)["items"]) == 3, "built-in quotas")
    for name in ("first", "second"):
        member = pod(name, ACCOUNT)
        member["metadata"]["labels"][f"{KEY}name"] = "team"
        member["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1500m"
        admin.need("POST", PODS, member)

    def waits() -> bool:
        conditions = admin.need("GET", f"{PODS}/second")["status"].get("conditions", [])
        words = "Insufficient quotas, quotaName: team, runtime: cpu:2, used: cpu:1500m"
        return any(words in condition.get("message", "") for condition in conditions)

    deadline.until(waits, "the second pod waits for its quota")
    assert admin.need("GET", f"{PODS}/first")["spec"]["nodeName"]

    def written() -> Body | None:
        stored: Body = admin.need("GET", f"{QUOTAS}/team")
        notes = stored["metadata"].get("annotations", {})
        runtime = json.loads(notes.get(elastic_quotas.REPORTED["runtime"], "{}"))
        used = stored.get("status", {}).get("used", {})
        return stored if (runtime, used.get("cpu")) == ({"cpu": "2"}, "1500m") else None

    deadline.until(written, "runtime and use are written back")
    admin.need("DELETE", f"{PODS}/first?gracePeriodSeconds=0")
    deadline.until(lambda: admin.need("GET", f"{PODS}/second")["spec"].get("nodeName"), "it runs")
    codes = {event["responseStatus"]["code"] for event in deployed.audit()}
    assert http.HTTPStatus.FORBIDDEN not in codes
