"""What ``deploy/`` has, as a real server takes it: strictly, and by whichever way people apply."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import webhooked
from tests.deploy import overlays
from tests.deploy.documents import DEPLOY
from tests.kit import deadline, k8s_lab, needs

#: Whose objects need definitions that are not ours to bring.
OTHERS = ("monitoring.coreos.com/", "cert-manager.io/")
APPLY = ("apply", "-f", "-")

pytestmark = [pytest.mark.cluster, needs.program("kubectl")]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A control plane without nodes, with the namespaces that the manifests bring."""
    documents = (document for place in overlays.BUILT for document in overlays.built(place))
    spaces = {
        document["metadata"]["name"]: document
        for document in documents
        if document["kind"] == "Namespace"
    }
    with k8s_lab.cluster(tmp_path_factory.mktemp("k8s")) as lab:
        k8s_lab.kubectl(lab, *APPLY, documents=list(spaces.values()))
        yield lab


@pytest.mark.parametrize("folder", overlays.BUILT, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_a_server_knows_every_field(cluster: Any, folder: Path) -> None:
    """Each object by itself, strictly: no field is unknown, written twice, or warned of."""
    admin = k8s_lab.Admin(cluster)
    try:
        for document in overlays.built(folder):
            if document["apiVersion"].startswith(OTHERS):
                continue
            status, answer = k8s_lab.strict(admin, document)
            name = f"{document['kind']} {document['metadata']['name']}"
            assert status in (200, 201), (name, answer)
    finally:
        admin.close()


def test_both_ways_to_apply_agree(cluster: Any) -> None:
    """``apply``, ``apply --server-side``, ``apply`` again: no conflict and no new generation."""
    documents = [dict(document) for document in overlays.built(DEPLOY)]

    def generations(*words: str) -> dict[str, object]:
        text = k8s_lab.kubectl(cluster, *APPLY, "-o", "json", *words, documents=documents)
        return {
            f"{applied['kind']} {applied['metadata']['name']}": applied["metadata"].get(
                "generation"
            )
            for applied in json.loads(text)["items"]
        }

    first = generations()
    assert len(first) == len(documents)
    assert generations("--server-side") == first
    assert generations() == first


def test_profiles_change_pods_and_stop_none(cluster: Any, tmp_path: Path) -> None:
    """Their faults are warnings; a wrong authority, or no webhook, costs the profiles alone."""
    spark = {"metadata": {"name": "spark", "labels": {"app": "spark"}}}
    container = {"name": "m", "image": "i", "resources": {"requests": {"cpu": "1500m"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", **spark, "spec": {"containers": [container]}}
    batch = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 5500,
             "metadata": {"name": "batch"}}  # fmt: skip
    chosen = {"selector": {"matchLabels": {"app": "spark"}}}
    profiles = (
        webhooked.profile("a", qosClass="BE", priorityClassName="batch", **chosen),
        webhooked.profile("b", labels={"not": "a value"}),
        webhooked.profile("c", probability="300%"),
    )
    scene = webhooked.WebhookedCluster(cluster, tmp_path)
    try:
        scene.install(batch, profiles=profiles)
        with scene.running():
            scene.register(scene.authority)
            deadline.until(lambda: scene.changes(pod), "a pod is changed", seconds=60)
            made, warned = scene.created(pod)
            assert made["metadata"]["labels"] == {"app": "spark", "koordinator.sh/qosClass": "BE"}
            [changed] = made["spec"]["containers"]
            assert changed["resources"]["requests"] == {"kubernetes.io/batch-cpu": "1500"}
            assert (made["spec"]["priorityClassName"], made["spec"]["priority"]) == ("batch", 5500)
            for name in "bc":
                assert f"Warning: ClusterColocationProfile {name} is left out: " in warned
            pod["metadata"] = {**spark["metadata"], "name": "other"}
            scene.register(scene.other)
            deadline.until(lambda: not scene.changes(pod), "a wrong authority counts", seconds=60)
            scene.register(scene.authority)
            deadline.until(lambda: scene.changes(pod), "the right one, too", seconds=60)
        assert not scene.changes(pod)
    finally:
        scene.close()
