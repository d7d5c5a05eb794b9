"""What of a pod may decide where it goes, as one text: equal for pods of one class.

Covers: which fields those are, ports and volumes as the scheduler sees them, the peers' band.
Does not cover: making a class of them (``decoder``).

Names of volumes and of tokens differ always, and most annotations for no reason of ours: they are
left out, or no two pods would be equals.
"""

from __future__ import annotations

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
    resized = [
        list(map(body.get, _STATUS))
        for key in ("containerStatuses", "initContainerStatuses")
        for body in wire.bodies(status, key)
        if body.get("resources") is not None or body.get("allocatedResources") is not None
    ]
    # A name decides only where a status speaks of it, or a claim's request: a pod that was just
    # bound is of the class that it waited in, and keeps the place that was booked for it.
    containers = [
        [
            list(map(body.get, _CONTAINER)),
            ports(body, spec),
            (bool(resized) or _is_claiming(body)) and body.get("name"),
        ]
        for key in ("containers", "initContainers")
        for body in wire.bodies(spec, key)
    ]
    return [
        meta.get("labels"),
        list(map(spec.get, _SPEC)),
        len(wire.sequence(spec, "initContainers")),
        containers,
        resized,
        bool(resized) and status.get("resize"),
        # Of the pod as a whole, where it has amounts of its own.
        [spec.get("resources") and status.get(key) for key in _STATUS[1:]],
        [
            condition.get("reason")
            for condition in wire.bodies(status, "conditions")
            if "Resize" in str(condition.get("type"))
        ],
        volumes(meta, spec),
        meta.get("ownerReferences"),
        notes,
        band(wire.mapping(meta, "labels"), spec),
    ]


def _is_claiming(container: Body) -> bool:
    """Whether a claim may stand for a resource of a container; such resources have limits."""
    limits = wire.mapping(wire.mapping(container, "resources"), "limits")
    return any(map(extended_resources.is_claimable, limits))


def band(labels: Mapping[str, str], spec: Body, qos_class: qos.Qos = qos.Qos.LS) -> str:
    """The peers' priority class: the label, else the number, else what a QoS class implies."""
    priority = spec.get("priority")
    return classes.band_or_default(
        labels, priority if isinstance(priority, int) else None, qos_class
    ).label


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
    several = [volume for volume in wire.bodies(spec, "volumes") if not _HARMLESS & volume.keys()]
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
