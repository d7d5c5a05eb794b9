"""Volumes that a pod's claims were promised on its node, and whether they are theirs by now.

Covers: what is written of a promise, what of it is outstanding, when it has failed. Does not cover:
choosing volumes (``volume_binding``), binding a claim (the volume controller does).

Rules:
1. A claim is bound when it has a volume and the volume controller has marked it. Each write names
   the revision of its object: a volume that is another claim's by now stays so.
2. A provisioner that fails takes the selected node off its claim; whoever empties a volume's
   ``claimRef`` gives it to somebody else. Either ends the promise. For ``_ECHO`` seconds after the
   write it may only be that our own write has not come back.
3. A volume that was made where the node does not reach it ends the promise at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from koordlet.kubeapi import kinds, objects
from koordlet.model.record import dataclass
from koordlet.scheduler.framework import RefusedError
from koordlet.scheduler.objects import terms, wire
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.objects.storage import SELECTED, Storage
from koordlet.scheduler.objects.wire import Body

#: On a claim to which the volume controller has given its volume.
BOUND = "pv.kubernetes.io/bind-completed"
_ECHO = 10.0

Patch = tuple[objects.Ref, objects.Object]


@dataclass(frozen=True, slots=True)
class VolumePromise:
    """What the waiting claims of one pod were promised on one node."""

    node: str
    #: Claim to volume, empty: it is to be made.
    volumes: Mapping[tuple[str, str], str]
    #: When the store had answered to its writes; ``None``: not yet.
    written: float | None = None

    def patches(self, storage: Storage) -> Sequence[Patch]:
        """Writes after which the volume controller, or a provisioner, does the rest."""
        return [
            _volume_patch(volume, key, storage) if volume else _claim_patch(key, self.node, storage)
            for key, volume in self.volumes.items()
        ]

    def outstanding(self, storage: Storage, node: Node, now: float, patience: float) -> list[str]:
        """The claims that are not bound yet; ``RefusedError``: the promise has failed."""
        age = 0.0 if self.written is None else now - self.written
        waiting = []
        for key, volume in self.volumes.items():
            claim = storage.claims.get(key)
            if claim is None:
                raise RefusedError(f'binding volumes: persistentvolumeclaim "{key[1]}" not found')
            if why := _failure(storage, claim, volume, node):
                raise RefusedError(f"binding volumes: {why}")
            if age > _ECHO and (why := _withdrawal(storage, claim, volume, node.name)):
                raise RefusedError(f"binding volumes: {why}")
            if not (is_bound(claim) and storage.volume_of(*key) in storage.volumes):
                waiting.append("/".join(key))
        if waiting and age >= patience:
            raise RefusedError(
                f"binding volumes: {', '.join(waiting)} not bound within {patience:g} s; events of"
                " the claim say what its provisioner or the volume controller lacks"
            )
        return waiting


def is_bound(claim: Body) -> bool:
    """Whether the volume controller has given a claim its volume."""
    notes = wire.mapping(wire.mapping(claim, "metadata"), "annotations")
    return bool(wire.text(wire.mapping(claim, "spec"), "volumeName")) and BOUND in notes


def _failure(storage: Storage, claim: Body, volume: str, node: Node) -> str:
    """Why a claim can never serve on a node; empty: it may."""
    name = wire.text(wire.mapping(claim, "spec"), "volumeName") or volume
    body = storage.volumes.get(name)
    if body is None:
        return f'pv "{volume}" not found' if volume and name == volume else ""
    affinity = wire.mapping(wire.mapping(body, "spec"), "nodeAffinity")
    if affinity.get("required") is None:
        return ""
    several = wire.bodies(wire.mapping(affinity, "required"), "nodeSelectorTerms")
    if any(terms.fulfils(terms.node_term(term), node.name, node.labels) for term in several):
        return ""
    return f'pv "{name}" node affinity doesn\'t match node "{node.name}"'


def _withdrawal(storage: Storage, claim: Body, volume: str, node: str) -> str:
    """Who has taken back what was written; empty: nobody."""
    if volume:
        spec = wire.mapping(storage.volumes.get(volume, {}), "spec")
        whose = wire.mapping(spec, "claimRef")
        return "" if wire.text(whose, "uid") else f'ClaimRef got reset for pv "{volume}"'
    meta = wire.mapping(claim, "metadata")
    if wire.text(wire.mapping(meta, "annotations"), SELECTED) == node:
        return ""
    return f'provisioning failed for PVC "{wire.text(meta, "name")}"'


def _claim_patch(key: tuple[str, str], node: str, storage: Storage) -> Patch:
    ref = objects.Ref(kinds.PERSISTENT_VOLUME_CLAIMS, key[1], key[0])
    known = storage.claims.get(key, {})
    return ref, {"metadata": {**_revised(known), "annotations": {SELECTED: node}}}


def _volume_patch(volume: str, key: tuple[str, str], storage: Storage) -> Patch:
    meta = wire.mapping(storage.claims.get(key, {}), "metadata")
    whose = {"namespace": key[0], "name": key[1], "uid": wire.text(meta, "uid")}
    kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    ref = objects.Ref(kinds.PERSISTENT_VOLUMES, volume)
    known = storage.volumes.get(volume, {})
    return ref, {"metadata": _revised(known), "spec": {"claimRef": {**kind, **whose}}}


def _revised(body: Body) -> Body:
    """The revision that was decided on: what somebody wrote since then ends the promise."""
    revision = objects.revision(body)
    return {"resourceVersion": revision} if revision else {}
