"""A Reservation from its JSON: every field read, every mistake named.

Covers: validation, defaults, the annotations that change what is reserved, the stored status.
Does not cover: the definition's schema at an API server (it refuses some of this earlier).

Rules:
1. What cannot be meant is an error that names the field: the object is not scheduled, and its
   condition says why. Nothing is ignored in silence: unknown fields are warnings.
2. ``expires`` has the say before ``ttl``, also beside ``ttl: 0``; ``ttl: 0`` alone never ends.
   Neither given means a day, which the definition fills in at an API server.
3. Owners that cannot be read make the reservation match nobody; what it holds it goes on holding.
4. An annotation that cannot be read is an error as a field is: a resize that is silently ignored
   would reserve another amount than its author believes.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from koordlet.kubeapi import selectors
from koordlet.model import moment, quantity_text
from koordlet.scheduler.objects import json_annotations, requests, terms, wire
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.wire import BadObjectError, Body
from koordlet.scheduler.reservation import keys
from koordlet.scheduler.reservation.spec import (
    DEFAULT_TTL,
    AllocatePolicy,
    Condition,
    OwnerPattern,
    Phase,
    PreAllocation,
    ReservationOwner,
    ReservationSpec,
    ReservationStatus,
)

API_VERSION = "scheduling.koordinator.sh/v1alpha1"
_LONGEST_NAME = 253
_FIELDS = frozenset(
    {
        "template", "owners", "ttl", "expires", "preAllocation", "preAllocationPolicy",
        "allocateOnce", "allocatePolicy", "unschedulable", "taints",
    }
)  # fmt: skip
_OWNER_FIELDS = frozenset({"object", "controller", "labelSelector"})
_RESOURCES = {"resources": None}
_POD_FIELDS = ("namespace", "apiVersion", "name", "uid")
#: An owner entry in an annotation.
_OWNER = {
    "object": dict.fromkeys(_POD_FIELDS),
    "controller": dict.fromkeys((*_POD_FIELDS, "kind", "controller")),
    "labelSelector": {
        "matchLabels": None,
        "matchExpressions": [dict.fromkeys(("key", "operator", "values"))],
    },
}
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def read(body: Body) -> ReservationSpec:
    """The specification; ``BadObjectError`` names the field that cannot be used."""
    meta, spec = wire.mapping(body, "metadata"), wire.mapping(body, "spec")
    name = _name(meta)
    template = _template(spec)
    annotations = {key: str(value) for key, value in wire.mapping(meta, "annotations").items()}
    labels = wire.labels(meta)
    allocatable, decimal = _allocatable(template, annotations)
    owners, fault = _owners(spec)
    created = wire.instant(meta.get("creationTimestamp"), "creationTimestamp")
    pre = _pre_allocation(spec, labels, wire.labels(wire.mapping(template, "metadata")))
    policy = _policy(spec)
    if pre is not None and policy is AllocatePolicy.DEFAULT:
        policy = AllocatePolicy.RESTRICTED
    inner = wire.mapping(template, "spec")
    kept = json_annotations.meant(annotations, keys.NODE_RESERVATION, _RESOURCES)
    options = json_annotations.meant(annotations, keys.RESTRICTED_OPTIONS, _RESOURCES)
    named = frozenset(wire.strings(options, "resources"))
    return ReservationSpec(
        name=name,
        uid=wire.text(meta, "uid") or f"reservation/{name}",
        created=created or 0.0,
        created_text="" if created is None else moment.spell(created),
        labels=labels,
        annotations=annotations,
        deleting=meta.get("deletionTimestamp") is not None,
        template=template,
        owners=owners,
        ttl=_ttl(spec),
        expires=wire.instant(spec.get("expires"), "expires"),
        once=wire.flag(spec, "allocateOnce", default=True),
        policy=policy,
        pre_allocation=pre,
        unschedulable=wire.flag(spec, "unschedulable"),
        taints=tuple(map(_taint, wire.bodies(spec, "taints"))),
        pinned=wire.text(inner, "nodeName"),
        scheduler=labels.get(keys.SCHEDULER_NAME)
        or wire.text(inner, "schedulerName")
        or "default-scheduler",
        allocatable=allocatable,
        decimal=decimal,
        kept=requests.amounts(kept, "resources", requests.MOST_REQUEST),
        restricted=named & allocatable.keys() or frozenset(allocatable),
        order=terms.whole(labels.get(keys.ORDER, "")) or 0,
        fault=fault,
    )


def spec_of(pod: Pod) -> ReservationSpec:
    """The specification of a pod in operating mode: used once, Aligned, never expires."""
    try:
        listed = json_annotations.parsed(pod.pod_class.annotations, keys.OWNERS, [_OWNER])
        owners = owners_of([owner for owner in listed if isinstance(owner, Mapping)])
        fault = "" if owners else "the pod misses its owners"
    except (BadObjectError, TypeError) as error:
        owners, fault = (), str(error)
    return ReservationSpec(
        name=pod.name,
        uid=pod.uid,
        labels=pod.pod_class.labels,
        template={},
        owners=owners,
        ttl=None,
        policy=AllocatePolicy.ALIGNED,
        allocatable={
            name: amount for name, amount in pod.pod_class.requests.real.items() if amount
        },
        restricted=frozenset(pod.pod_class.requests.real),
        order=terms.whole(pod.pod_class.labels.get(keys.ORDER, "")) or 0,
        fault=fault,
        deleting=pod.terminating,
    )


def warnings(body: Body) -> list[str]:
    """Warnings about what is legal and most likely a mistake."""
    spec = body.get("spec")
    if not isinstance(spec, Mapping):
        return []
    messages = []
    for key in spec:
        if key not in _FIELDS:
            near = difflib.get_close_matches(str(key), _FIELDS, 1)
            messages.append(f"spec.{key} is unknown{f'; did you mean {near[0]}?' if near else ''}")
    owners = spec.get("owners")
    for place, owner in enumerate(owners if isinstance(owners, list) else []):
        if not isinstance(owner, Mapping):
            continue
        if unknown := _unknown(owner):
            messages.append(
                f"spec.owners[{place}] has the unknown field {unknown!r} and matches no pod"
            )
        elif _everybody(owner):
            messages.append(f"spec.owners[{place}] matches every pod")
    return messages


def _unknown(owner: Body) -> str:
    """An unknown field of an owner entry; empty where all are known."""
    return min((str(key) for key in owner if key not in _OWNER_FIELDS), default="")


def _everybody(owner: Body) -> bool:
    return not any(
        value not in (None, {}, {"matchLabels": {}}, {"matchExpressions": []})
        for key, value in owner.items()
        if key in _OWNER_FIELDS
    )


def _name(meta: Body) -> str:
    name = wire.name(meta)
    if len(name) > _LONGEST_NAME:
        raise BadObjectError(f"metadata.name has {len(name)} characters, {_LONGEST_NAME} at most")
    return name


def _template(spec: Body) -> Body:
    if spec.get("template") is None:
        raise BadObjectError("the reservation misses the template spec")
    template = wire.mapping(spec, "template")
    if not wire.bodies(wire.mapping(template, "spec"), "containers"):
        raise BadObjectError("spec.template.spec.containers is empty: there is nothing to reserve")
    return template


def _allocatable(
    template: Body, annotations: Mapping[str, str]
) -> tuple[dict[str, int], frozenset[str]]:
    inner = wire.mapping(template, "spec")
    amounts = {name: amount for name, amount in requests.of_pod(inner, {}).real.items() if amount}
    decimal = {name for name in amounts if not name.startswith("hugepages-")}
    for container in wire.bodies(inner, "containers"):
        resources = wire.mapping(container, "resources")
        limits, asked = (wire.mapping(resources, key) for key in ("limits", "requests"))
        listed = {str(name): value for name, value in (*limits.items(), *asked.items())}
        decimal -= {name for name, value in listed.items() if not quantity_text.is_decimal(value)}
    resize = json_annotations.meant(annotations, keys.RESIZE, _RESOURCES)
    if resize:
        changed = requests.amounts(resize, "resources", requests.MOST_REQUEST)
        amounts |= changed
        decimal = {name for name in decimal if name not in changed} | {
            name
            for name, spelled in wire.mapping(resize, "resources").items()
            if quantity_text.is_decimal(spelled)
        }
    return amounts, frozenset(decimal)


def _ttl(spec: Body) -> float | None:
    if spec.get("ttl") is None:
        return DEFAULT_TTL
    try:
        duration = moment.duration(spec["ttl"])
    except ValueError as error:
        raise BadObjectError(f"spec.ttl: {error}") from error
    if duration < 0:
        raise BadObjectError(f"spec.ttl is negative: {wire.show(spec['ttl'])}")
    return duration or None


def _policy(spec: Body) -> AllocatePolicy:
    spelled = wire.text(spec, "allocatePolicy") or AllocatePolicy.DEFAULT
    if spelled not in set(AllocatePolicy):
        raise BadObjectError(f"spec.allocatePolicy {spelled!r} is neither Aligned nor Restricted")
    return AllocatePolicy(spelled)


def _pre_allocation(
    spec: Body, labels: Mapping[str, str], more: Mapping[str, str]
) -> PreAllocation | None:
    policy = wire.mapping(spec, "preAllocationPolicy")
    mode = wire.text(policy, "mode", "Default") or "Default"
    if mode not in {"Default", "Cluster"}:
        raise BadObjectError(f"preAllocationPolicy.mode {mode!r} is neither Default nor Cluster")
    multiple = wire.flag(policy, "enableMultiple")
    if not wire.flag(spec, "preAllocation"):
        return None
    required = "true" in {each.get(keys.PRE_ALLOCATION_REQUIRED) for each in (labels, more)}
    return PreAllocation(mode == "Cluster", multiple, required)


def _taint(body: Body) -> terms.Taint:
    taint = terms.taint(body)
    if not taint.key or taint.effect not in _EFFECTS:
        raise BadObjectError(
            f"spec.taints: key {taint.key!r} with effect {taint.effect!r}, which is none of"
            f" {', '.join(_EFFECTS)}"
        )
    return taint


def _owners(spec: Body) -> tuple[tuple[ReservationOwner, ...], str]:
    """The owner entries, and why no pod can match."""
    try:
        owners = owners_of(wire.bodies(spec, "owners"))
    except BadObjectError as error:
        return (), str(error)
    return owners, "" if owners else "the reservation misses the owner spec"


def owners_of(bodies: list[Body]) -> tuple[ReservationOwner, ...]:
    """Owner entries; ``BadObjectError`` names the one that cannot be read."""
    return tuple(_owner(owner, place) for place, owner in enumerate(bodies))


def _owner(body: Body, place: int) -> ReservationOwner:
    if unknown := _unknown(body):
        # An entry of which only a part is understood would match more pods than it was meant for.
        raise BadObjectError(f"spec.owners[{place}] has the unknown field {unknown!r}")
    try:
        of_pod, controller = wire.mapping(body, "object"), wire.mapping(body, "controller")
        selector: selectors.Compiled | None = terms.selector(body, "labelSelector")
    except (BadObjectError, ValueError) as error:
        raise BadObjectError(f"spec.owners[{place}].{error}") from error
    return ReservationOwner(
        object=OwnerPattern(*wire.texts(of_pod, *_POD_FIELDS))
        if body.get("object") is not None
        else None,
        controller=OwnerPattern(
            *wire.texts(controller, *_POD_FIELDS, "kind"),
            controller=None
            if controller.get("controller") is None
            else wire.flag(controller, "controller"),
        )
        if body.get("controller") is not None
        else None,
        selector=selector,
    )


def read_status(body: Body) -> ReservationStatus:
    """The stored status; an unknown phase is an error."""
    status = wire.mapping(body, "status")
    phase = wire.text(status, "phase") or Phase.PENDING
    if phase not in set(Phase):
        raise BadObjectError(f"status.phase {phase!r} is unknown")
    return ReservationStatus(
        phase=Phase(phase),
        node=wire.text(status, "nodeName"),
        conditions=tuple(map(condition, wire.bodies(status, "conditions"))),
        allocatable=_spelled(wire.mapping(status, "allocatable")),
        allocated=_spelled(wire.mapping(status, "allocated")),
        owners=tuple(map(_spelled, wire.bodies(status, "currentOwners"))),
    )


def readable_status(body: Body) -> ReservationStatus:
    """The stored status; an empty one where it cannot be read."""
    try:
        return read_status(body)
    except BadObjectError:
        return ReservationStatus()


def _spelled(body: Body) -> dict[str, str]:
    return {str(key): str(value) for key, value in body.items()}


def condition(body: Body) -> Condition:
    """One condition of a status."""

    def at(key: str) -> str:
        seconds = wire.instant(body.get(key), key)
        return moment.spell(seconds) if seconds is not None else ""

    return Condition(
        type=wire.text(body, "type"),
        status=wire.text(body, "status") == "True",
        reason=wire.text(body, "reason"),
        message=wire.text(body, "message"),
        probed=at("lastProbeTime"),
        changed=at("lastTransitionTime"),
    )
