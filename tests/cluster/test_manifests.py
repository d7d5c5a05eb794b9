"""What ``deploy/`` has, as a real server takes it: strictly, and by whichever way people apply."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.documents import DEPLOY
from tests.deploy.test_overlays import BUILT, built
from tests.kit import k8s_lab, needs

#: Whose objects need definitions that are not ours to bring.
OTHERS = ("monitoring.coreos.com/", "cert-manager.io/")

pytestmark = [pytest.mark.cluster, needs.program("kubectl")]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A control plane without nodes, with the namespaces that the manifests bring."""
    folder = tmp_path_factory.mktemp("k8s")
    every = (document for place in BUILT for document in built(place))
    spaces = {one["metadata"]["name"]: one for one in every if one["kind"] == "Namespace"}
    with k8s_lab.cluster(folder) as lab:
        kubectl(lab, folder, list(spaces.values()))
        yield lab


def kubectl(cluster: Any, folder: Path, documents: list[dict[str, Any]], *words: str) -> str:
    """``kubectl apply`` of these documents; fails where it fails or warns, else what it printed."""
    file = folder / "manifests.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    command = ["kubectl", f"--kubeconfig={cluster.kubeconfig}", f"--cache-dir={folder}/cache"]
    done = subprocess.run(
        [*command, "apply", "-f", str(file), *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), (words, done.stderr)
    return done.stdout


@pytest.mark.parametrize("folder", BUILT, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_a_server_knows_every_field(cluster: Any, folder: Path) -> None:
    """Each object by itself, strictly: no field is unknown, written twice, or warned of."""
    admin = k8s_lab.Admin(cluster)
    try:
        for document in built(folder):
            if document["apiVersion"].startswith(OTHERS):
                continue
            status, answer = k8s_lab.strict(admin, document)
            name = f"{document['kind']} {document['metadata']['name']}"
            assert status in (200, 201), (name, answer)
    finally:
        admin.close()


def test_both_ways_to_apply_agree(cluster: Any, tmp_path: Path) -> None:
    """``apply``, ``apply --server-side``, ``apply`` again: no conflict and no new generation."""
    documents = [dict(document) for document in built(DEPLOY)]

    def generations(*words: str) -> dict[str, object]:
        applied = json.loads(kubectl(cluster, tmp_path, documents, "-o", "json", *words))["items"]
        return {
            f"{one['kind']} {one['metadata']['name']}": one["metadata"].get("generation")
            for one in applied
        }

    first = generations()
    assert len(first) == len(documents)
    assert generations("--server-side") == first
    assert generations() == first
