"""Resource claims on a real API server: kube-scheduler and ours, each with devices of its own.

Covers: what both write into claims and say of pods, a scheduler that is killed between the
allocation and the binding, what the role allows. Does not cover: nodes that prepare devices.
"""

from __future__ import annotations

import http
import json
from collections.abc import Iterator
from typing import Any

import pytest

from koordlet.kubeapi import kinds
from tests.cluster.deployed import ACCOUNT, Deployed
from tests.deploy.documents import documents
from tests.kit import deadline, k8s_lab
from tests.kit import device_claims as kit
from tests.oracle.objects import Body

pytestmark = pytest.mark.cluster

GROUP = f"/apis/{kinds.RESOURCE_CLAIMS.api_version}"
ROLE = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{ACCOUNT}"
MERGE = "application/merge-patch+json"
THEIRS = "default-scheduler"
#: Who decides, and the driver whose devices are its alone.
DRIVERS = {THEIRS: "theirs.example", ACCOUNT: "ours.example"}


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """Two schedulers beside each other, and two nodes."""
    folder = tmp_path_factory.mktemp("claims")
    with k8s_lab.cluster(folder / "k8s", scheduler=True, nodes=1, audit=True) as lab:
        cluster = Deployed(lab, folder)
        try:
            cluster.install(nodes=2)
            for scheduler, driver in DRIVERS.items():
                _furnish(cluster, scheduler, driver)
            cluster.start("scheduler")
            cluster.leader()
            yield cluster
        finally:
            cluster.close()


def _furnish(cluster: Deployed, scheduler: str, driver: str) -> None:
    """A namespace, a class, and devices of one node: whole ones and one that is shared."""
    name = driver.partition(".")[0]
    label = {"resource.kubernetes.io/admin-access": "true"}
    cluster.admin.need("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": label}})
    selector, resource = f'device.driver == "{driver}"', f"{driver}/card"
    classes = kit.device_class(
        name, selector, config=[_opaque(driver)], extendedResourceName=resource
    )
    cluster.admin.need("POST", f"{GROUP}/deviceclasses", classes)
    share = {"value": "10", "requestPolicy": {"default": "2", "validRange": {"min": "1"}}}
    devices = [
        *(kit.device(f"g{n}", {"model": "ab"[n % 2], "index": n}) for n in range(14)),
        kit.device("shared", allowMultipleAllocations=True, capacity={"units": share}),
        kit.device("bad", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]),
    ]
    piece = kit.resource_slice(devices, driver=driver, node="n0")
    cluster.admin.need("POST", f"{GROUP}/resourceslices", piece)
    assert scheduler in DRIVERS


def _opaque(driver: str, **parameters: str) -> Body:
    return {"opaque": {"driver": driver, "parameters": parameters}}


def _has(driver: str, name: str, value: str) -> str:
    own = f'device.attributes["{driver}"]'
    return f'"{name}" in {own} && {own}.{name} == {value}'


def scenes(driver: str, name: str) -> dict[str, Body]:
    """Claims by the name of the pod that uses them; each pod comes when the one before is told."""

    def request(called: str = "r", *selectors: str, **fields: Any) -> Body:
        return kit.request(called, *selectors, device_class=name, **fields)

    whole = _has(driver, "model", '"a"'), _has(driver, "model", '"b"')
    shared, own = "device.allowMultipleAllocations", f'device.attributes["{driver}"]'
    return {
        "one": kit.claim(request(), config=[_opaque(driver)]),
        "same": kit.claim(request(count=2), constraints=[{"matchAttribute": f"{driver}/model"}]),
        "wish": kit.claim(
            kit.first_available(
                "r",
                kit.wish("many", device_class=name, count=20),
                kit.wish("few", whole[1], device_class=name),
            )
        ),
        # One share of a device is all that a request gets; its name has no domain.
        "twice": kit.claim(request("r", shared, count=2)),
        "domain": kit.claim(request("r", shared, capacity={"requests": {f"{driver}/units": "1"}})),
        "share": kit.claim(request("r", shared)),
        # Whoever watches a shared device has a share, which is nobody's room afterwards.
        "watch": kit.claim(request("r", shared, adminAccess=True)),
        "absent": kit.claim(
            request("r", f"{own}.?index.orValue(0) == 11 && !{own}[?'x'].hasValue()")
        ),
        "more": kit.claim(request("r", shared, capacity={"requests": {"units": "8"}})),
        "toomuch": kit.claim(request("r", shared, capacity={"requests": {"units": "1"}})),
        "tainted": kit.claim(
            request("r", tolerations=[{"key": "k", "operator": "Exists"}]),
            request("s", whole[0]),
        ),
        "admin": kit.claim(request("r", whole[0], allocationMode="All", adminAccess=True)),
        "none": kit.claim(request("r", whole[0], count=7)),
        "noclass": kit.claim(kit.request(device_class="nobody")),
    }


def decided(cluster: Deployed, scheduler: str) -> dict[str, Any]:
    """What became of each scene: the pod's node or message; its claim without what is chance."""
    driver = DRIVERS[scheduler]
    name = driver.partition(".")[0]
    outcomes: dict[str, Any] = {}
    for scene, body in scenes(driver, name).items():
        _claim(cluster, name, scene, body)
        outcomes[scene] = _outcome(cluster, name, scene, scheduler)
    # Another pod of a claim that has devices, and a claim that is made for one pod.
    outcomes["second"] = _outcome(cluster, name, "second", scheduler, claim="one")
    spec = {"spec": scenes(driver, name)["one"]["spec"]}
    template = {"metadata": {"name": "t"}, "spec": spec}
    path = f"{GROUP}/namespaces/{name}/resourceclaimtemplates"
    cluster.admin.need("POST", path, template)
    outcomes["made"] = _outcome(cluster, name, "made", scheduler, template="t")
    # Extended resources that no node has: of containers and of one that ends before them.
    outcomes["cards"] = _served(cluster, name, scheduler, "cards", 1, before=2)
    outcomes["many"] = _served(cluster, name, scheduler, "many", 15)
    text = json.dumps(outcomes).replace(driver, "driver").replace(f'"{name}"', '"class"')
    return dict(json.loads(text))


def _claim(cluster: Deployed, namespace: str, name: str, body: Body) -> None:
    made = {**body, "metadata": {"name": name, "namespace": namespace}}
    cluster.admin.need("POST", f"{GROUP}/namespaces/{namespace}/resourceclaims", made)


def _pod(name: str, scheduler: str, entry: Body) -> Body:
    container = {"name": "c", "image": "app", "resources": {"claims": [{"name": "x"}]}}
    spec = {"containers": [container], "resourceClaims": [{"name": "x", **entry}]}
    return {"metadata": {"name": name}, "spec": {**spec, "schedulerName": scheduler}}


def _outcome(
    cluster: Deployed,
    namespace: str,
    name: str,
    scheduler: str,
    *,
    claim: str = "",
    template: str = "",
) -> Any:
    entry = (
        {"resourceClaimTemplateName": template}
        if template
        else {"resourceClaimName": claim or name}
    )
    pod = _decided(cluster, namespace, _pod(name, scheduler, entry))
    if isinstance(pod, str):
        return pod
    for each in pod["status"].get("resourceClaimStatuses", ()):
        claim = each["resourceClaimName"]
    path = f"{GROUP}/namespaces/{namespace}/resourceclaims/{claim or name}"
    return pod["spec"]["nodeName"], _without_chance(cluster.admin.need("GET", path))


def _served(
    cluster: Deployed, namespace: str, scheduler: str, name: str, cards: int, *, before: int = 0
) -> Any:
    """What becomes of a pod whose extended resource the class serves; its claim, and the uses."""
    resource = f"{DRIVERS[scheduler]}/card"

    def container(called: str, amount: int) -> Body:
        limits = {resource: str(amount), "cpu": "1m"}
        return {"name": called, "image": "app", "resources": {"limits": limits}}

    spec = {
        "schedulerName": scheduler,
        "containers": [container("a", cards), container("b", cards)],
        "initContainers": [container("i", before)] if before else [],
    }
    pod = _decided(cluster, namespace, {"metadata": {"name": name}, "spec": spec})
    if isinstance(pod, str):
        return pod
    status = pod["status"]["extendedResourceClaimStatus"]
    path = f"{GROUP}/namespaces/{namespace}/resourceclaims/{status['resourceClaimName']}"
    claim = cluster.admin.need("GET", path)
    meta = claim["metadata"]
    own = pod["metadata"]["uid"]
    owners = [{**each, "uid": each["uid"] == own} for each in meta["ownerReferences"]]
    return (
        pod["spec"]["nodeName"],
        (meta["generateName"], meta["annotations"], owners),
        (claim["spec"], status["requestMappings"], _without_chance(claim)),
    )


def _decided(cluster: Deployed, namespace: str, body: Body) -> Body | str:
    """A new pod once it has a node, or why it has none."""
    pods, name = f"/api/v1/namespaces/{namespace}/pods", body["metadata"]["name"]
    cluster.admin.need("POST", pods, body)

    def answer() -> Body | None:
        pod: Body = cluster.admin.need("GET", f"{pods}/{name}")
        answered = pod["spec"].get("nodeName") or pod.get("status", {}).get("conditions")
        return pod if answered else None

    pod: Body = deadline.until(answer, f"a verdict about {namespace}/{name}")
    return pod if pod["spec"].get("nodeName") else str(pod["status"]["conditions"][0]["message"])


def _without_chance(claim: Body) -> Body:
    """Finalizers and status; times and identities that differ in any case are left out."""
    status = claim["status"]
    allocation = dict(status["allocation"])
    assert allocation.pop("allocationTimestamp")
    for result in allocation["devices"]["results"]:
        if "shareID" in result:
            result["shareID"] = "made"
    # Keyed by UID, in no order.
    users = sorted(each["resource"] + "/" + each["name"] for each in status["reservedFor"])
    finalizers = claim["metadata"]["finalizers"]
    return {"finalizers": finalizers, "allocation": allocation, "reservedFor": users}


def test_claims_are_as_kube_scheduler_writes_them(deployed: Deployed) -> None:
    """Devices, shares, settings, selector, users, finalizer; messages of pods that wait."""
    theirs = decided(deployed, THEIRS)
    ours = decided(deployed, ACCOUNT)
    assert ours == theirs
    waiting = {scene for scene, outcome in ours.items() if isinstance(outcome, str)}
    assert waiting == {"twice", "domain", "toomuch", "none", "noclass", "many"}


def test_a_scheduler_that_is_killed_before_the_binding_is_followed(deployed: Deployed) -> None:
    """It may write claims, not bind; the next one binds the pod where its devices are."""
    (role,) = (each for each in documents("scheduler.yaml") if each["kind"] == "ClusterRole")
    rules: list[Body] = role["rules"]
    less = [rule for rule in rules if "pods/binding" not in rule["resources"]]
    assert len(less) == len(rules) - 1
    admin = deployed.admin
    admin.need("PATCH", ROLE, {"rules": less}, MERGE)
    body = kit.claim(kit.request(device_class="ours"))
    _claim(deployed, "ours", "late", body)
    path = f"{GROUP}/namespaces/ours/resourceclaims/late"
    pods = "/api/v1/namespaces/ours/pods"
    admin.need("POST", pods, _pod("late", ACCOUNT, {"resourceClaimName": "late"}))

    def devices() -> Any:
        return admin.need("GET", path).get("status", {}).get("allocation")

    before = deadline.until(devices, "the claim has devices")
    deployed.kill("scheduler")
    assert "nodeName" not in admin.need("GET", f"{pods}/late")["spec"]
    admin.need("PATCH", ROLE, {"rules": rules}, MERGE)
    deployed.start("next")
    deadline.until(
        lambda: admin.need("GET", f"{pods}/late")["spec"].get("nodeName"), "it is bound", seconds=60
    )
    claim = admin.need("GET", path)
    assert claim["status"]["allocation"] == before
    (user,) = claim["status"]["reservedFor"]
    assert user["name"] == "late"


def test_parameters_that_are_not_compact_json_are_named(deployed: Deployed) -> None:
    """The server takes no patch of such a claim; the pod's event says what to do."""
    body = kit.claim(kit.request(device_class="ours"), config=[_opaque("ours.example", a="b")])
    _claim(deployed, "ours", "spaced", body)
    pods = "/api/v1/namespaces/ours/pods"
    deployed.admin.need("POST", pods, _pod("spaced", ACCOUNT, {"resourceClaimName": "spaced"}))
    events = "/apis/events.k8s.io/v1/namespaces/ours/events"

    def is_named() -> bool:
        notes = [each.get("note", "") for each in deployed.admin.items(events)]
        return any("write parameters of drivers as compact JSON" in note for note in notes)

    deadline.until(is_named, "an event names the parameters")
    deployed.admin.need("DELETE", f"{pods}/spaced?gracePeriodSeconds=0")


def test_claims_of_pods_that_went_are_free_again(deployed: Deployed) -> None:
    """The cluster's controller gives devices back; a pod that waits for them gets them."""
    admin = deployed.admin
    for name in ("same", "made"):
        admin.need("DELETE", f"/api/v1/namespaces/ours/pods/{name}?gracePeriodSeconds=0")
    deadline.until(
        lambda: (
            admin.need("GET", f"{GROUP}/namespaces/ours/resourceclaims/same").get("status") == {}
        ),
        "the claim has no devices",
    )
    body = kit.claim(kit.request("r", count=2, device_class="ours"))
    _claim(deployed, "ours", "again", body)
    node, claim = _outcome(deployed, "ours", "again", ACCOUNT)
    assert node == "n0"
    assert len(claim["allocation"]["devices"]["results"]) == 2


def test_nothing_was_refused_to_the_account(deployed: Deployed) -> None:
    """But for the binding that one test took away."""
    denied = {
        (event["verb"], event["objectRef"]["resource"], event["objectRef"].get("subresource"))
        for event in deployed.audit()
        if event.get("responseStatus", {}).get("code") == http.HTTPStatus.FORBIDDEN
    }
    assert {each for each in denied if each[1].startswith(("resource", "device"))} == set()
