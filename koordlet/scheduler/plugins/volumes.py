"""Volumes: claims, their volumes, and the disks that only one node can have.

Covers: VolumeRestrictions (disks in use, ReadWriteOncePod), VolumeBinding as far as the claims,
volumes and classes are given, VolumeZone. Does not cover: attach limits, capacities of storage,
choosing a volume for a claim that waits for its first consumer (any such claim may be provisioned).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from koordlet.scheduler import framework, terms, wire
from koordlet.scheduler.columns import Columns
from koordlet.scheduler.framework import Filter, Kind, Masked, Plugin, RefusedError, Verdict
from koordlet.scheduler.happenings import What
from koordlet.scheduler.pods import PodClass
from koordlet.scheduler.vectors import Ints, Rows
from koordlet.scheduler.wire import Body

#: Kinds of disks that one node at a time can write, and what names one.
_DISKS = {
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "iscsi": ("iqn",),
    "rbd": ("pool", "image"),
}
_ZONES = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)


class Storage:
    """Claims, volumes, classes and what nodes can attach."""

    def __init__(self) -> None:
        self.claims: dict[tuple[str, str], Body] = {}
        self.volumes: dict[str, Body] = {}
        self.classes: dict[str, Body] = {}
        #: CSINodes.
        self.attachers: dict[str, Body] = {}

    def add(self, body: Body) -> None:
        """One object."""
        meta = wire.mapping(body, "metadata")
        name, kind = wire.text(meta, "name"), wire.text(body, "kind")
        if kind == "PersistentVolumeClaim":
            self.claims[wire.text(meta, "namespace") or "default", name] = body
        elif kind == "PersistentVolume":
            self.volumes[name] = body
        elif kind == "CSINode":
            self.attachers[name] = body
        else:
            self.classes[name] = body

    def drop(self, body: Body) -> None:
        """It goes."""
        meta = wire.mapping(body, "metadata")
        name, kind = wire.text(meta, "name"), wire.text(body, "kind")
        if kind == "PersistentVolumeClaim":
            self.claims.pop((wire.text(meta, "namespace") or "default", name), None)
        elif kind == "PersistentVolume":
            self.volumes.pop(name, None)
        elif kind == "CSINode":
            self.attachers.pop(name, None)
        else:
            self.classes.pop(name, None)

    def bound(self, sort: PodClass) -> list[tuple[str, Body | None]]:
        """The volumes of a class's bound claims, by name; ``None`` where one is gone."""
        found: list[tuple[str, Body | None]] = []
        for name in claim_names(sort):
            claim = self.claims.get((sort.namespace, name))
            if claim is not None:
                volume = wire.text(wire.mapping(claim, "spec"), "volumeName")
                if volume:
                    found.append((volume, self.volumes.get(volume)))
        return found


def claim_names(sort: PodClass) -> list[str]:
    """The claims that a class mounts."""
    return [
        wire.text(wire.mapping(one, "persistentVolumeClaim"), "claimName")
        for one in sort.volumes
        if one.get("persistentVolumeClaim") is not None
    ]


class WithStorage(Plugin):
    """A plugin that is given the objects of storage."""

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(args)
        self.storage = Storage()


class VolumeRestrictions(WithStorage):
    """One disk, one node; one ReadWriteOncePod claim, one pod."""

    name = "VolumeRestrictions"
    listens = What.NODE_NEW | What.POD_GONE | What.STORAGE

    def filter(self, sort: PodClass, columns: Columns) -> Filter | None:
        disks = _disks(sort)
        alone = {
            name for name in claim_names(sort) if self._alone(self.storage, sort.namespace, name)
        }
        return _InUse(sort, disks, alone, columns) if disks or alone else None

    @staticmethod
    def _alone(storage: Storage, namespace: str, name: str) -> bool:
        claim = storage.claims.get((namespace, name), {})
        return "ReadWriteOncePod" in wire.strings(wire.mapping(claim, "spec"), "accessModes")


def _disks(sort: PodClass) -> dict[tuple[str, ...], bool]:
    """Disks by name, and whether the pod only reads."""
    found = {}
    for volume in sort.volumes:
        for kind, keys in _DISKS.items():
            if volume.get(kind) is not None:
                body = wire.mapping(volume, kind)
                name = (kind, *(wire.text(body, key) for key in keys))
                # An EBS volume is exclusive even for readers.
                found[name] = body.get("readOnly") is True and kind != "awsElasticBlockStore"
    return found


class _InUse(Filter):
    kind = Kind.CONTEXT

    def __init__(
        self,
        sort: PodClass,
        disks: dict[tuple[str, ...], bool],
        alone: set[str],
        columns: Columns,
    ) -> None:
        self._sort, self._disks, self._claims, self._columns = sort, disks, alone, columns

    def codes(self, rows: Rows) -> Ints:
        blocked = np.zeros(self._columns.size, np.int64)
        for other, by_row in self._columns.classes().items():
            if not other.volumes or not by_row:
                continue
            theirs = _disks(other)
            if any(not (mine and theirs.get(name, True)) for name, mine in self._both(theirs)):
                blocked[list(by_row)] = 1
            if other.namespace == self._sort.namespace and self._claims & set(claim_names(other)):
                blocked[blocked == 0] = 2
        return blocked[rows]

    def _both(self, theirs: dict[tuple[str, ...], bool]) -> list[tuple[tuple[str, ...], bool]]:
        return [(name, mine) for name, mine in self._disks.items() if name in theirs]

    def verdict(self, code: int) -> Verdict:
        reason = (
            "node(s) had no available disk"
            if code == 1
            else "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access"
            " mode already in-use by another pod"
        )
        return Verdict((reason,), resolvable=True)


class VolumeBinding(WithStorage):
    """Claims must exist; bound volumes must be reachable from the node."""

    name = "VolumeBinding"
    listens = What.NODE_NEW | What.NODE_LABELS | What.STORAGE

    def filter(self, sort: PodClass, columns: Columns) -> Filter | None:
        names = claim_names(sort)
        if not names:
            return None
        for name in names:
            self._claim(sort.namespace, name)
        codes = np.zeros(columns.size, np.int64)
        for _, volume in self.storage.bound(sort):
            if volume is None:
                codes[:] = 2
                continue
            affinity = wire.mapping(wire.mapping(volume, "spec"), "nodeAffinity")
            if affinity.get("required") is not None:
                several = wire.bodies(wire.mapping(affinity, "required"), "nodeSelectorTerms")
                near = columns.index.any_term([terms.node_term(one) for one in several])
                codes = np.where((codes == 0) & ~near, 1, codes)
        return _Reach(codes)

    def _claim(self, namespace: str, name: str) -> None:
        claim = self.storage.claims.get((namespace, name))
        if claim is None:
            raise RefusedError(f'persistentvolumeclaim "{name}" not found')
        if wire.mapping(claim, "metadata").get("deletionTimestamp") is not None:
            raise RefusedError(f'persistentvolumeclaim "{name}" is being deleted')
        spec = wire.mapping(claim, "spec")
        if wire.text(spec, "volumeName"):
            return
        kind = self.storage.classes.get(wire.text(spec, "storageClassName"), {})
        if wire.text(kind, "volumeBindingMode", "Immediate") != "WaitForFirstConsumer":
            raise RefusedError("pod has unbound immediate PersistentVolumeClaims")


class _Reach(Filter):
    def __init__(self, codes: Ints) -> None:
        self._codes = codes

    def codes(self, rows: Rows) -> Ints:
        return self._codes[rows]

    def verdict(self, code: int) -> Verdict:
        reason = (
            "node(s) didn't match PersistentVolume's node affinity"
            if code == 1
            else "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
        )
        return framework.Verdict((reason,), resolvable=False)


class VolumeZone(WithStorage):
    """Zone and region labels of a volume hold for the node."""

    name = "VolumeZone"
    listens = What.NODE_NEW | What.NODE_LABELS | What.STORAGE

    def filter(self, sort: PodClass, columns: Columns) -> Filter | None:
        passing = np.ones(columns.size, np.bool_)
        for _, volume in self.storage.bound(sort):
            labels = wire.mapping(wire.mapping(volume or {}, "metadata"), "labels")
            for key in _ZONES:
                if key in labels:
                    zones = tuple(str(labels[key]).split("__"))
                    wanted = terms.Requirement(key, "In", zones)
                    passing &= columns.index.requirement(wanted)
        return None if passing.all() else Masked(passing, "node(s) had no available volume zone")
