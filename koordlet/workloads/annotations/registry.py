"""All annotations of one pod, decoded.

Covers: which module reads which key, and that a broken one costs only itself.
Does not cover: QoS and priority labels (``workloads.classes``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from koordlet.model import wishes
from koordlet.workloads.annotations import (
    blkio_qos,
    core_sharing,
    cpu_burst,
    cpu_qos,
    eviction,
    memory_qos,
    network_qos,
    numa_topology,
    oom_score,
    resctrl,
    reservation_affinity,
    reservation_use,
    resource_spec,
    resource_status,
)

Decoder = Callable[[str, list[str]], object]

#: Annotation to (field of ``wishes.Wishes``, decoder).
DECODERS: Mapping[str, tuple[str, Decoder]] = {
    resource_status.KEY: ("grant", resource_status.decode),
    resource_spec.KEY: ("binding", resource_spec.decode),
    numa_topology.KEY: ("numa", numa_topology.decode),
    cpu_burst.KEY: ("cpu_burst", cpu_burst.decode),
    cpu_qos.KEY: ("cpu_qos", cpu_qos.decode),
    memory_qos.KEY: ("memory_qos", memory_qos.decode),
    blkio_qos.KEY: ("blkio_qos", blkio_qos.decode),
    network_qos.KEY: ("network", network_qos.decode),
    resctrl.KEY: ("resctrl", resctrl.decode),
    reservation_use.KEY: ("reservation", reservation_use.decode),
    reservation_affinity.KEY: ("reservation_affinity", reservation_affinity.decode),
}
#: Without one of these keys there is nothing to decode.
_OTHERS = frozenset(
    {
        eviction.ENABLED,
        eviction.POLICY,
        eviction.PRIORITY,
        oom_score.KEY,
        oom_score.OF_CONTAINERS,
        core_sharing.GROUP,
        core_sharing.POLICY,
    }
)


def decode(
    labels: Mapping[str, str], notes: Mapping[str, str], problems: list[str]
) -> wishes.Wishes:
    """Decode all labels and annotations; invalid ones are reported and ignored."""
    keys = labels.keys() | notes.keys()
    if keys.isdisjoint(_OTHERS) and keys.isdisjoint(DECODERS):
        return wishes.NONE
    found: dict[str, Any] = {
        name: read(key, notes, decoder, problems)
        for key, (name, decoder) in DECODERS.items()
        if key in notes
    }
    return wishes.Wishes(
        eviction=eviction.decode(labels, notes, problems),
        oom_score=oom_score.decode(notes, problems),
        core_sharing=core_sharing.decode(labels, problems),
        **found,
    )


def read(key: str, notes: Mapping[str, str], decoder: Decoder, problems: list[str]) -> object:
    """One annotation; ``None`` where it is missing or nothing of it can be used."""
    text = notes.get(key)
    if text is None:
        return None
    inner: list[str] = []
    try:
        found = decoder(text, inner)
    except ValueError as error:
        found = None
        inner.append(str(error))
    problems.extend(f"annotation {key}: {one}" for one in inner)
    return found
