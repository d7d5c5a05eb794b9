"""The chart on a real server by a real Helm: installed, upgraded, rolled back, removed.

Covers: what is left of each step among all objects of the cluster, definitions that are there
before, a switch that changes no pod. Does not cover: pods that run (``test_node_life`` has those).
"""

from __future__ import annotations

import http.client
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.documents import DEPLOY
from tests.kit import deadline, helm, k8s_lab

pytestmark = pytest.mark.cluster

#: Written all the time, and by no release.
_UNSTEADY = {
    *("events", "leases", "endpointslices", "endpoints", "componentstatuses"),
    "apiservices",
}
#: Owned by others, after which they go.
_COLLECTED = {"pods", "replicasets", "controllerrevisions"}
#: Everything whose definitions Kubernetes itself has.
EVERYTHING = (
    *("scheduler.enabled=true", "descheduler.enabled=true"),
    *(f"components.{name}=true" for name in ("failClosed", "reporting", "taints", "resctrl")),
    "monitoring.dashboards=true",
)
Names = set[tuple[str, str, str]]


class Cluster:
    """A server, its administrator, and Helm."""

    def __init__(self, lab: Any) -> None:
        self.lab = lab
        self.admin = k8s_lab.Admin(lab)

    def helm(self, *words: str) -> str:
        """A command that succeeds."""
        done = helm.run(*words, kubeconfig=self.lab.kubeconfig)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def names(self) -> Names:
        """Every object of the cluster."""
        listed: Names = set()
        groups = self.admin.need("GET", "/apis")["groups"]
        prefixes = ["/api/v1"] + [
            f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups
        ]
        for prefix in prefixes:
            for resource in self._known(prefix).get("resources", ()):
                if "list" in resource["verbs"] and resource["name"] not in _UNSTEADY:
                    for item in self._known(f"{prefix}/{resource['name']}").get("items", ()):
                        space = item["metadata"].get("namespace", "")
                        listed.add((resource["name"], space, item["metadata"]["name"]))
        return listed

    def _known(self, path: str) -> dict[str, Any]:
        """A server does not serve a definition at once (429), nor forget it at once (404)."""

        def answered() -> tuple[int, Any] | None:
            status, answer = self.admin.ask("GET", path)
            return None if status == http.client.TOO_MANY_REQUESTS else (status, answer)

        status, answer = deadline.until(answered, f"the server answers {path}")
        return dict(answer) if status == http.client.OK else {}

    def left(self, before: Names) -> Names:
        """What is more than before, once the garbage collector is done."""

        def settled() -> bool:
            return not any(name[0] in _COLLECTED for name in self.names() - before)

        deadline.until(settled, "what belonged to removed objects is gone")
        return self.names() - before

    def mode(self, pool: str) -> str:
        """What the agents of a pool are told."""
        path = f"/api/v1/namespaces/{helm.SPACE}/configmaps/{pool}"
        text = self.admin.need("GET", path)["data"]["config.yaml"]
        return str(yaml.safe_load(text).get("mode", "enforce"))

    def generations(self) -> dict[str, int]:
        """How often each DaemonSet was changed."""
        agents = self.admin.items(f"/apis/apps/v1/namespaces/{helm.SPACE}/daemonsets")
        return {a["metadata"]["name"]: a["metadata"]["generation"] for a in agents}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A control plane without nodes, with the namespace."""
    helm.run("version")
    with k8s_lab.cluster(tmp_path_factory.mktemp("k8s")) as lab:
        made = Cluster(lab)
        made.admin.need("POST", "/api/v1/namespaces", {"metadata": {"name": helm.SPACE}})
        accounts = f"/api/v1/namespaces/{helm.SPACE}/serviceaccounts/default"
        deadline.until(lambda: made.admin.ask("GET", accounts)[0] == 200, "controllers work")
        yield made
        made.admin.close()


def test_install_upgrade_roll_back_uninstall_leave_nothing(cluster: Cluster) -> None:
    """Everything that the release brings, in each of its forms, goes with it; also definitions."""
    before = deadline.until(cluster.names, "the server lists its objects")
    chart = str(helm.CHART)

    cluster.helm("install", "koordlet", chart, "--set", "crds.keep=false")
    plain = cluster.names()
    assert ("daemonsets", helm.SPACE, "koordlet") in plain - before
    cluster.helm("upgrade", "koordlet", chart, "--reuse-values", *helm.settings_of(EVERYTHING))
    assert ("deployments", helm.SPACE, "koordlet-scheduler") in cluster.names()
    cluster.helm("rollback", "koordlet", "1")
    deadline.until(lambda: not _of_programs(cluster.names()), "the programs' pods are gone")
    assert _without_releases(cluster.names()) == _without_releases(plain)
    cluster.helm("uninstall", "koordlet")

    assert cluster.left(before) == set()


def _of_programs(names: Names) -> Names:
    return {name for name in names if "koordlet-" in name[2] and name[0] in _KINDS}


_KINDS = {"deployments", "replicasets", "pods"}


def _without_releases(names: Names) -> Names:
    """Without what Helm remembers, and revisions of a DaemonSet, which keeps old ones."""
    own = {"secrets", "controllerrevisions"}
    return {name for name in names if name[0] not in own}


def test_definitions_stay_and_those_of_others_are_left_alone(cluster: Cluster) -> None:
    """By default reservations survive; a definition that was there is neither taken nor changed."""
    before = cluster.names()
    foreign = yaml.safe_load((DEPLOY / "crds/nodeslos.slo.koordinator.sh.yaml").read_text())
    foreign["metadata"]["annotations"] = {"owner": "somebody"}
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    cluster.admin.need("POST", crds, foreign)

    cluster.helm("install", "koordlet", str(helm.CHART))
    there = f"{crds}/{foreign['metadata']['name']}"
    annotations = cluster.admin.need("GET", there)["metadata"]["annotations"]
    cluster.helm("uninstall", "koordlet")

    left = cluster.left(before)
    assert annotations == {"owner": "somebody"}
    assert {name[0] for name in left} == {"customresourcedefinitions"}
    assert len(left) == len(list((DEPLOY / "crds").iterdir()))
    for name in left:
        cluster.admin.need("DELETE", f"{crds}/{name[2]}")
    deadline.until(lambda: cluster.names() == before, "the definitions are gone")


def test_a_switch_for_all_and_a_stage_that_is_taken_back(cluster: Cluster) -> None:
    """``suspend`` changes no pod's template, so no agent restarts for it.

    Where the watch of alerts fails, ``--rollback-on-failure`` puts back what a stage has changed.
    """
    words = ("koordlet", str(helm.CHART), "--reuse-values")
    cluster.helm("install", *words[:2], "--set", "pools.configs.canary.mode=enforce")
    assert [cluster.mode(name) for name in _BOTH] == ["enforce", "enforce"]

    cluster.helm("upgrade", *words, "--set", "suspend=true")
    assert [cluster.mode(name) for name in _BOTH] == ["observe", "observe"]
    assert cluster.generations() == {"koordlet": 1, "koordlet-canary": 1}

    stage = helm.settings_of(("suspend=false", "rollout.prometheus=http://127.0.0.1:9"))
    stage += ["--rollback-on-failure", "--timeout=2s"]
    done = helm.run("upgrade", *words, *stage, kubeconfig=cluster.lab.kubeconfig)
    assert done.returncode == 1, done.stderr
    assert [cluster.mode(name) for name in _BOTH] == ["observe", "observe"], done.stderr
    cluster.helm("uninstall", "koordlet")


_BOTH = ("koordlet", "koordlet-canary")


@pytest.mark.soak  # The definitions are of others: fetch deploy/crds of cert-manager for it.
def test_cert_manager_knows_every_field_of_the_certificates(cluster: Cluster) -> None:
    """Its own definitions take them strictly, and refuse one with a field that they have not."""
    folder = os.environ.get(_DEFINITIONS)
    if not folder:
        pytest.skip(f"{_DEFINITIONS} names no folder with the definitions of cert-manager")
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for path in sorted(Path(folder).glob("*.yaml")):
        cluster.admin.need("POST", crds, yaml.safe_load(path.read_text()))
    space = f"/apis/cert-manager.io/v1/namespaces/{helm.SPACE}"
    lists = [f"{space}/{resource}" for resource in ("issuers", "certificates")]

    def served() -> bool:
        return all(cluster.admin.ask("GET", path)[0] == http.client.OK for path in lists)

    deadline.until(served, "the definitions are served")
    every = helm.rendered("components.reporting=true", "tls.certManager=true")
    asked = [d for d in every if d["apiVersion"].startswith("cert-manager.io/")]
    answers = [k8s_lab.strict(cluster.admin, document) for document in asked]
    asked[-1]["spec"]["renewAfter"] = "1h"

    assert len(asked) == 5
    assert [status for status, _ in answers] == [http.client.CREATED] * 5, answers
    status, answer = k8s_lab.strict(cluster.admin, asked[-1])
    assert (status >= http.client.BAD_REQUEST, "renewAfter" in str(answer)) == (True, True)


_DEFINITIONS = "KOORDLET_CERT_MANAGER_CRDS"
