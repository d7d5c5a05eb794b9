"""Volumes that only some nodes can have, or only so many.

Covers: VolumeRestrictions (disks in use, ReadWriteOncePod), VolumeZone, NodeVolumeLimits (what CSI
drivers can attach to a node). Does not cover: claims and their volumes (``volume_binding``), the
objects (``scheduler.objects.storage``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from koordlet.model.record import dataclass
from koordlet.scheduler import framework
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.cluster.vectors import Ints, Rows
from koordlet.scheduler.objects import terms, wire
from koordlet.scheduler.objects.pods import PodClass
from koordlet.scheduler.objects.storage import Storage, claim_names

#: Kinds of disks that one node at a time can write, and what names one.
_DISKS = {
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "iscsi": ("iqn",),
    "rbd": ("pool", "image"),
}
#: Former labels to what they are called now.
_RENAMED = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_ZONES = (*_RENAMED.values(), *_RENAMED)


class WithStorage(framework.Plugin):
    """A plugin that is given the objects of storage."""

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(args)
        self.storage = Storage()


class VolumeRestrictions(WithStorage):
    """One disk, one node; one ReadWriteOncePod claim, one pod."""

    name = "VolumeRestrictions"
    listens = ActionType.NODE_NEW | ActionType.POD_GONE | ActionType.STORAGE

    def filter(self, pod_class: PodClass, columns: Columns) -> framework.Filter | None:
        disks = _disks(pod_class)
        specs = {
            name: wire.mapping(self.storage.claims.get((pod_class.namespace, name), {}), "spec")
            for name in claim_names(pod_class)
        }
        modes = {name: wire.strings(spec, "accessModes") for name, spec in specs.items()}
        alone = {name for name, several in modes.items() if "ReadWriteOncePod" in several}
        return _InUse(pod_class, disks, alone, columns) if disks or alone else None


@dataclass(frozen=True, slots=True)
class Disk:
    """How a pod mounts a disk."""

    reads: bool
    monitors: frozenset[str]


def _disks(pod_class: PodClass) -> dict[tuple[str, ...], Disk]:
    """Disks by name."""
    disks = {}
    for volume in pod_class.volumes:
        for kind, keys in _DISKS.items():
            if volume.get(kind) is not None:
                body = wire.mapping(volume, kind)
                name = (kind, *(wire.text(body, key) for key in keys))
                # An EBS volume is exclusive even for readers.
                reads = body.get("readOnly") is True and kind != "awsElasticBlockStore"
                disks[name] = Disk(reads, frozenset(wire.strings(body, "monitors")))
    return disks


class _InUse(framework.Filter):
    kind = framework.Kind.CONTEXT
    verdicts = framework.hopeful(
        "node(s) had no available disk",
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access"
        " mode already in-use by another pod",
    )

    def __init__(
        self,
        pod_class: PodClass,
        disks: Mapping[tuple[str, ...], Disk],
        alone: set[str],
        columns: Columns,
    ) -> None:
        self._pod_class, self._disks, self._claims, self._columns = pod_class, disks, alone, columns

    def codes(self, rows: Rows) -> Ints:
        blocked = np.zeros(self._columns.size, np.int64)
        for other, by_row in self._columns.classes().items():
            if not other.volumes or not by_row:
                continue
            if self._clash(_disks(other)):
                blocked[list(by_row)] = 1
            same = other.namespace == self._pod_class.namespace
            if same and not self._claims.isdisjoint(claim_names(other)):
                blocked[blocked == 0] = 2
        return blocked[rows]

    def _clash(self, theirs: Mapping[tuple[str, ...], Disk]) -> bool:
        """Whether a disk is in both, and one of the two writes; of Ceph, by a common monitor."""
        for name, mine in self._disks.items():
            other = theirs.get(name)
            if other is None or (mine.reads and other.reads):
                continue
            if name[0] != "rbd" or mine.monitors & other.monitors:
                return True
        return False


class VolumeZone(WithStorage):
    """Zone and region labels of a volume hold for the node."""

    name = "VolumeZone"
    listens = ActionType.NODE_NEW | ActionType.NODE_LABELS | ActionType.STORAGE

    def filter(self, pod_class: PodClass, columns: Columns) -> framework.Filter | None:
        # A cluster of one zone may have no labels: a node without any of them is not judged.
        index = columns.index
        nowhere = np.ones(columns.size, np.bool_)
        for key in _ZONES:
            nowhere &= index.label(key).ids < 0
        passing = np.ones(columns.size, np.bool_)
        for _, volume in self.storage.bound(pod_class):
            labels = wire.mapping(wire.mapping(volume or {}, "metadata"), "labels")
            for key in _ZONES:
                if key in labels:
                    zones = tuple(str(labels[key]).split("__"))
                    there = index.requirement(terms.NodeRequirement(key, "In", zones))
                    if key in _RENAMED:
                        now = terms.NodeRequirement(_RENAMED[key], "In", zones)
                        there |= (index.label(key).ids < 0) & index.requirement(now)
                    passing &= there | nowhere
        return (
            None
            if passing.all()
            else framework.masked(passing, "node(s) had no available volume zone")
        )


class NodeVolumeLimits(WithStorage):
    """So many volumes of a driver on a node, as its CSINode says; each volume once.

    Those of its pods count, and those that are still attached to it.
    """

    name = "NodeVolumeLimits"
    listens = ActionType.NODE_NEW | ActionType.POD_GONE | ActionType.STORAGE

    def filter(self, pod_class: PodClass, columns: Columns) -> framework.Filter | None:
        wanted = self.storage.attached(pod_class)
        drivers = {driver for driver, _ in wanted}
        limits = {
            name: {driver: value[driver] for driver in drivers & value.keys()}
            for name, value in self.storage.limits.items()
            if not drivers.isdisjoint(value)
        }
        return _Attached(self.storage, wanted, limits, columns) if limits else None

    def concerned(self, event: ClusterEvent) -> bool:
        # Whoever goes without volumes leaves none.
        return event.pod is None or bool(event.pod.pod_class.volumes)


class _Attached(framework.Filter):
    kind = framework.Kind.CONTEXT
    verdicts = framework.hopeful("node(s) exceed max volume count")

    def __init__(
        self,
        storage: Storage,
        wanted: frozenset[tuple[str, str]],
        limits: Mapping[str, Mapping[str, int]],
        columns: Columns,
    ) -> None:
        self._storage, self._wanted = storage, wanted
        self._limits, self._columns = limits, columns

    def codes(self, rows: Rows) -> Ints:
        places, attachments = self._columns.rows, self._storage.attachments()
        there = {
            places[name]: set(attachments.get(name, ())) for name in self._limits if name in places
        }
        for other, by_row in self._columns.classes().items():
            theirs = self._storage.attached(other) if other.volumes and by_row else ()
            if theirs:
                for row in there.keys() & by_row:
                    there[row].update(theirs)
        full = np.zeros(self._columns.size, np.int64)
        for name, limits in self._limits.items():
            place = places.get(name)
            if place is not None and self._over(limits, there[place]):
                full[place] = 1
        return full[rows]

    def _over(self, limits: Mapping[str, int], there: set[tuple[str, str]]) -> bool:
        """Only volumes that come count: what is there already is attached."""
        new, every = self._wanted - there, self._wanted | there
        return any(
            sum(name == driver for name, _ in every) > most
            for driver, most in limits.items()
            if any(name == driver for name, _ in new)
        )
