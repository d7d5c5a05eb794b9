"""What is served: the kinds, their subresources, and the documents that clients find them by.

Covers: the table of kinds, definitions of custom resources, the discovery documents of kubectl.
Does not cover: requests (``api``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from koordlet.kubeapi import kinds

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_SHORT = {"pods": ["po"], "nodes": ["no"], "configmaps": ["cm"], "namespaces": ["ns"]}

BUILT_IN = (
    *(kinds.CONFIG_MAPS, kinds.NAMESPACES, kinds.NODES, kinds.PODS, kinds.SERVICES),
    *(kinds.CSI_NODES, kinds.CUSTOM_RESOURCES, kinds.EVENTS, kinds.LEASES, kinds.REPLICA_SETS),
    *(kinds.PERSISTENT_VOLUMES, kinds.PERSISTENT_VOLUME_CLAIMS, kinds.REPLICATION_CONTROLLERS),
    *(kinds.POD_DISRUPTION_BUDGETS, kinds.PRIORITY_CLASSES, kinds.RUNTIME_CLASSES),
    *(kinds.STATEFUL_SETS, kinds.STORAGE_CLASSES, kinds.SUBJECT_ACCESS_REVIEWS),
    *(kinds.TOKEN_REVIEWS, kinds.CSI_DRIVERS, kinds.STORAGE_CAPACITIES),
    *(kinds.VOLUME_ATTACHMENTS, kinds.RESOURCE_CLAIMS, kinds.RESOURCE_SLICES),
)


class Served:
    """The kinds that there are now."""

    def __init__(self, more: Iterable[kinds.Kind] = ()) -> None:
        self._kinds = {(kind.group, kind.version, kind.plural): kind for kind in (*BUILT_IN, *more)}
        #: Kind to the columns of its definition.
        self.columns: dict[kinds.Kind, list[Mapping[str, Any]]] = {}

    def find(self, group: str, version: str, plural: str) -> kinds.Kind | None:
        """A kind by its path."""
        return self._kinds.get((group, version, plural))

    def define(self, definition: Mapping[str, Any]) -> None:
        """Serve what a CustomResourceDefinition defines."""
        spec = definition["spec"]
        for version in spec["versions"]:
            kind = kinds.Kind(
                *(spec["group"], version["name"], spec["names"]["plural"], spec["names"]["kind"]),
                namespaced=spec["scope"] == "Namespaced",
            )
            self._kinds[kind.group, kind.version, kind.plural] = kind
            self.columns[kind] = version.get("additionalPrinterColumns") or []

    def drop(self, definition: Mapping[str, Any]) -> None:
        """Serve it no more."""
        spec = definition["spec"]
        self._kinds = {
            key: kind
            for key, kind in self._kinds.items()
            if (kind.group, kind.plural) != (spec["group"], spec["names"]["plural"])
        }

    def document(self, path: str) -> Mapping[str, Any] | None:  # noqa: PLR0911 - a table
        """A discovery document; ``None`` where the path is none."""
        steps = path.strip("/").split("/")
        match steps:
            case ["version"]:
                return {"major": "1", "minor": "36", "gitVersion": "v1.36.0-test"}
            case ["api"]:
                return {"kind": "APIVersions", "versions": ["v1"]}
            case ["apis"]:
                groups = sorted({kind.group for kind in self._kinds.values() if kind.group})
                return {
                    "kind": "APIGroupList",
                    "apiVersion": "v1",
                    "groups": [self._group(group) for group in groups],
                }
            case ["api", version]:
                return self._resources("", version)
            case ["apis", group]:
                document = self._group(group)
                return document if document["versions"] else None
            case ["apis", group, version]:
                return self._resources(group, version)
        return None

    def _group(self, group: str) -> dict[str, Any]:
        names = sorted({kind.version for kind in self._kinds.values() if kind.group == group})
        versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in names]
        return {
            "kind": "APIGroup",
            "apiVersion": "v1",
            "name": group,
            "versions": versions,
            "preferredVersion": versions[-1] if versions else {},
        }

    def _resources(self, group: str, version: str) -> Mapping[str, Any] | None:
        served = [
            kind for kind in self._kinds.values() if (kind.group, kind.version) == (group, version)
        ]
        if not served:
            return None
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": served[0].api_version,
            "resources": [
                {
                    "name": kind.plural,
                    "singularName": kind.name.lower(),
                    "namespaced": kind.namespaced,
                    "kind": kind.name,
                    "verbs": _VERBS,
                    "shortNames": _SHORT.get(kind.plural, []),
                }
                for kind in served
            ],
        }
