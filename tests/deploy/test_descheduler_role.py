"""The descheduler as it is deployed: its rights verb by verb, its arguments, its policy."""

from __future__ import annotations

import re
from typing import Any

from koordlet import cli
from koordlet.kubeapi import kinds
from koordlet.scheduler.descheduling import configuration
from tests.deploy.documents import DEPLOY, allowed, documents, needed, rules

FILE = "descheduler.yaml"
#: What ``loop.event_handlers`` watches.
WATCHED = (
    *(kinds.NAMESPACES, kinds.NODES, kinds.PODS, kinds.SERVICES, kinds.REPLICATION_CONTROLLERS),
    *(kinds.PERSISTENT_VOLUMES, kinds.PERSISTENT_VOLUME_CLAIMS, kinds.PRIORITY_CLASSES),
    *(kinds.REPLICA_SETS, kinds.STATEFUL_SETS, kinds.POD_DISRUPTION_BUDGETS),
    *(kinds.DEVICE_CLASSES, kinds.RESOURCE_CLAIMS, kinds.RESOURCE_SLICES),
    *(kinds.STORAGE_CLASSES, kinds.CSI_NODES, kinds.CSI_DRIVERS, kinds.STORAGE_CAPACITIES),
    *(kinds.VOLUME_ATTACHMENTS, kinds.NODE_METRICS, kinds.NODE_RESOURCE_TOPOLOGIES),
    *(kinds.DEVICES, kinds.RESERVATIONS),
    *(kinds.ELASTIC_QUOTAS, kinds.ELASTIC_QUOTA_PROFILES, kinds.POD_GROUPS),
    *(kinds.NATIVE_POD_GROUPS, kinds.CLUSTER_NETWORK_TOPOLOGIES, kinds.DISRUPTION_RATES),
)


def one(kind: str) -> dict[str, Any]:
    """The only object of a kind."""
    (body,) = (document for document in documents(FILE) if document["kind"] == kind)
    return body


def test_the_deschedulers_role_is_what_it_asks_for() -> None:
    """It watches, reserves, evicts and tells; it deletes no pod. Every rule has its reason."""
    wanted = set().union(
        *(needed(kind, "list watch") for kind in WATCHED),
        needed(kinds.PODS, "create", "eviction"),
        needed(kinds.NODE_AVOIDANCES, "get list watch create patch"),
        needed(kinds.PODS, "get patch"),
        needed(kinds.RESERVATIONS, "create delete get patch"),
        needed(kinds.POD_MIGRATION_JOBS, "create delete list patch watch"),
        needed(kinds.POD_MIGRATION_JOBS, "patch", "status"),
        needed(kinds.MOVE_PLANS, "create delete list patch watch"),
        needed(kinds.MOVE_PLANS, "patch", "status"),
        needed(kinds.EVENTS, "create"),
        needed(kinds.LEASES, "create get patch"),
    )
    assert allowed(FILE) == wanted
    leases = [rule for rule in rules(FILE) if "leases" in rule["resources"]]
    assert leases[1]["resourceNames"] == [configuration.LEASE.name]
    assert one("Role")["metadata"]["namespace"] == configuration.LEASE.namespace
    assert len(re.findall(r"^  #", (DEPLOY / FILE).read_text(), re.MULTILINE)) >= 10


def test_it_is_deployed_as_it_starts_and_only_shows() -> None:
    """Its arguments are a command line of ours, and its policy a configuration that acts not."""
    (container,) = one("Deployment")["spec"]["template"]["spec"]["containers"]
    parsed = cli.parser("descheduler").parse_args(container["args"])
    assert parsed.config == "/etc/koordlet/policy.yaml"
    assert parsed.http.rpartition(":")[2] in container["livenessProbe"]["exec"]["command"][-1]
    settings = configuration.read_all([one("ConfigMap")], FILE)
    assert (settings.dry_run, settings.election) == (True, configuration.LEASE)
    assert settings.interval_seconds == 120.0
