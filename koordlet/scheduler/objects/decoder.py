"""Pods from their JSON, once for each class.

Covers: decoding; pods of one template cost one decoding and one text of what matters in them.
Does not cover: the values (``pods``), single amounts and terms (``requests``, ``terms``).
"""

from __future__ import annotations

import functools
from collections.abc import Container, Iterable, Mapping
from typing import Any

from koordlet.kubeapi import (
    classes,
    disruption_target,
    objects,
    pod_annotations,
    pod_groups,
    shapes,
)
from koordlet.model import moment, qos
from koordlet.scheduler.allocation import devices
from koordlet.scheduler.objects import (
    class_key,
    eviction_marks,
    extended_resources,
    nodes,
    peer_keys,
    pod_claims,
    requests,
    terms,
    unserved,
    wire,
)
from koordlet.scheduler.objects.pods import HostPort, OwnerReference, Pod, PodClass, Priority
from koordlet.scheduler.objects.wire import BadObjectError, Body
from koordlet.scheduler.reservation import keys

_CRITICAL = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class Decoder:
    """Decodes pods; remembers the classes."""

    def __init__(
        self,
        priorities: dict[str, Priority],
        deciding: Iterable[str] = (),
        judge: unserved.UnservedKeys | None = None,
        *,
        presumes_ready: bool = False,
    ) -> None:
        """``presumes_ready``: a placed pod is ready unless it has a condition that denies it."""
        self.priorities = priorities
        self._presumes_ready = presumes_ready
        self.judge = unserved.UnservedKeys() if judge is None else judge
        self._deciding = (*_DECIDING, *deciding)
        self._classes: dict[bytes, PodClass] = {}

    def decode(self, body: Body, position: int) -> Pod:
        """A Pod from its JSON; ``BadObjectError`` names the field that cannot be used."""
        meta, spec = wire.mapping(body, "metadata"), wire.mapping(body, "spec")
        name = wire.name(meta)
        node = wire.text(spec, "nodeName")
        status = wire.mapping(body, "status")
        priority, preempts = self._priority(spec)
        namespace = wire.text(meta, "namespace") or "default"
        return Pod(
            namespace=namespace,
            name=name,
            uid=wire.text(meta, "uid") or f"{namespace}/{name}",
            pod_class=self._class(namespace, meta, spec, status if node else {}),
            priority=priority,
            created=_moment(meta.get("creationTimestamp")),
            started=_moment(status.get("startTime")),
            position=position,
            node=node,
            terminating=meta.get("deletionTimestamp") is not None,
            preempts=preempts,
            gates=tuple(wire.text(gate, "name") for gate in wire.bodies(spec, "schedulingGates")),
            nominated=wire.text(status, "nominatedNodeName"),
            claims=pod_claims.decode(spec, status),
            gang=_gang(namespace, meta, spec),
            running=status.get("phase") == "Running",
            generation=wire.integer(meta, "generation"),
            **(self._placed(meta, status) if node else {}),
            stored_condition=("", "", "", 0) if node else _stored_condition(status),
        )

    def unreadable(self, body: Body, why: str) -> Pod:
        """A pod that cannot be decoded: never tried; on a node, what can be read of it counts."""
        meta, spec = objects.part(body, "metadata"), objects.part(body, "spec")
        namespace, name = str(meta.get("namespace") or "default"), str(meta.get("name"))
        node = str(spec.get("nodeName") or "")
        notes = shapes.texts(objects.part(meta, "annotations"), [], "annotation")
        try:
            asked = requests.of_pod(spec, objects.part(body, "status") if node else {}, notes, [])
        except BadObjectError:
            asked = requests.Requests({}, {}, {})
        return Pod(
            namespace=namespace,
            name=name,
            uid=str(meta.get("uid") or f"{namespace}/{name}"),
            pod_class=PodClass(
                namespace=namespace,
                labels={},
                scheduler=str(spec.get("schedulerName") or "default-scheduler"),
                requests=asked,
                unsupported=f"rejected: {why}",
            ),
            priority=0,
            created=_moment(meta.get("creationTimestamp")),
            node=node,
            terminating=meta.get("deletionTimestamp") is not None,
            **(assigned(notes) if node else {}),
        )

    def __len__(self) -> int:
        return len(self._classes)

    def keep(self, wanted: Container[PodClass]) -> None:
        """Forget the classes that nobody has any more."""
        self._classes = {
            key: pod_class for key, pod_class in self._classes.items() if pod_class in wanted
        }

    def _priority(self, spec: Body) -> tuple[int, bool]:
        named = wire.text(spec, "priorityClassName")
        defaults = (priority for priority in self.priorities.values() if priority.default)
        known = self.priorities.get(named) if named else next(defaults, None)
        if named and known is None and named not in _CRITICAL and spec.get("priority") is None:
            raise BadObjectError(f"no PriorityClass {named!r} in the input")
        value = known.value if known is not None else _CRITICAL.get(named, 0)
        policy = wire.text(spec, "preemptionPolicy")
        preempts = policy != "Never" if policy else known is None or known.preempts
        return wire.integer(spec, "priority", value), preempts

    def _placed(self, meta: Body, status: Body) -> dict[str, Any]:
        fields = _allocation(meta, status)
        if self._presumes_ready and not fields["ready"]:
            conditions = wire.bodies(status, "conditions")
            fields["ready"] = all(condition.get("type") != "Ready" for condition in conditions)
        return fields

    def _class(self, namespace: str, meta: Body, spec: Body, status: Body) -> PodClass:
        listed = wire.mapping(meta, "annotations")
        deciding = {key: listed[key] for key in self._deciding if key in listed}
        notes = shapes.texts(deciding, [], "annotation") if deciding else {}
        key = class_key.text(namespace, meta, spec, status, notes)
        known = self._classes.get(key)
        if known is None:
            made = _decode(namespace, meta, spec, status, notes, judge=self.judge)
            known = self._classes[key] = made
        return known


def _gang(namespace: str, meta: Body, spec: Body) -> pod_groups.Membership | None:
    """What a pod says of its gang; nearly every pod says nothing."""
    notes, labels = wire.mapping(meta, "annotations"), wire.mapping(meta, "labels")
    own = wire.mapping(spec, "schedulingGroup")
    if own and not wire.text(own, "podGroupName"):
        raise BadObjectError("schedulingGroup.podGroupName is missing")
    return pod_groups.membership(namespace, labels, notes, spec)


def _stored_condition(status: Body) -> tuple[str, str, str, int]:
    condition = _condition(status, "PodScheduled", "False")
    return (
        str(condition.get("reason") or ""),
        str(condition.get("message") or ""),
        wire.text(status, "nominatedNodeName"),
        wire.integer(condition, "observedGeneration"),
    )


def _moment(value: object) -> str:
    """A time as text; YAML may have made a datetime of it."""
    if value is None:
        return ""
    stamp = getattr(value, "isoformat", None)
    spelled = str(stamp()) if stamp is not None else str(value)
    return spelled.replace(" ", "T").replace("+00:00", "Z")


#: Annotations that may decide; all others differ between equals for no reason of ours.
_DECIDING = (
    *(keys.AFFINITY, keys.EXACT, keys.OWNERS, keys.PRE_ALLOCATABLE_PRIORITY),
    *(pod_annotations.RESOURCE_SPEC, pod_annotations.NUMA_SPEC, peer_keys.LOAD_FACTORS),
    *(peer_keys.DEVICE_HINT, peer_keys.DEVICE_JOINT, peer_keys.GPU_PARTITION),
    *(pod_annotations.EXTENDED_RESOURCES, *peer_keys.HINTS),
    *(peer_keys.LOAD_AFTER_SCHEDULED, peer_keys.LOAD_AFTER_INITIALIZED),
)


def _allocation(meta: Body, status: Body) -> dict[str, Any]:
    """CPUs, devices and reservation of a placed pod, when it was bound, whether it is a victim."""
    notes = wire.mapping(meta, "annotations")
    use = pod_annotations.read(
        pod_annotations.RESERVATION_ALLOCATED, notes, pod_annotations.reservation_use, []
    )
    conditions = eviction_marks.true_conditions(status)
    return {
        # In operating mode, and ready to be drawn on.
        "operates": wire.mapping(meta, "labels").get(keys.OPERATING_MODE) == "Reservation"
        and "Ready" in conditions
        and status.get("phase") == "Running",
        "draws_on": use.uid if use is not None else "",
        "drawn_name": use.name if use is not None else "",
        **(assigned(notes) if notes else {}),
        **eviction_marks.read(meta, conditions),
        "assigned": _since(conditions, "PodScheduled"),
        "initialized": _since(conditions, "Initialized"),
        "preempted": conditions.get(disruption_target.TYPE, {}).get("reason")
        == "PreemptionByScheduler",
    }


def _since(conditions: Mapping[str, Body], kind: str) -> float:
    """Since when a condition holds; 0 where nobody says."""
    spelled = conditions.get(kind, {}).get("lastTransitionTime")
    return _seconds(spelled if isinstance(spelled, str) else str(spelled))


# Pods of one second have it in common, and each of their changes says it again.
@functools.lru_cache(maxsize=1024)
def _seconds(spelled: str) -> float:
    """Seconds since 1970; 0 where it is no time."""
    try:
        return moment.parse(spelled)
    except ValueError:
        return 0.0


def assigned(notes: Body) -> dict[str, Any]:
    """What was chosen by number for a pod or a reservation, as fields of a ``Pod``.

    Nonsense is nothing: whoever may write the annotations of a pod must not be able to hide the pod
    from the accounts by breaking one.
    """
    grant = pod_annotations.read(pod_annotations.RESOURCE_STATUS, notes, pod_annotations.grant, [])
    return {
        "cpus": grant.cpus if grant is not None else None,
        "parts": {
            share.node: requests.within(share.resources, requests.MOST_REQUEST)
            for share in (grant.numa if grant is not None else ())
            if share.resources
        },
        "devices": devices.read(notes.get(peer_keys.DEVICE_ALLOCATED)),
    }


def _condition(status: Body, kind: str, value: str) -> Body:
    """The condition of a pod that has this value; empty where none has."""
    return next(
        (
            condition
            for condition in wire.bodies(status, "conditions")
            if condition.get("type") == kind and condition.get("status") == value
        ),
        {},
    )


def _references(meta: Body) -> tuple[OwnerReference, ...]:
    return tuple(
        OwnerReference(
            wire.text(reference, "apiVersion"),
            wire.text(reference, "kind"),
            wire.text(reference, "name"),
            wire.text(reference, "uid"),
            reference.get("controller") is True,
        )
        for reference in wire.bodies(meta, "ownerReferences")
    )


def _decode(
    namespace: str,
    meta: Body,
    spec: Body,
    status: Body,
    notes: Mapping[str, str],
    *,
    judge: unserved.UnservedKeys,
) -> PodClass:
    labels = wire.labels(meta)
    affinity = wire.mapping(spec, "affinity")
    node = wire.mapping(affinity, "nodeAffinity")
    plain, init = wire.bodies(spec, "containers"), wire.bodies(spec, "initContainers")
    sidecars = [container for container in init if container.get("restartPolicy") == "Always"]
    needed = node.get(_REQUIRED)
    images = [wire.text(container, "image") for container in (*init, *plain)]
    images += [
        wire.text(wire.mapping(volume, "image"), "reference")
        for volume in wire.bodies(spec, "volumes")
        if "image" in volume
    ]
    asked = requests.of_pod(spec, status, notes)
    qos_class = classes.raw_qos(labels, []) or qos.DEFAULT_OF_KUBE[asked.kube_qos]
    return PodClass(
        namespace=namespace,
        labels=labels,
        scheduler=wire.text(spec, "schedulerName") or "default-scheduler",
        requests=asked,
        node_selector={
            str(key): str(value) for key, value in wire.mapping(spec, "nodeSelector").items()
        },
        required=None
        if needed is None
        else tuple(
            map(terms.node_term, wire.bodies(wire.mapping(node, _REQUIRED), "nodeSelectorTerms"))
        ),
        preferred=tuple(
            (terms.weight(term), terms.node_term(wire.mapping(term, "preference")))
            for term in wire.bodies(node, _PREFERRED)
        ),
        tolerations=tuple(map(terms.toleration, wire.bodies(spec, "tolerations"))),
        **_pod_affinity(affinity, namespace, labels),
        spread=tuple(
            terms.spread(constraint, labels)
            for constraint in wire.bodies(spec, "topologySpreadConstraints")
        ),
        ports=frozenset(
            HostPort(*port)
            for container in (*plain, *sidecars)
            for port in class_key.ports(container, spec)
        ),
        images=tuple(map(nodes.image_name, images)),
        containers=len(plain) + len(init),
        features=_features(spec, (*plain, *init)),
        volumes=tuple(class_key.volumes(meta, spec)),
        references=_references(meta),
        annotations=notes,
        extended=extended_resources.decode(init, plain),
        band=class_key.band(labels, spec, qos_class),
        unsupported=judge.of_class(labels, spec),
    )


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _pod_affinity(affinity: Body, namespace: str, labels: Mapping[str, str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, needs, wishes in (
        ("podAffinity", "affinity", "prefers"),
        ("podAntiAffinity", "anti_affinity", "avoids"),
    ):
        body = wire.mapping(affinity, key)
        fields[needs] = tuple(
            terms.pod_term(term, namespace, labels) for term in wire.bodies(body, _REQUIRED)
        )
        weighed = (
            (terms.weight(wish), wire.mapping(wish, "podAffinityTerm"))
            for wish in wire.bodies(body, _PREFERRED)
        )
        fields[wishes] = tuple(
            (weight, terms.pod_term(term, namespace, labels)) for weight, term in weighed
        )
    return fields


def _features(spec: Body, containers: tuple[Body, ...]) -> frozenset[str]:
    """The features of a node without which a pod cannot run there."""
    rules = [
        rule for container in containers for rule in wire.bodies(container, "restartPolicyRules")
    ]
    needs = {
        "RestartAllContainersOnContainerExits": any(
            rule.get("action") == "RestartAllContainers" for rule in rules
        ),
        "UserNamespacesHostNetworkSupport": spec.get("hostNetwork") is True
        and spec.get("hostUsers") is False,
    }
    return frozenset(name for name, needed in needs.items() if needed)
