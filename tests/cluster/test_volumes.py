"""Volumes beside a real volume controller: both schedulers bind a pod when its claims are bound.

Covers: a volume that is there, one that is made, a provisioner that fails. Does not cover: which
node is chosen (``test_differential``).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.deployed import ACCOUNT, Deployed
from tests.kit import deadline, k8s_lab
from tests.oracle.objects import Body

pytestmark = pytest.mark.cluster

THEIRS = "default-scheduler"
SELECTED = "volume.kubernetes.io/selected-node"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
MERGE = "application/merge-patch+json"
NODES = ("n0", "n1")


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """Both schedulers, two nodes, a class with a provisioner that the test is, and one without."""
    folder = tmp_path_factory.mktemp("volumes")
    with k8s_lab.cluster(folder / "k8s", scheduler=True) as lab:
        cluster = Deployed(lab, folder)
        try:
            cluster.install(nodes=len(NODES))
            for name, provisioner in (
                ("made", "csi.example"),
                ("local", "kubernetes.io/no-provisioner"),
            ):
                mode = {"volumeBindingMode": "WaitForFirstConsumer", "provisioner": provisioner}
                cluster.admin.need("POST", CLASSES, {"metadata": {"name": name}, **mode})
            cluster.start("scheduler")
            cluster.leader()
            yield cluster
        finally:
            cluster.close()


def _claim(cluster: Deployed, name: str, storage_class: str) -> None:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": storage_class,
    }
    cluster.admin.need("POST", CLAIMS, {"metadata": {"name": name}, "spec": spec})


def _volume(cluster: Deployed, name: str, storage_class: str, node: str, claim: str = "") -> None:
    """A volume that one node reaches; ``claim``: it was made for this."""
    term = {
        "matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]
    }
    spec: Body = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "storageClassName": storage_class,
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        "csi": {"driver": "csi.example", "volumeHandle": name},
    }
    if claim:
        uid = cluster.admin.need("GET", f"{CLAIMS}/{claim}")["metadata"]["uid"]
        spec["claimRef"] = {"namespace": "default", "name": claim, "uid": uid}
    cluster.admin.need("POST", VOLUMES, {"metadata": {"name": name}, "spec": spec})


def _selected(cluster: Deployed, claim: str) -> str:
    notes = cluster.admin.need("GET", f"{CLAIMS}/{claim}")["metadata"].get("annotations", {})
    return str(notes.get(SELECTED, ""))


def _mounting(claim: str) -> Body:
    source = {"persistentVolumeClaim": {"claimName": claim}}
    return {"volumes": [{"name": "data", **source}]}


def _cordon(cluster: Deployed, node: str, *, closed: bool) -> None:
    patch = {"spec": {"unschedulable": closed}}
    cluster.admin.need("PATCH", f"/api/v1/nodes/{node}", patch, MERGE)


@pytest.mark.parametrize("scheduler", [THEIRS, ACCOUNT])
def test_a_pod_whose_provisioner_fails_is_bound_where_another_makes_its_volume(
    deployed: Deployed, scheduler: str
) -> None:
    """It takes the node off the claim; a pod that was bound there would wait for ever."""
    name = f"made-{scheduler}"
    _claim(deployed, name, "made")
    [pod] = deployed.create(1, scheduler, **_mounting(name))
    first = deadline.until(lambda: _selected(deployed, name), "a node is selected")
    _cordon(deployed, first, closed=True)
    try:
        assert "nodeName" not in deployed.admin.need("GET", pod)["spec"]
        failed: Body = {"metadata": {"annotations": {SELECTED: None}}}
        deployed.admin.need("PATCH", f"{CLAIMS}/{name}", failed, MERGE)
        second = deadline.until(lambda: _selected(deployed, name), "another one is", seconds=60)
        assert "nodeName" not in deployed.admin.need("GET", pod)["spec"]
        _volume(deployed, name, "made", second, claim=name)
        assert deployed.bound([pod]) == [second]
    finally:
        _cordon(deployed, first, closed=False)
    assert {first, second} == set(NODES)


@pytest.mark.parametrize("scheduler", [THEIRS, ACCOUNT])
def test_a_pod_gets_the_volume_that_one_node_reaches(deployed: Deployed, scheduler: str) -> None:
    """The volume controller has bound the claim by then."""
    name = f"local-{scheduler}"
    _volume(deployed, name, "local", "n1")
    _claim(deployed, name, "local")
    [pod] = deployed.create(1, scheduler, **_mounting(name))
    assert deployed.bound([pod]) == ["n1"]
    claim = deployed.admin.need("GET", f"{CLAIMS}/{name}")
    assert (claim["spec"]["volumeName"], claim["status"]["phase"]) == (name, "Bound")
