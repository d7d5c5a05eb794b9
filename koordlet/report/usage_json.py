"""Usage as parts of ``v1`` documents, from the list of quantities. Pure.

Covers: the node's ``usage``, a workload's, a container's. Unknown values are ``null``.
Does not cover: the documents around them (``node_json``), the keys (``quantities``).
"""

from __future__ import annotations

from typing import Any

from koordlet.history import shares
from koordlet.model import counters, meter, pod
from koordlet.report import quantities, view


def node(now: view.ReportView) -> dict[str, object]:
    """The node: what is used, by whom, and where it is tight."""
    used = now.used
    return {
        **_document(used, "", "node"),
        "shares": {name: _document(used, name, "shares") for name in shares.SUBJECTS},
        "cpus": {cpu: round(value, 4) for cpu, value in used.cpus.values(meter.CPU)},
        "numa": {name: _document(used, name, "numa") for name in used.numa.slots},
        "links": {name: _document(used, name, "links") for name in used.links.slots},
        "disks": {name: _document(used, name, "disks") for name in used.disks.slots},
        "predicted": {
            "reclaimable": dict(now.predicted.reclaimable),
            "peak": dict(now.predicted.peak),
        },
    }


def workload(now: view.ReportView, pod: pod.Pod) -> dict[str, object]:
    """One workload and its containers."""
    return {
        **_document(now.used, pod.group or "", "groups", "work"),
        **_document(now.used, pod.group or "", "traffic"),
        "containers": [
            {
                "name": box.name,
                "id": box.id,
                **_document(now.used, box.group or "", "groups", "work"),
            }
            for box in pod.containers
        ],
    }


def _document(used: counters.Usage, subject: str, *tables: str) -> dict[str, Any]:
    """The quantities of one subject that have a key."""
    made: dict[str, Any] = {}
    place = made
    inside: tuple[str, ...] = ()
    for row, folders, key, whole in quantities.keyed(*tables):
        if folders is not inside:
            place, inside = made, folders
            for folder in folders:
                place = place.setdefault(folder, {})
        table = getattr(used, row.table)
        if row.what is not None and not row.several:
            value = table.value(subject, row.what)
            place[key] = None if value is None else int(value) if whole else round(value, 4)
        else:
            values = (table.value(subject, what) for _, what in row.meters(used))
            place.setdefault(key, []).extend(
                None if value is None else int(value) if whole else round(value, 4)
                for value in values
            )
    return made
