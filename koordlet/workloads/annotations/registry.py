"""All annotations of one pod, decoded.

Covers: which module reads which key, a pod's own strategies, over the node's; a broken one costs
only itself.
Does not cover: QoS and priority labels (``workloads.classes``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from koordlet.model import strategies, wishes
from koordlet.workloads import strategy_reader
from koordlet.workloads.annotations import (
    core_sharing,
    eviction,
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

CPU_BURST = "koordinator.sh/cpuBurst"
CPU_QOS = "koordinator.sh/cpuQOS"
MEMORY_QOS = "koordinator.sh/memoryQOS"
BLKIO_QOS = "koordinator.sh/blkioQOS"

#: Annotation to (field of ``wishes.Wishes``, decoder).
DECODERS: Mapping[str, tuple[str, Decoder]] = {
    resource_status.KEY: ("grant", resource_status.decode),
    resource_spec.KEY: ("binding", resource_spec.decode),
    numa_topology.KEY: ("numa", numa_topology.decode),
    CPU_BURST: ("cpu_burst", strategy_reader.annotation(strategies.CpuBurst)),
    CPU_QOS: ("cpu_qos", strategy_reader.annotation(strategies.CpuQos)),
    MEMORY_QOS: ("memory_qos", strategy_reader.annotation(strategies.MemoryQos)),
    BLKIO_QOS: ("blkio_qos", strategy_reader.annotation(strategies.BlkioQos)),
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
