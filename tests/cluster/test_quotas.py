"""Elastic quotas on a real API server, with the account of the deployed scheduler.

Covers: a pod that waits for its quota, what is written back, the built-in quotas, the condition of
an invalid one, what the role allows, calling back. Does not cover: the arithmetic
(``tests.scheduler.quotas``).
"""

from __future__ import annotations

import functools
import http
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from koordlet.kubeapi import elastic_quotas, kinds
from koordlet.scheduler.quotas import pools
from tests.cluster.deployed import ACCOUNT, PODS, Deployed, pod
from tests.cluster.ganged import CONFIG, DEFINITIONS, MERGE
from tests.kit import deadline, k8s_lab
from tests.kit.quotas import KEY, quota
from tests.oracle.objects import Body

pytestmark = pytest.mark.cluster

_KIND = kinds.ELASTIC_QUOTAS
QUOTAS = f"/apis/{_KIND.api_version}/namespaces/default/{_KIND.plural}"
_PROFILES = (
    f"/apis/{kinds.ELASTIC_QUOTA_PROFILES.api_version}/namespaces/default/"
    f"{kinds.ELASTIC_QUOTA_PROFILES.plural}"
)
_BUILT_IN = f"/apis/{_KIND.api_version}/namespaces/koordinator-system/{_KIND.plural}"
_SETS = "/apis/apps/v1/namespaces/default/replicasets"
MONITORED = CONFIG.replace(
    "{schedulerName: koordlet-scheduler}",
    "{schedulerName: koordlet-scheduler,"
    " pluginConfig: [{name: ElasticQuota, args: {monitorAllQuotas: true}}]}",
)
_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _ok(ask: Callable[[], tuple[int, Any]]) -> Callable[[], bool]:
    return lambda: ask()[0] == http.HTTPStatus.OK


def _definition(kind: kinds.Kind) -> Body:
    """A definition of the kind with a status subresource, that takes anything."""
    schema = {"type": "object", "properties": {"spec": _ANYTHING, "status": _ANYTHING}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{kind.group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"kind": kind.name, "plural": kind.plural, "singular": kind.name.lower()},
            "versions": [
                {
                    "name": "v1alpha1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


DEFINITION = _definition(_KIND)


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """A control plane with the definition, one hollow node, and one scheduler of ours."""
    folder = tmp_path_factory.mktemp("quotas")
    with k8s_lab.cluster(folder / "k8s", nodes=1, audit=True) as lab:
        cluster = Deployed(lab, folder, MONITORED)
        try:
            cluster.install(nodes=1)
            for kind in (_KIND, kinds.ELASTIC_QUOTA_PROFILES):
                cluster.admin.need("POST", DEFINITIONS, _definition(kind))
            space = {"metadata": {"name": "koordinator-system"}}
            cluster.admin.need("POST", "/api/v1/namespaces", space)
            for path in (QUOTAS, _PROFILES):
                served = functools.partial(cluster.admin.ask, "GET", path)
                deadline.until(_ok(served), f"{path} is served")
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


def _create(deployed: Deployed, body: Body) -> None:
    for key in ("uid", "creationTimestamp"):
        body["metadata"].pop(key, None)
    deployed.admin.need("POST", QUOTAS, body)


def test_what_is_wrong_with_a_quota_is_a_condition_until_it_is_repaired(deployed: Deployed) -> None:
    """The annotation says cause, remedy and what is in force; it goes with the mistake."""
    admin = deployed.admin
    _create(deployed, quota("wrong", {"cpu": "3"}, {"cpu": "2"}))

    def condition() -> Any:
        notes = admin.need("GET", f"{QUOTAS}/wrong")["metadata"].get("annotations", {})
        return notes.get(elastic_quotas.INVALID)

    assert deadline.until(condition, "the condition") == (
        "resourceKey cpu of quota wrong min 3 > max 2; write 2 or less, or raise spec.max.cpu; it"
        " is not in force"
    )
    admin.need("PATCH", f"{QUOTAS}/wrong", {"spec": {"max": {"cpu": "4"}}}, MERGE)
    deadline.until(lambda: condition() is None, "the condition has gone")


def test_the_worked_example_is_written_back_to_the_thousandth(deployed: Deployed) -> None:
    """A hundred CPUs for a, b, c and d, of which d does not lend: the numbers of the simulation."""
    admin = deployed.admin
    big = {"metadata": {"name": "big"}, "status": {"allocatable": {"cpu": "200", "pods": "9"}}}
    admin.need("POST", "/api/v1/nodes", {**big, "spec": {"unschedulable": True}})
    _create(deployed, quota("example", {"cpu": "100"}, {"cpu": "100"}, is_parent=True))
    for name, least, most, more in (
        ("a", 40, 100, {}),
        ("b", 20, 50, {}),
        ("c", 30, 100, {"weight": {"cpu": "100"}}),
        ("d", 10, 100, {"lends": False}),
    ):
        _create(deployed, quota(name, {"cpu": least}, {"cpu": most}, parent="example", **more))
    for name, cpu in (("a", "5"), ("b", "60"), ("c", "80")):
        member = pod(f"example-{name}", ACCOUNT)
        member["metadata"]["labels"][f"{KEY}name"] = name
        member["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
        admin.need("POST", PODS, member)

    def runtimes() -> list[str]:
        several = (admin.need("GET", f"{QUOTAS}/{name}")["metadata"] for name in "abcd")
        notes = (meta.get("annotations", {}) for meta in several)
        key = elastic_quotas.REPORTED["runtime"]
        return [json.loads(note.get(key, "{}")).get("cpu", "") for note in notes]

    expected = ["5", "31667m", "53333m", "10"]
    deadline.until(lambda: runtimes() == expected, "the runtimes of the example")
    for name in "abc":
        admin.need("DELETE", f"{PODS}/example-{name}?gracePeriodSeconds=0")
    for name in (*"abcd", "example"):
        admin.need("DELETE", f"{QUOTAS}/{name}")
    # No machine answers for it: half of the nodes would not be ready, and nobody be evicted.
    admin.need("DELETE", "/api/v1/nodes/big")


def test_a_profile_gets_its_tree_id_and_its_root_with_the_deployed_role(
    deployed: Deployed,
) -> None:
    """The label on the profile, the quota with its owner; nothing of it was forbidden."""
    admin = deployed.admin
    spec = {"quotaName": "pool-root", "nodeSelector": {"matchLabels": {"pool": "none"}}}
    profile = {
        "apiVersion": kinds.ELASTIC_QUOTA_PROFILES.api_version,
        "kind": kinds.ELASTIC_QUOTA_PROFILES.name,
        "metadata": {"name": "pool"},
        "spec": spec,
    }
    uid = admin.need("POST", _PROFILES, profile)["metadata"]["uid"]

    def root() -> Body | None:
        status, body = admin.ask("GET", f"{QUOTAS}/pool-root")
        return body if status == http.HTTPStatus.OK else None

    meta = deadline.until(root, "the root quota")["metadata"]
    assert meta["ownerReferences"][0]["uid"] == uid
    tree_id = str(pools.fnv("default/pool"))
    assert meta["labels"][f"{KEY}tree-id"] == tree_id
    labels = admin.need("GET", f"{_PROFILES}/pool")["metadata"]["labels"]
    assert labels == {f"{KEY}tree-id": tree_id}
    codes = {event["responseStatus"]["code"] for event in deployed.audit()}
    assert http.HTTPStatus.FORBIDDEN not in codes


@pytest.mark.soak
def test_what_was_lent_is_called_back_with_the_defaults_and_runs_again(deployed: Deployed) -> None:
    """Two minutes after the owner came; the ReplicaSet's next pods wait, and run when it leaves."""
    admin = deployed.admin
    _create(deployed, quota("shared", {"cpu": "2"}, {"cpu": "2"}, is_parent=True))
    for name, least in (("owner", "1500m"), ("guest", "0")):
        _create(deployed, quota(name, {"cpu": least}, {"cpu": "2"}, parent="shared"))

    def member(name: str, team: str) -> Body:
        body = pod(name, ACCOUNT, terminationGracePeriodSeconds=0)
        body["metadata"]["labels"] = {f"{KEY}name": team}
        body["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "500m"
        return body

    template = member("guest", "guest")
    selector = {"matchLabels": template["metadata"]["labels"]}
    spec = {"replicas": 4, "selector": selector, "template": template}
    admin.need("POST", _SETS, {"metadata": {"name": "guest"}, "spec": spec})

    def running(team: str, *, seconds: int, number: int) -> None:
        selected = f"{PODS}?labelSelector={KEY}name%3D{team}"

        def enough() -> bool:
            pods = admin.need("GET", selected)["items"]
            return sum("nodeName" in each["spec"] for each in pods) == number

        deadline.until(enough, f"{number} pods of {team} run", seconds=seconds)

    running("guest", number=4, seconds=30)
    owners = [f"owner-{place}" for place in range(3)]
    for name in owners:
        admin.need("POST", PODS, member(name, "owner"))
    running("owner", number=3, seconds=180)
    running("guest", number=1, seconds=30)
    events = admin.need("GET", "/apis/events.k8s.io/v1/namespaces/default/events")["items"]
    regarded = [each["regarding"]["kind"] for each in events if each["reason"] == "QuotaRevoked"]
    assert sorted(regarded) == [*["ElasticQuota"] * 3, *["Pod"] * 3]
    for name in owners:
        admin.need("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
    running("guest", number=4, seconds=60)
    codes = {event["responseStatus"]["code"] for event in deployed.audit()}
    assert http.HTTPStatus.FORBIDDEN not in codes
