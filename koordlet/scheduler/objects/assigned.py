"""What was chosen by number for a pod, or for a reservation, as its annotations say.

Covers: CPUs, amounts by NUMA node, devices. Does not cover: writing them (the plugins that choose).

Nonsense is nothing: whoever may write the annotations of a pod must not be able to hide the pod
from the accounts by breaking one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koordlet.scheduler.allocation import devices
from koordlet.scheduler.objects import json_annotations, node_reservation, peer_keys, requests
from koordlet.scheduler.objects.wire import BadObjectError, Body


def read(notes: Body) -> dict[str, Any]:
    """The fields of a ``Pod``."""
    body = json_annotations.body(notes.get(peer_keys.RESOURCE_STATUS))
    return {
        "cpus": node_reservation.cpus_of(body.get("cpuset")) or None,
        "parts": _parts(body.get("numaNodeResources")) if body else {},
        "devices": devices.read(notes.get(peer_keys.DEVICE_ALLOCATED)),
    }


def _parts(listed: object) -> dict[int, dict[str, int]]:
    parts: dict[int, dict[str, int]] = {}
    for one in listed if isinstance(listed, list) else ():
        if not isinstance(one, Mapping) or not isinstance(one.get("node"), int):
            continue
        try:
            parts[one["node"]] = requests.amounts(one, "resources", requests.MOST_REQUEST)
        except BadObjectError:
            continue
    return parts
