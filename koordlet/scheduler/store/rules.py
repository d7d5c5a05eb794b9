"""The storage rules of kinds: one row for each built-in kind that differs from the rest.

Covers: status subresource, generation, selectable fields, keys of lists.
Does not cover: how they are used (``writing``, ``merging``, ``watching``).

A kind without a row is a custom resource: it has a status, a generation, lists without keys, and is
selected by name, namespace and the fields that its definition names (``SELECTABLE``).
"""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.kubeapi import kinds, refusals, selectors
from koordlet.model.record import dataclass

#: Built-in kinds: list field to the keys that make an element of it the same one
#: (``x-kubernetes-list-map-keys`` of the published OpenAPI document).
LIST_KEYS: Mapping[str, tuple[str, ...]] = {
    "addresses": ("type",),
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "ports": ("containerPort", "protocol"),
    "resourceClaims": ("name",),
    "schedulingGates": ("name",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}

#: Only strategic merge patches know these; server-side apply takes the list as one value.
STRATEGIC_KEYS: Mapping[str, tuple[str, ...]] = {"taints": ("key", "effect")}

#: Every kind, custom ones as well.
OWN_KEYS: Mapping[str, tuple[str, ...]] = {"ownerReferences": ("uid",)}

_NAMED = frozenset({"metadata.name", "metadata.namespace"})


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRule:
    """The storage rules of one kind."""

    #: There is a subresource ``status``.
    status: bool = True
    #: What a new object brings as its status stays (a kubelet creates its Node with it).
    status_at_birth: bool = False
    #: A patch of the status may change labels and annotations, too.
    status_with_metadata: bool = False
    #: ``metadata.generation`` counts changes of the wish.
    generation: bool = True
    selectable: frozenset[str] = _NAMED
    list_keys: Mapping[str, tuple[str, ...]] | None = None

    @property
    def strategic(self) -> bool:
        """Whether a strategic merge patch is supported."""
        return self.list_keys is not None


_PLAIN = KindRule(status=False, generation=False, list_keys=LIST_KEYS)
_COUNTED = KindRule(list_keys=LIST_KEYS)

_BUILT_IN: Mapping[str, KindRule] = {
    str(kinds.PODS): KindRule(
        status_with_metadata=True,
        selectable=_NAMED
        | {
            *("spec.nodeName", "spec.schedulerName", "spec.restartPolicy"),
            *("spec.serviceAccountName", "status.phase", "status.nominatedNodeName"),
        },
        list_keys=LIST_KEYS,
    ),
    str(kinds.NODES): KindRule(
        status_at_birth=True,
        status_with_metadata=True,
        generation=False,
        selectable=_NAMED | {"spec.unschedulable"},
        list_keys=LIST_KEYS,
    ),
    **dict.fromkeys(
        map(str, (kinds.NAMESPACES, kinds.PERSISTENT_VOLUMES, kinds.PERSISTENT_VOLUME_CLAIMS)),
        KindRule(generation=False, list_keys=LIST_KEYS),
    ),
    str(kinds.SERVICES): KindRule(
        generation=False,
        selectable=_NAMED | {"spec.clusterIP", "spec.type"},
        list_keys={**LIST_KEYS, "ports": ("port", "protocol")},
    ),
    str(kinds.POD_DISRUPTION_BUDGETS): _COUNTED,
    str(kinds.RESOURCE_CLAIMS): KindRule(
        generation=False, list_keys={**LIST_KEYS, "reservedFor": ("uid",)}
    ),
    str(kinds.RESOURCE_SLICES): KindRule(
        status=False, selectable=_NAMED | {"spec.nodeName", "spec.driver"}, list_keys=LIST_KEYS
    ),
    str(kinds.NATIVE_POD_GROUPS): _COUNTED,
    **{
        str(kind): _PLAIN
        for kind in (
            *(kinds.CONFIG_MAPS, kinds.CSI_DRIVERS, kinds.CSI_NODES, kinds.EVENTS, kinds.LEASES),
            *(kinds.PRIORITY_CLASSES, kinds.RUNTIME_CLASSES, kinds.STORAGE_CAPACITIES),
            *(kinds.STORAGE_CLASSES, kinds.DEVICE_CLASSES, kinds.RESOURCE_CLAIM_TEMPLATES),
        )
    },
    str(kinds.VOLUME_ATTACHMENTS): KindRule(generation=False, list_keys=LIST_KEYS),
}

#: Groups without custom resources: their kinds that nobody here speaks of are kept like others.
_BUILT_IN_GROUPS = frozenset(
    {
        *("", "admissionregistration.k8s.io", "apps", "networking.k8s.io"),
        "rbac.authorization.k8s.io",
    }
)

#: Fields that definitions of custom resources name in ``selectableFields``.
SELECTABLE: Mapping[str, frozenset[str]] = {
    str(kinds.RESERVATIONS): _NAMED | {"status.nodeName", "status.phase"},
}


def of(kind: kinds.Kind) -> KindRule:
    """The rule of a kind."""
    rule = _BUILT_IN.get(str(kind)) or (_COUNTED if kind.group in _BUILT_IN_GROUPS else None)
    return rule or KindRule(selectable=SELECTABLE.get(str(kind), _NAMED))


def compiled(kind: kinds.Kind, selector: selectors.Selector) -> selectors.Compiled:
    """A selector that has been read; ``Malformed`` where the kind is not selected by a field."""
    read = selector.compiled()
    known = of(kind).selectable
    for field in read.fields:
        if field.path not in known:
            raise refusals.Malformed(
                f"field label not supported: {field.path}", culprit=str(kind), reason="BadRequest"
            )
    return read
