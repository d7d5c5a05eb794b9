"""The CustomResourceDefinitions: one row for each kind, and the YAML that is installed.

Covers: names, versions, printed columns, subresources, the document of ``koordlet crds``.
Does not cover: the fields (``topology``, ``nodemetric``, …), installing anything.

Rules:
1. Names, groups and versions are the peers': our definition can stand in for theirs. What no peer
   has is in a group of ours.
2. What is installed already is never replaced by the agent: installing is the operator's act.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from koordlet.kubeapi import kinds
from koordlet.model.record import dataclass
from koordlet.report.crds import (
    colocation_profile,
    device,
    disruption_rate,
    move_plan,
    node_avoidance,
    nodemetric,
    nodeslo,
    pod_migration_job,
    reservation,
    structural,
    topology,
)

#: Groups below ``k8s.io`` are protected: a server refuses a definition without this annotation.
#: The proposal by which the API was approved:
_APPROVED = (
    ("api-approved.kubernetes.io", "https://github.com/kubernetes/enhancements/pull/1870"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One kind."""

    kind: kinds.Kind
    model: type[BaseModel]
    #: Those that are served; the last is stored.
    versions: tuple[str, ...] = ("v1alpha1",)
    short: tuple[str, ...] = ()
    status: bool = True
    columns: tuple[Mapping[str, str], ...] = ()
    selectable: tuple[str, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()


def _column(name: str, path: str, kind: str = "string") -> Mapping[str, str]:
    """One column of ``kubectl get``."""
    return {"name": name, "type": kind, "jsonPath": path}


_AGE = _column("Age", ".metadata.creationTimestamp", "date")

DEFINITIONS = (
    Definition(
        kind=kinds.NODE_RESOURCE_TOPOLOGIES,
        model=topology.NodeResourceTopology,
        versions=("v1alpha1", "v1alpha2"),
        short=("node-res-topo",),
        status=False,
        annotations=_APPROVED,
    ),
    Definition(
        kind=kinds.NODE_METRICS,
        model=nodemetric.NodeMetricSchema,
        columns=(_column("Updated", ".status.updateTime", "date"), _AGE),
    ),
    Definition(kind=kinds.NODE_SLOS, model=nodeslo.NodeSLO),
    Definition(kind=kinds.DEVICES, model=device.DeviceSchema),
    Definition(
        kind=kinds.RESERVATIONS,
        model=reservation.ReservationSchema,
        columns=(
            _column("Phase", ".status.phase"),
            _AGE,
            _column("Node", ".status.nodeName"),
            _column("TTL", ".spec.ttl"),
            _column("Expires", ".spec.expires"),
        ),
        # Each agent watches the reservations of its own node, and the server selects them.
        selectable=(".status.nodeName",),
    ),
    Definition(
        kind=kinds.POD_MIGRATION_JOBS,
        model=pod_migration_job.PodMigrationJobSchema,
        short=("pmj",),
        columns=(
            _column("Phase", ".status.phase"),
            _column("Status", ".status.status"),
            _AGE,
            _column("Node", ".status.nodeName"),
            _column("Reservation", ".spec.reservationOptions.reservationRef.name"),
            _column("PodNamespace", ".spec.podRef.namespace"),
            _column("Pod", ".spec.podRef.name"),
            _column("NewPod", ".status.podRef.name"),
            _column("TTL", ".spec.ttl"),
        ),
    ),
    Definition(
        kind=kinds.CLUSTER_COLOCATION_PROFILES,
        model=colocation_profile.ColocationProfileSchema,
        columns=(
            _column("QoS", ".spec.qosClass"),
            _column("Priority class", ".spec.priorityClassName"),
            _AGE,
        ),
    ),
    Definition(
        kind=kinds.DISRUPTION_RATES,
        model=disruption_rate.DisruptionRateSchema,
        short=("dr",),
        columns=(
            _column("Expected", ".status.expectedPods", "integer"),
            _column("Up", ".status.upPods", "integer"),
            _column("Allowed", '.status.conditions[?(@.type=="Allowed")].status'),
            _column("Reason", '.status.conditions[?(@.type=="Allowed")].reason'),
            _AGE,
        ),
    ),
    Definition(
        kind=kinds.NODE_AVOIDANCES,
        model=node_avoidance.NodeAvoidanceSchema,
        status=False,
        columns=(
            _column("Avoided by", ".spec.entries[*].signature.name"),
            _column("Until", ".spec.entries[*].until"),
            _AGE,
        ),
    ),
    Definition(
        kind=kinds.MOVE_PLANS,
        model=move_plan.MovePlanSchema,
        columns=(
            _column("Mode", ".spec.mode"),
            _column("Phase", ".status.phase"),
            _column("Reason", ".status.reason"),
            _column("For", ".spec.for.pod.name"),
            _column("Node", ".spec.node"),
            _AGE,
        ),
    ),
)


def document(definition: Definition, *, selectable: bool = True) -> dict[str, Any]:
    """The definition as an API object.

    Without ``selectable`` for servers before 1.30: kubectl refuses fields that they do not know.
    """
    kind = definition.kind
    metadata: dict[str, Any] = {"name": str(kind)}
    if definition.annotations:
        metadata["annotations"] = dict(definition.annotations)
    names: dict[str, Any] = {
        "kind": kind.name,
        "listKind": f"{kind.name}List",
        "plural": kind.plural,
        "singular": kind.name.lower(),
    }
    if definition.short:
        names["shortNames"] = list(definition.short)
    return {
        "apiVersion": kinds.CUSTOM_RESOURCES.api_version,
        "kind": kinds.CUSTOM_RESOURCES.name,
        "metadata": metadata,
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [
                _version(definition, version, selectable=selectable)
                for version in definition.versions
            ],
        },
    }


def _version(definition: Definition, version: str, *, selectable: bool) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": version,
        "served": True,
        "storage": version == definition.versions[-1],
        "schema": {"openAPIV3Schema": _schema(definition)},
    }
    if definition.status:
        made["subresources"] = {"status": {}}
    if definition.columns:
        made["additionalPrinterColumns"] = list(map(dict, definition.columns))
    if definition.selectable and selectable:
        made["selectableFields"] = [{"jsonPath": path} for path in definition.selectable]
    return made


def _schema(definition: Definition) -> dict[str, Any]:
    """The model, with what every object has around it."""
    made = structural.schema(definition.model)
    common = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
    }
    return {**made, "properties": {**common, **made["properties"]}}


def documents() -> list[dict[str, Any]]:
    """All of them, in the order of the table."""
    return [document(row) for row in DEFINITIONS]


def find(plural: str) -> Definition:
    """The row of a kind, by its plural."""
    return next(row for row in DEFINITIONS if row.kind.plural == plural)
