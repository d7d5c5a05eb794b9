"""Claims, volumes, storage classes and what nodes can attach, as the volume plugins ask for them.

Covers: the objects by name, what a class of pods mounts. Does not cover: opinions about nodes
(``scheduler.plugins.volumes``, ``scheduler.plugins.volume_binding``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from koordlet.scheduler.objects import terms, wire
from koordlet.scheduler.objects.pods import PodClass
from koordlet.scheduler.objects.wire import Body

#: Kinds of volumes that CSI drivers have taken over: the driver, and what names the volume.
_MIGRATED = {
    "awsElasticBlockStore": ("ebs.csi.aws.com", "volumeID"),
    "azureDisk": ("disk.csi.azure.com", "diskURI"),
    "cinder": ("cinder.csi.openstack.org", "volumeID"),
    "gcePersistentDisk": ("pd.csi.storage.gke.io", "pdName"),
    "portworxVolume": ("pxd.portworx.com", "volumeID"),
}
#: The node that a claim is made for, as the volume controller reads it.
SELECTED = "volume.kubernetes.io/selected-node"
#: How claims and volumes named their class before there was a field for it.
_CLASS = "volume.beta.kubernetes.io/storage-class"
_PROVISIONERS = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}


class Storage:
    """Everything that is known of storage."""

    def __init__(self) -> None:
        self.claims: dict[tuple[str, str], Body] = {}
        self.volumes: dict[str, Body] = {}
        self.classes: dict[str, Body] = {}
        #: Node to driver to the most volumes that it attaches there.
        self.limits: dict[str, dict[str, int]] = {}
        #: What was attached where, by VolumeAttachment: node and volume.
        self._attachments: dict[str, tuple[str, str]] = {}
        #: The same as it is asked for, until something changes.
        self._by_node: dict[str, set[tuple[str, str]]] | None = None
        #: Drivers that report how much room they have where, and what they report.
        self.reporting: set[str] = set()
        self.capacities: dict[tuple[str, str], Body] = {}
        #: All other kinds are storage classes.
        self._tables: dict[str, dict[Any, Any]] = {
            "PersistentVolumeClaim": self.claims,
            "PersistentVolume": self.volumes,
            "CSINode": self.limits,
            "CSIStorageCapacity": self.capacities,
            "VolumeAttachment": self._attachments,
        }

    def add(self, body: Body) -> None:
        """One object; ``BadObjectError`` where a field has another shape than it must have."""
        check(body)
        self._by_node = None
        table, key = self._place(body)
        if wire.text(body, "kind") != "CSIDriver":
            table[key] = _read(body)
            return
        self.reporting.discard(key)
        if wire.flag(wire.mapping(body, "spec"), "storageCapacity"):
            self.reporting.add(key)

    def drop(self, body: Body) -> None:
        """It goes."""
        self._by_node = None
        table, key = self._place(body)
        if wire.text(body, "kind") == "CSIDriver":
            self.reporting.discard(key)
        else:
            table.pop(key, None)

    def _place(self, body: Body) -> tuple[dict[Any, Any], Any]:
        meta = wire.mapping(body, "metadata")
        table = self._tables.get(wire.text(body, "kind"), self.classes)
        name = wire.text(meta, "name")
        spaced = table is self.claims or table is self.capacities
        return table, (wire.text(meta, "namespace") or "default", name) if spaced else name

    def bound(self, pod_class: PodClass) -> list[tuple[str, Body | None]]:
        """The volumes of a class's bound claims, by name; ``None`` where one is gone."""
        names = [self.volume_of(pod_class.namespace, name) for name in claim_names(pod_class)]
        return [(name, self.volumes.get(name)) for name in names if name]

    def volume_of(self, namespace: str, claim: str) -> str:
        """The name of a claim's volume; empty where it has none, or is not there."""
        spec = wire.mapping(self.claims.get((namespace, claim), {}), "spec")
        return wire.text(spec, "volumeName")

    def attachments(self) -> Mapping[str, Collection[tuple[str, str]]]:
        """What CSI drivers have attached and not yet detached, by node: (driver, volume)."""
        if self._by_node is None:
            self._by_node = {}
            for node, volume in self._attachments.values():
                source = _source(wire.mapping(self.volumes.get(volume, {}), "spec"))
                if source is not None:
                    self._by_node.setdefault(node, set()).add(source)
        return self._by_node

    def attached(self, pod_class: PodClass) -> frozenset[tuple[str, str]]:
        """What CSI drivers attach for a class: (driver, volume); what is not known is not there."""
        volumes: set[tuple[str, str] | None] = set()
        for name in claim_names(pod_class):
            claim = self.claims.get((pod_class.namespace, name))
            if claim is None:
                continue
            volume = self.volume_of(pod_class.namespace, name)
            if volume in self.volumes:
                volumes.add(_source(wire.mapping(self.volumes[volume], "spec")))
            else:
                # It will be made by the driver of its class, or was: it is not there any more.
                made = wire.text(self.class_of(claim), "provisioner")
                volumes.add((_PROVISIONERS.get(made, made), f"{pod_class.namespace}/{name}"))
        volumes |= {_migrated(volume) for volume in pod_class.volumes}
        return frozenset(known for known in volumes if known is not None and known[0])

    def class_of(self, claim: Body) -> Body:
        """The storage class of a claim; empty where there is none."""
        return self.classes.get(class_name(claim), {})


def class_name(body: Body) -> str:
    """The storage class that a claim or a volume names; the old annotation wins."""
    notes = wire.mapping(wire.mapping(body, "metadata"), "annotations")
    spec = wire.mapping(body, "spec")
    return wire.text(notes, _CLASS) if _CLASS in notes else wire.text(spec, "storageClassName")


def check(body: Body) -> None:
    """Read every field that is ever looked at, so that nobody stumbles over it later."""
    meta, spec = wire.mapping(body, "metadata"), wire.mapping(body, "spec")
    wire.labels(meta)
    wire.texts(meta, "name", "namespace", "uid")
    wire.texts(wire.mapping(meta, "annotations"), SELECTED, _CLASS)
    wire.text(wire.mapping(body, "status"), "phase")
    wire.texts(spec, "volumeName", "storageClassName", "volumeMode", "nodeName")
    wire.strings(spec, "accessModes")
    wire.mapping(wire.mapping(spec, "resources"), "requests")
    wire.mapping(spec, "capacity")
    _named(spec, {"claimRef": ("namespace", "name", "uid"), "csi": ("driver", "volumeHandle")})
    _named(spec, {kind: (key,) for kind, (_, key) in _MIGRATED.items()})
    _named(spec, {"source": ("persistentVolumeName",)})
    if spec.get("selector") is not None:
        terms.selector(spec, "selector")
    required = wire.mapping(wire.mapping(spec, "nodeAffinity"), "required")
    for term in wire.bodies(required, "nodeSelectorTerms"):
        terms.node_term(term)
    wire.texts(body, "provisioner", "volumeBindingMode", "storageClassName")
    for topology in wire.bodies(body, "allowedTopologies"):
        for want in wire.bodies(topology, "matchLabelExpressions"):
            wire.text(want, "key")
            wire.strings(want, "values")
    if body.get("nodeTopology") is not None:
        terms.selector(body, "nodeTopology")
    wire.flag(spec, "storageCapacity")
    _read(body)


def kept(body: Body) -> Body:
    """What of an object is read, or written by; ``BadObjectError`` as in ``check``."""
    check(body)
    meta = wire.mapping(body, "metadata")
    names = (
        *("name", "namespace", "uid", "labels", "annotations", "deletionTimestamp"),
        *("ownerReferences", "resourceVersion"),
    )
    phase = wire.mapping(body, "status").get("phase")
    return {
        **{key: value for key, value in body.items() if key not in {"metadata", "status"}},
        "metadata": {name: meta[name] for name in names if name in meta},
        **({"status": {"phase": phase}} if phase is not None else {}),
    }


def is_like(old: Body, new: Body) -> bool:
    """Whether nothing that is read has changed: an object's revision is only written by."""
    before, after = ({**body["metadata"], "resourceVersion": ""} for body in (old, new))
    return {**old, "metadata": before} == {**new, "metadata": after}


def check_inline(volume: Body) -> None:
    """The same for a volume in a pod."""
    _named(volume, {"persistentVolumeClaim": ("claimName",)})
    _named(volume, {kind: (key,) for kind, (_, key) in _MIGRATED.items()})
    _named(volume, {"iscsi": ("iqn",), "rbd": ("pool", "image")})
    wire.strings(wire.mapping(volume, "rbd"), "monitors")


def _named(body: Body, several: Mapping[str, Sequence[str]]) -> None:
    for kind, keys in several.items():
        wire.texts(wire.mapping(body, kind), *keys)


def claim_names(pod_class: PodClass) -> dict[str, Body | None]:
    """The claims that a class mounts; of those made for a pod alone its ``name`` and ``uid``."""
    return {
        wire.text(wire.mapping(volume, "persistentVolumeClaim"), "claimName"): volume.get(
            "ephemeral"
        )
        for volume in pod_class.volumes
        if volume.get("persistentVolumeClaim") is not None
    }


def _source(spec: Body) -> tuple[str, str] | None:
    """The CSI driver of a PersistentVolume, and what it calls it."""
    if spec.get("csi") is None:
        return _migrated(spec)
    csi = wire.mapping(spec, "csi")
    return wire.text(csi, "driver"), wire.text(csi, "volumeHandle")


def _migrated(spec: Body) -> tuple[str, str] | None:
    for kind, (driver, key) in _MIGRATED.items():
        if spec.get(kind) is not None:
            return driver, wire.text(wire.mapping(spec, kind), key)
    return None


def _read(body: Body) -> object:
    """What is kept of an object: nearly always itself."""
    kind, spec = wire.text(body, "kind"), wire.mapping(body, "spec")
    if kind == "VolumeAttachment":
        volume = wire.text(wire.mapping(spec, "source"), "persistentVolumeName")
        return wire.text(spec, "nodeName"), volume
    return _limits(body) if kind == "CSINode" else body


def _limits(body: Body) -> dict[str, int]:
    limits = {}
    for driver in wire.bodies(wire.mapping(body, "spec"), "drivers"):
        room = wire.mapping(driver, "allocatable")
        if room.get("count") is not None:
            limits[wire.text(driver, "name")] = wire.integer(room, "count")
    return limits
