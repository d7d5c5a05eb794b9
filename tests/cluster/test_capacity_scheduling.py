"""Quotas of namespaces on a real API server: scheduler-plugins' kind, with the deployed account.

Covers: a namespace that borrows and gives back, the status and its event, what the role allows.
Does not cover: bounds and messages (``tests.scheduler.loop.test_capacity_scheduler``).
"""

from __future__ import annotations

import http
from collections.abc import Iterator
from typing import Any

import pytest

from koordlet.kubeapi import kinds
from tests.cluster.deployed import ACCOUNT, Deployed, pod
from tests.cluster.ganged import CONFIG, DEFINITIONS, MERGE
from tests.cluster.test_quotas import DEFINITION
from tests.kit import deadline, k8s_lab
from tests.kit.quotas import quota
from tests.oracle.objects import Body

pytestmark = pytest.mark.cluster

_KIND = kinds.NAMESPACE_QUOTAS
_ENABLED = "{preFilter: {enabled: [{name: CapacityScheduling}]}}"


def _quotas(namespace: str) -> str:
    return f"/apis/{_KIND.api_version}/namespaces/{namespace}/{_KIND.plural}"


def _pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """A control plane with the definition, one hollow node, and one scheduler of ours."""
    folder = tmp_path_factory.mktemp("capacity")
    served = "schedulerName: koordlet-scheduler"
    config = CONFIG.replace(served, f"{served}, plugins: {_ENABLED}")
    spec: Any = DEFINITION["spec"]
    definition: Body = {
        **DEFINITION,
        "metadata": {"name": f"{_KIND.plural}.{_KIND.group}"},
        "spec": {**spec, "group": _KIND.group},
    }
    with k8s_lab.cluster(folder / "k8s", nodes=1, audit=True) as lab:
        cluster = Deployed(lab, folder, config)
        try:
            cluster.install(nodes=1)
            cluster.admin.need("POST", DEFINITIONS, definition)
            for name in ("a", "b"):
                cluster.admin.need("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
            deadline.until(
                lambda: cluster.admin.ask("GET", _quotas("a"))[0] == http.HTTPStatus.OK, "served"
            )
            cluster.start("scheduler")
            cluster.leader()
            yield cluster
        finally:
            cluster.close()


def test_what_a_namespace_borrowed_goes_back_and_is_written(deployed: Deployed) -> None:
    """Namespace b runs two pods on a minimum of one; a pod within the minimum of a takes one."""
    admin = deployed.admin
    for namespace in ("a", "b"):
        body = quota("q", {"cpu": "1"}, {"cpu": "2"}, namespace=namespace)
        for key in ("uid", "creationTimestamp"):
            del body["metadata"][key]
        admin.need("POST", _quotas(namespace), {**body, "apiVersion": _KIND.api_version})

    def create(name: str, namespace: str) -> None:
        member = pod(name, ACCOUNT)
        member["metadata"]["namespace"] = namespace
        member["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "1"}
        member["spec"]["terminationGracePeriodSeconds"] = 0
        admin.need("POST", _pods(namespace), member)

    def run(namespace: str) -> None:
        """What a kubelet would say."""
        for name in placed(namespace):
            running = {"status": {"phase": "Running"}}
            admin.need("PATCH", f"{_pods(namespace)}/{name}/status", running, MERGE)

    def placed(namespace: str) -> list[str]:
        pods = admin.need("GET", _pods(namespace))["items"]
        return [each["metadata"]["name"] for each in pods if each["spec"].get("nodeName")]

    def used(namespace: str) -> Body:
        status: Body = admin.need("GET", f"{_quotas(namespace)}/q").get("status", {})
        return dict(status.get("used", {}))

    deadline.until(lambda: used("a") == {"cpu": "0"} == used("b"), "zeros are written")
    create("b0", "b")
    create("b1", "b")
    deadline.until(lambda: len(placed("b")) == 2, "b borrows")
    run("b")
    deadline.until(lambda: used("b") == {"cpu": "2"}, "two pods of b run")
    create("a0", "a")
    deadline.until(lambda: placed("a") == ["a0"] and len(placed("b")) == 1, "a has its own back")
    run("a")
    deadline.until(lambda: used("a") == {"cpu": "1"} == used("b"), "what runs is written")
    events = admin.need("GET", "/apis/events.k8s.io/v1/namespaces/a/events")["items"]
    assert "Elastic Quota a/q synced successfully" in {event.get("note") for event in events}
    codes = {event["responseStatus"]["code"] for event in deployed.audit()}
    assert http.HTTPStatus.FORBIDDEN not in codes
