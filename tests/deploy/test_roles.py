"""Roles, overlays, dashboards: as much as the code uses, and no more.

Covers: what is allowed against what the code asks for; queries against the metrics that are served.
Does not cover: a cluster that enforces them.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from koordlet.kubeapi import kinds
from tests.deploy.documents import DEPLOY, allowed, documents, needed, rules
from tools.docs import metrics

#: Mirrors of ``workloads.cluster``, the rows of ``report.rows``, and ``report.own_objects``.
AGENT = (
    *(needed(kinds.PODS, "list watch"), needed(kinds.PODS, "create", "eviction")),
    *(needed(kinds.NODES, "get list watch"), needed(kinds.NODES, "patch", "status")),
    *(needed(kinds.NODES, "get", sub) for sub in ("pods", "configz", "stats")),
    needed(kinds.CONFIG_MAPS, "get list watch"),
    needed(kinds.NODE_SLOS, "list watch"),
    needed(kinds.NODE_METRICS, "get create delete"),
    needed(kinds.NODE_METRICS, "patch", "status"),
    needed(kinds.NODE_RESOURCE_TOPOLOGIES, "get create patch delete"),
    needed(kinds.DEVICES, "get create patch delete"),
    needed(kinds.RESERVATIONS, "list watch"),
    needed(kinds.EVENTS, "create patch"),
)


def test_the_agents_role() -> None:
    """Exactly what it asks for; of configuration maps one by its name."""
    assert set().union(*AGENT) == allowed("daemonset.yaml")
    (maps,) = (rule for rule in rules("daemonset.yaml") if "configmaps" in rule["resources"])
    assert maps["resourceNames"] == ["slo-controller-config"]


def test_the_schedulers_role() -> None:
    """What it watches, what it decides, its lease and nothing of it elsewhere."""
    granted = allowed("scheduler.yaml")
    watched = (
        *(kinds.NAMESPACES, kinds.NODES, kinds.PODS, kinds.SERVICES, kinds.CSI_NODES),
        *(kinds.CSI_DRIVERS, kinds.STORAGE_CAPACITIES, kinds.VOLUME_ATTACHMENTS),
        *(kinds.PERSISTENT_VOLUMES, kinds.PERSISTENT_VOLUME_CLAIMS, kinds.PRIORITY_CLASSES),
        *(kinds.REPLICATION_CONTROLLERS, kinds.REPLICA_SETS, kinds.STATEFUL_SETS),
        *(kinds.STORAGE_CLASSES, kinds.POD_DISRUPTION_BUDGETS),
        *(kinds.NODE_METRICS, kinds.NODE_RESOURCE_TOPOLOGIES, kinds.CLUSTER_NETWORK_TOPOLOGIES),
    )
    for kind in watched:
        assert needed(kind, "list watch") <= granted, kind
    assert needed(kinds.RESERVATIONS, "get list watch") <= granted
    assert needed(kinds.PODS, "create", "binding") | needed(kinds.PODS, "patch delete") <= granted
    assert needed(kinds.RESERVATIONS, "patch", "status") <= granted
    for kind in (kinds.POD_GROUPS, kinds.NATIVE_POD_GROUPS):
        assert needed(kind, "list watch") | needed(kind, "patch", "status") <= granted
    # Koordinator's definition of PodGroups has no status subresource.
    assert needed(kinds.POD_GROUPS, "patch") <= granted
    assert not needed(kinds.NATIVE_POD_GROUPS, "patch") & granted
    quotas = needed(kinds.ELASTIC_QUOTAS, "list watch create patch")
    assert quotas | needed(kinds.ELASTIC_QUOTAS, "patch", "status") <= granted
    assert needed(kinds.NAMESPACE_QUOTAS, "list watch patch") <= granted
    assert needed(kinds.NAMESPACE_QUOTAS, "patch", "status") <= granted
    assert needed(kinds.ELASTIC_QUOTA_PROFILES, "list watch") <= granted
    rates = needed(kinds.DISRUPTION_RATES, "list watch")
    assert rates | needed(kinds.DISRUPTION_RATES, "patch", "status") <= granted
    assert needed(kinds.NODE_AVOIDANCES, "get list watch create patch delete") <= granted
    assert needed(kinds.PODS, "create", "eviction") <= granted
    for kind in (kinds.DEVICE_CLASSES, kinds.RESOURCE_SLICES):
        assert needed(kind, "list watch") <= granted
    assert needed(kinds.RESOURCE_CLAIMS, "get list watch patch") <= granted
    for right in ("status", "binding"):
        assert needed(kinds.RESOURCE_CLAIMS, "patch", right) <= granted
    assert needed(kinds.EVENTS, "create patch") <= granted
    leases = [rule for rule in rules("scheduler.yaml") if "leases" in rule["resources"]]
    assert [rule["verbs"] for rule in leases] == [["create"], ["get", "patch"]]
    assert leases[1]["resourceNames"] == ["koordlet-scheduler"]


@pytest.mark.parametrize("name", ["daemonset.yaml", "scheduler.yaml"])
def test_no_role_is_wide(name: str) -> None:
    """No wildcard, no secret, no node proxy, no way to more rights; every rule has its reason."""
    granted = allowed(name)

    assert not [right for right in granted if "*" in right]
    for group, resource, verb in granted:
        assert resource not in {"secrets", "nodes/proxy", "pods/exec", "serviceaccounts"}
        assert verb not in {"impersonate", "escalate", "deletecollection"}
        assert group != "rbac.authorization.k8s.io"
    text = (DEPLOY / name).read_text()
    assert len(re.findall(r"^  #", text, re.MULTILINE)) >= 8


def test_the_lease_is_the_one_that_is_used() -> None:
    """Name and namespace of the role are the election's."""
    from koordlet.scheduler.loop import election

    terms = election.Terms()
    roles = [document for document in documents("scheduler.yaml") if document["kind"] == "Role"]

    assert terms.namespace == roles[0]["metadata"]["namespace"]
    assert [terms.name] == roles[0]["rules"][1]["resourceNames"]


def overlays() -> list[Any]:
    """Every kustomization."""
    return [
        pytest.param(path, id=str(path.parent.relative_to(DEPLOY)))
        for path in sorted(DEPLOY.rglob("kustomization.yaml"))
    ]


@pytest.mark.parametrize("path", overlays())
def test_overlays_fit(path: Any) -> None:
    """What they name is there; their variables are known; their paths point into something.

    Kustomize refuses what lies above an overlay (a cycle), and files outside of its folder.
    """
    body = yaml.safe_load(path.read_text())
    for name in (*body.get("resources", ()), *body.get("components", ())):
        place = (path.parent / name).resolve()
        assert place.exists(), name
        assert place not in path.resolve().parents, name
        assert place.is_dir() or path.parent.resolve() in place.parents, name
    for patch in body.get("patches", ()):
        (target,) = (
            document
            for document in (*documents("daemonset.yaml"), *documents("scheduler.yaml"))
            if (document["kind"], document["metadata"]["name"])
            == (patch["target"]["kind"], patch["target"]["name"])
        )
        for step in yaml.safe_load(patch["patch"]):
            where: Any = target
            for part in step["path"].strip("/").split("/")[:-1]:
                where = where[int(part) if isinstance(where, list) else part]
            assert isinstance(where, list) == step["path"].endswith("/-")


@pytest.mark.parametrize("name", ["koordlet", "fleet"])
def test_every_query_of_the_dashboard_is_answered(name: str) -> None:
    """Names and labels of every query are those of a family that is served."""
    board = json.loads((DEPLOY / "dashboards" / f"{name}.json").read_text())
    page = metrics.page()
    rows = re.findall(r"^\| `(koordlet_\w+)` \| \w+ \| \w* \| ([^|]*) \|", page, re.MULTILINE)
    families = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}
    queries = [t["expr"] for panel in board["panels"] for t in panel["targets"]]

    assert len(queries) > 10
    for query in queries:
        (name,) = re.findall(r"koordlet_\w+", query)
        bucket = name.endswith("_bucket")
        name = name.removesuffix("_bucket")
        assert name in families, query
        used = re.findall(r"by \(([^)]*)\)", query) + re.findall(r"[{,](\w+)=", query)
        labels = {label.strip() for text in used for label in text.split(",")}
        assert labels <= families[name] | {"instance"} | ({"le"} if bucket else set()), query
        assert 'instance=~"$instance"' in query, "the choice of a node must matter"


def test_the_scheduler_is_deployed_as_it_starts() -> None:
    """Its arguments are a command line of ours; probes ask what is served."""
    from koordlet import cli

    (deployment,) = (
        document for document in documents("scheduler.yaml") if document["kind"] == "Deployment"
    )
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    parsed = cli.parser("scheduler").parse_args(container["args"])

    assert parsed.command == "scheduler"
    for probe in ("startupProbe", "livenessProbe"):
        assert "127.0.0.1:9317/livez" in container[probe]["exec"]["command"][-1]
    context = container["securityContext"]
    assert (context["runAsNonRoot"], context["capabilities"]) == (True, {"drop": ["ALL"]})
