"""What of a pod may decide where it goes, as one text: equal for pods of one class.

Covers: which fields those are, ports and volumes as the scheduler sees them, the peers' band.
Does not cover: making a class of them (``decoder``).

Names of volumes and of tokens differ always, and most annotations for no reason of ours: they are
left out, or no two pods would be equals.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

import msgspec

from koordlet.kubeapi import classes
from koordlet.model import qos
from koordlet.scheduler.objects import extended_resources, storage, wire
from koordlet.scheduler.objects.wire import Body

_SPEC = (
    "nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "schedulerName",
    "overhead", "resources", "hostNetwork", "hostUsers", "resourceClaims", "workloadRef",
)  # fmt: skip
_CONTAINER = ("resources", "image", "restartPolicy", "restartPolicyRules")
_STATUS = ("name", "resources", "allocatedResources")
#: Volumes that never keep a pod off a node.
_HARMLESS = {"configMap", "secret", "projected", "emptyDir", "hostPath", "downwardAPI", "gitRepo"}

_TEXT = msgspec.json.Encoder(enc_hook=str, order="deterministic")


def text(namespace: str, meta: Body, spec: Body, status: Body, notes: Body) -> bytes:
    """Equal for equals, whatever the order of their keys; ``status`` where it has a node."""
    return spelled([namespace, *_fields(meta, spec, status, notes)])


def spelled(fields: list[Any]) -> bytes:
    """Equal for equal values, whatever the order of their keys."""
    try:
        return _TEXT.encode(fields)
    except (TypeError, ValueError, OverflowError):
        # Keys or numbers that only a file can have.
        return json.dumps(fields, sort_keys=True, default=str).encode()


def _fields(meta: Body, spec: Body, status: Body, notes: Body) -> list[Any]:
    """What of a pod may decide, and nothing else."""
    resizing = _resizing(spec, status) if status else []
    init = wire.bodies(spec, "initContainers")
    # A name decides only where a status speaks of it, or a claim's request: a pod that was just
    # bound is of the class that it waited in, and keeps the place that was booked for it.
    containers = [
        [
            list(map(body.get, _CONTAINER)),
            ports(body, spec),
            (bool(resizing) or _is_claiming(body)) and body.get("name"),
        ]
        for body in (*wire.bodies(spec, "containers"), *init)
    ]
    return [
        meta.get("labels"),
        list(map(spec.get, _SPEC)),
        len(init),
        containers,
        resizing,
        volumes(meta, spec),
        meta.get("ownerReferences"),
        notes,
        band(wire.mapping(meta, "labels"), spec),
    ]


def _resizing(spec: Body, status: Body) -> list[Any]:
    """What of a status may count for other amounts than the specification; most have nothing."""
    containers = [
        list(map(body.get, _STATUS))
        for key in ("containerStatuses", "initContainerStatuses")
        for body in wire.bodies(status, key)
        if body.get("resources") is not None or body.get("allocatedResources") is not None
    ]
    # Of the pod as a whole, where it has amounts of its own.
    whole = list(map(status.get, _STATUS[1:])) if spec.get("resources") else [None, None]
    reasons = [
        condition.get("reason")
        for condition in wire.bodies(status, "conditions")
        if "Resize" in str(condition.get("type"))
    ]
    if not (containers or reasons) and whole == [None, None]:
        return []
    return [containers, bool(containers) and status.get("resize"), whole, reasons]


def _is_claiming(container: Body) -> bool:
    """Whether a claim may stand for a resource of a container; such resources have limits."""
    limits = wire.mapping(wire.mapping(container, "resources"), "limits")
    return any(map(extended_resources.is_claimable, limits))


def band(labels: Mapping[str, str], spec: Body, qos_class: qos.Qos = qos.Qos.LS) -> str:
    """The peers' priority class: the label, else the number, else what a QoS class implies."""
    priority = spec.get("priority")
    label = str(labels.get(classes.BAND_LABEL) or "")
    return _band(label, priority if isinstance(priority, int) else None, qos_class)


@functools.lru_cache(maxsize=256)
def _band(label: str, priority: int | None, qos_class: qos.Qos) -> str:
    return classes.band_or_default({classes.BAND_LABEL: label}, priority, qos_class).label


def ports(container: Body, spec: Body) -> list[tuple[str, str, int]]:
    """Ports of the node; in its network every port is one, as the API server fills it in."""
    own = "containerPort" if spec.get("hostNetwork") is True else "hostPort"
    return [
        (
            wire.text(body, "hostIP") or "0.0.0.0",  # noqa: S104 -- an address in an object
            wire.text(body, "protocol", "TCP") or "TCP",
            port,
        )
        for body in wire.bodies(container, "ports")
        if (port := wire.integer(body, "hostPort") or wire.integer(body, own)) > 0
    ]


def volumes(meta: Body, spec: Body) -> list[Body]:
    """Volumes that may keep a pod off a node."""
    several = [volume for volume in wire.bodies(spec, "volumes") if _HARMLESS.isdisjoint(volume)]
    for volume in several:
        storage.check_inline(volume)
    # One that lives as long as its pod is the claim that is made for it.
    return [
        {
            "name": volume.get("name"),
            "ephemeral": {key: meta.get(key) for key in ("name", "uid")},
            "persistentVolumeClaim": {
                "claimName": f"{wire.text(meta, 'name')}-{wire.text(volume, 'name')}"
            },
        }
        if volume.get("ephemeral")
        else volume
        for volume in several
    ]
