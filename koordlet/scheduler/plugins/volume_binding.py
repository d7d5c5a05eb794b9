"""VolumeBinding: claims must be bound to volumes that a node reaches, or become so there.

Covers: bound claims; claims that wait for their first consumer: the smallest volume that fits, or
a provisioner that has room; waiting before the pod is bound. Does not cover: what is written and
waited for (``volume_promises``).

Rules:
1. A claim that waits takes the volume that names it, or the smallest free volume of its class, with
   its modes, that the node reaches; of several claims the smallest takes first, and none takes
   another's. A claim that was promised to be made for a node is made there, or nowhere.
2. Without such a volume, the class's provisioner must serve the node; one whose CSIDriver says that
   it reports capacities must have reported one for the class and the node that is large enough.
3. What was chosen is promised from the decision until the objects say so, or the pod gives it back.
4. The pod is bound when its claims are, as with kube-scheduler: a provisioner may fail, and another
   node serve. Without a cluster nobody binds claims, and so nothing is waited for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from koordlet.kubeapi import objects
from koordlet.model.record import dataclass
from koordlet.scheduler import framework
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.cluster.vectors import Bools, Ints, Rows
from koordlet.scheduler.objects import requests, terms, wire
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.objects.storage import SELECTED, Storage, claim_names, class_name
from koordlet.scheduler.objects.wire import BadObjectError, Body
from koordlet.scheduler.plugins import resources, volume_promises
from koordlet.scheduler.plugins.volumes import WithStorage

NO_PROVISIONER = "kubernetes.io/no-provisioner"
#: By bit of a code, in the peer's order.
_REASONS = (
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) did not have enough free storage",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
)
_AFFINITY, _NOTHING, _SHORT, _GONE = (1 << bit for bit in range(4))
_MOST = 2**60
#: Seconds that claims may take to be bound, where the arguments name none, and between two looks.
_PATIENCE, _LOOK = 600, 1.0


@dataclass(frozen=True, slots=True)
class Volume:
    """A free volume that a claim may take."""

    name: str
    size: int
    reach: Bools


@dataclass(frozen=True, slots=True)
class Waiting:
    """A claim without a volume, and who could give it one."""

    key: tuple[str, str]
    size: int
    volumes: tuple[Volume, ...]
    made: Bools
    #: Where it would be made, and there is no room for it.
    short: Bools


class VolumeBinding(WithStorage):
    """Where the claims of a pod have volumes, or get them."""

    name = "VolumeBinding"
    listens = (
        ActionType.NODE_NEW | ActionType.NODE_LABELS | ActionType.STORAGE | ActionType.POD_GONE
    )

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(args)
        self._shaped = "shape" in args and bool(resources.shape(wire.bodies(args, "shape")))
        self._patience = wire.integer(args, "bindTimeoutSeconds", _PATIENCE)
        if self._patience < 0:
            raise BadObjectError(f"{self.name}: bindTimeoutSeconds: must not be negative")
        #: ``None``: nobody binds claims (rule 4).
        self._clock: Callable[[], float] | None = None
        #: Volume to the claim that it is promised to (rule 3), and promises by UID of the pod.
        self._promised: dict[str, tuple[str, str]] = {}
        self._promises: dict[str, volume_promises.VolumePromise] = {}
        self._columns: Columns | None = None

    def attach(
        self, clock: Callable[[], float] | None, promised: dict[str, tuple[str, str]]
    ) -> None:
        """Have a clock where there is a volume controller; ``promised``: by all profiles."""
        self._clock, self._promised = clock, promised

    @property
    def warnings(self) -> Sequence[str]:
        if not self._shaped:
            return ()
        return (f"{self.name}: shape has no effect: storage capacity is not scored",)

    def concerned(self, event: ClusterEvent) -> bool:
        # A pod that was not bound gives back what it was promised.
        return event.pod is None or bool(event.pod.pod_class.volumes)

    def filter(self, pod_class: PodClass, columns: Columns) -> framework.Filter | None:
        self._columns = columns
        names = claim_names(pod_class)
        if not names:
            return None
        space = pod_class.namespace
        # In the peer's order: which claims VolumeRestrictions does not find, which do not serve,
        # which are neither bound nor may wait.
        for name, pod in names.items():
            if pod is None and (space, name) not in self.storage.claims:
                raise framework.RefusedError(f'persistentvolumeclaim "{name}" not found')
        for name, pod in names.items():
            self._usable(space, name, pod)
        for name in names:
            self._bound_or_late(space, name)
        codes = np.zeros(columns.size, np.int64)
        for _, volume in self.storage.bound(pod_class):
            # The first claim that fails is the last that is looked at.
            code = np.full(columns.size, _GONE, np.int64)
            if volume is not None:
                code = np.where(reach(volume, columns), 0, _AFFINITY)
            codes = np.where(codes == 0, code, codes)
        waits = any(not self.storage.volume_of(pod_class.namespace, name) for name in names)
        return _Choice(self, pod_class, codes) if waits else _Reach(codes)

    def _usable(self, namespace: str, name: str, pod: Body | None) -> None:
        """Refuse a claim that will not serve; ``pod``: the one that it is to be made for alone."""
        claim, known = self.storage.claims.get((namespace, name)), f'persistentvolumeclaim "{name}"'
        if claim is None:
            made = f"waiting for ephemeral volume controller to create the {known}"
            raise framework.RefusedError(made)
        if wire.text(wire.mapping(claim, "status"), "phase") == "Lost":
            volume = wire.text(wire.mapping(claim, "spec"), "volumeName")
            lost = f'bound to non-existent persistentvolume "{volume}"'
            raise framework.RefusedError(f"{known} {lost}")
        if wire.mapping(claim, "metadata").get("deletionTimestamp") is not None:
            raise framework.RefusedError(f"{known} is being deleted")
        if pod is not None and not _owns(pod, claim):
            whose = f"was not created for pod {namespace}/{pod.get('name')} (pod is not owner)"
            raise framework.RefusedError(f"PVC {namespace}/{name} {whose}")

    def _bound_or_late(self, namespace: str, name: str) -> None:
        claim = self.storage.claims[namespace, name]
        phase = wire.text(wire.mapping(claim, "status"), "phase")
        volume = wire.text(wire.mapping(claim, "spec"), "volumeName")
        if volume and (phase != "Pending" or volume_promises.is_bound(claim)):
            return
        # One that asks for a volume waits until the volume controller agrees, whatever its class.
        storage_class = {} if volume else self.storage.class_of(claim)
        if wire.text(storage_class, "volumeBindingMode", "Immediate") != "WaitForFirstConsumer":
            raise framework.RefusedError("pod has unbound immediate PersistentVolumeClaims")

    def waiting(self, pod_class: PodClass) -> list[Waiting]:
        """The claims of a class that wait, the smallest first (rule 1)."""
        assert self._columns is not None  # noqa: S101 -- the filter was made before
        waiting = [
            _waiting(key, claim, self.storage, self._columns, self._promised)
            for name in claim_names(pod_class)
            if (claim := self.storage.claims.get(key := (pod_class.namespace, name))) is not None
            and not self.storage.volume_of(*key)
        ]
        return sorted(waiting, key=lambda claim: claim.size)

    def prepare(self, pod: Pod, node: str) -> None:
        columns = self._columns
        if columns is None or not pod.pod_class.volumes or node not in columns.rows:
            return
        chosen = outcome(self.waiting(pod.pod_class), columns.rows[node])
        if isinstance(chosen, int):
            raise framework.RefusedError(_Reach.reasons_of(chosen)[0])
        if chosen:
            self._promises[pod.uid] = volume_promises.VolumePromise(node, chosen)
            self._promised |= {volume: key for key, volume in chosen.items() if volume}

    def unreserve(self, pod: Pod, node: str) -> None:
        promise = self._promises.pop(pod.uid, None)
        for volume in () if promise is None else promise.volumes.values():
            self._promised.pop(volume, None)

    def post_bind(self, pod: Pod, node: str) -> None:
        """The objects say it from here on: a volume that has a claim is not free."""
        self.unreserve(pod, node)

    def writes(self, pod: Pod, node: str) -> Sequence[tuple[objects.Ref, objects.Object]]:
        promise = self._promises.get(pod.uid)
        if promise is None or promise.written is not None:
            return ()  # written again, it would hide that a provisioner has failed
        return promise.patches(self.storage)

    def preparing(self, pod: Pod, node: str) -> float:
        promise, columns = self._promises.get(pod.uid), self._columns
        if self._clock is None or promise is None or columns is None or node not in columns.rows:
            return 0.0
        chosen, now = columns.chosen(columns.rows[node]), self._clock()
        if promise.written is None:
            # Asked as soon as the store has answered, however long that took.
            promise = self._promises[pod.uid] = dataclasses.replace(promise, written=now)
        waits = promise.outstanding(self.storage, chosen, now, self._patience)
        return _LOOK if waits else 0.0


def _owns(pod: Body, claim: Body) -> bool:
    """Whether a claim was made for a pod; of a pod without a UID nobody can say."""
    owners = wire.bodies(wire.mapping(claim, "metadata"), "ownerReferences")
    uids = [owner.get("uid") for owner in owners if owner.get("controller") is True]
    return not pod.get("uid") or pod["uid"] in uids


class _Reach(framework.Coded):
    @staticmethod
    def reasons_of(code: int) -> tuple[str, ...]:
        """The reasons of a code, one for each bit."""
        return tuple(reason for bit, reason in enumerate(_REASONS) if code >> bit & 1)

    def verdict(self, code: int) -> framework.Verdict:
        return framework.Verdict(self.reasons_of(code), resolvable=False)


class _Choice(_Reach):
    """Claims wait: what is free may have been promised meanwhile."""

    kind = framework.Kind.CONTEXT

    def __init__(self, plugin: VolumeBinding, pod_class: PodClass, codes: Ints) -> None:
        super().__init__(codes)
        self._plugin, self._pod_class = plugin, pod_class

    def codes(self, rows: Rows) -> Ints:
        several, codes = self._plugin.waiting(self._pod_class), self._codes[rows].copy()
        if len(several) == 1:
            claim = several[0]
            served = claim.made[rows]
            for volume in claim.volumes:
                served = served | volume.reach[rows]
            return codes | np.where(served, 0, np.where(claim.short[rows], _SHORT, _NOTHING))
        # Each may find something; whether all do is asked node by node.
        more = [outcome(several, row) for row in rows.tolist()]
        return codes | np.array([code if isinstance(code, int) else 0 for code in more], np.int64)


def outcome(several: Sequence[Waiting], row: int) -> dict[tuple[str, str], str] | int:
    """Claim to volume on a node, empty: it is to be made; or the code of why one finds nothing.

    First all claims look for volumes, then those that found none are made, in the same order.
    """
    chosen: dict[tuple[str, str], str] = {}
    for claim in several:
        free = (v.name for v in claim.volumes if v.reach[row] and v.name not in chosen.values())
        chosen[claim.key] = next(free, "")
    for claim in several:
        if not chosen[claim.key] and not claim.made[row]:
            return _SHORT if claim.short[row] else _NOTHING
    return chosen


def reach(volume: Body, columns: Columns) -> Bools:
    """The nodes that a volume's own affinity allows."""
    affinity = wire.mapping(wire.mapping(volume, "spec"), "nodeAffinity")
    if affinity.get("required") is None:
        return np.ones(columns.size, np.bool_)
    several = wire.bodies(wire.mapping(affinity, "required"), "nodeSelectorTerms")
    return columns.index.any_term(list(map(terms.node_term, several)))


def _waiting(
    key: tuple[str, str],
    claim: Body,
    storage: Storage,
    columns: Columns,
    promised: Mapping[str, tuple[str, str]],
) -> Waiting:
    spec, meta = wire.mapping(claim, "spec"), wire.mapping(claim, "metadata")
    size = _size(wire.mapping(spec, "resources"), "requests")
    storage_class = storage.class_of(claim)
    made = _provisioned(storage_class, columns)
    enough = _roomy(storage_class, size, storage, columns)
    node = wire.text(wire.mapping(meta, "annotations"), SELECTED)
    if node:
        # It is being made for a node: there or nowhere.
        made = made & columns.index.field("name").where(lambda name: name == node)
        return Waiting(key, size, (), made & enough, made & ~enough)
    uid = wire.text(meta, "uid")
    mine = [(name, body) for name, body in storage.volumes.items() if _whose(body, key, uid)]
    free = [
        Volume(name, much, reach(body, columns))
        for name, body in mine or storage.volumes.items()
        if promised.get(name, key) == key and (mine or not _taken(body)) and _suits(claim, body)
        if (much := _size(wire.mapping(body, "spec"), "capacity")) >= size
    ]
    free.sort(key=lambda volume: (volume.size, volume.name))
    return Waiting(key, size, tuple(free), made & enough, made & ~enough)


def _taken(volume: Body) -> bool:
    """Whether somebody has it, or it cannot be had."""
    phase = wire.text(wire.mapping(volume, "status"), "phase", "Available")
    return bool(wire.mapping(wire.mapping(volume, "spec"), "claimRef")) or phase != "Available"


def _whose(volume: Body, key: tuple[str, str], uid: str) -> bool:
    """Whether a volume names a claim as its own: that one, not another of its name before."""
    whose = wire.mapping(wire.mapping(volume, "spec"), "claimRef")
    same = (wire.text(whose, "namespace"), wire.text(whose, "name")) == key
    return bool(whose) and same and wire.text(whose, "uid") in {"", uid}


def _suits(claim: Body, volume: Body) -> bool:
    """Whether a volume is of the kind that a claim wants."""
    spec, meta = wire.mapping(volume, "spec"), wire.mapping(volume, "metadata")
    asked = wire.mapping(claim, "spec")
    wanted = terms.selector(asked, "selector") if asked.get("selector") is not None else None
    return (
        meta.get("deletionTimestamp") is None
        and class_name(volume) == class_name(claim)
        and set(wire.strings(asked, "accessModes")) <= set(wire.strings(spec, "accessModes"))
        and wire.text(spec, "volumeMode", "Filesystem")
        == wire.text(asked, "volumeMode", "Filesystem")
        and (wanted is None or terms.holds(wanted, wire.labels(meta)))
    )


def _provisioned(storage_class: Body, columns: Columns) -> Bools:
    """The nodes that a class's provisioner makes volumes for."""
    made = wire.text(storage_class, "provisioner")
    if not made or made == NO_PROVISIONER:
        return np.zeros(columns.size, np.bool_)
    allowed = wire.bodies(storage_class, "allowedTopologies")
    if not allowed:
        return np.ones(columns.size, np.bool_)
    served = np.zeros(columns.size, np.bool_)
    for topology in allowed:
        inside = np.ones(columns.size, np.bool_)
        for want in wire.bodies(topology, "matchLabelExpressions"):
            values = wire.strings(want, "values")
            needed = terms.NodeRequirement(wire.text(want, "key"), "In", values)
            inside &= columns.index.requirement(needed)
        served |= inside
    return served


def _roomy(storage_class: Body, size: int, storage: Storage, columns: Columns) -> Bools:
    """The nodes for which a provisioner has told of enough room; all, where it tells of none."""
    if wire.text(storage_class, "provisioner") not in storage.reporting:
        return np.ones(columns.size, np.bool_)
    name = wire.text(wire.mapping(storage_class, "metadata"), "name")
    roomy = np.zeros(columns.size, np.bool_)
    for capacity in storage.capacities.values():
        if wire.text(capacity, "storageClassName") != name or capacity.get("nodeTopology") is None:
            continue
        key = "capacity" if capacity.get("maximumVolumeSize") is None else "maximumVolumeSize"
        if capacity.get(key) is not None and _size({"": {"storage": capacity[key]}}, "") >= size:
            wanted = terms.selector(capacity, "nodeTopology")
            for row, node in enumerate(columns.nodes if wanted is not None else ()):
                roomy[row] |= node is not None and terms.holds(wanted, node.labels)
    return roomy


def _size(body: Body, key: str) -> int:
    try:
        return requests.amounts(body, key, _MOST).get("storage", 0)
    except BadObjectError:
        return 0
