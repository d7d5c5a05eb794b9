"""``numa-topology-spec``: on how many NUMA nodes a pod may lie."""

from __future__ import annotations

from koordlet.model import wishes
from koordlet.workloads import shapes

KEY = "scheduling.koordinator.sh/numa-topology-spec"

_NUMA = shapes.record(
    wishes.Numa,
    {
        "policy": (
            "numaTopologyPolicy",
            shapes.choice("", "BestEffort", "Restricted", "SingleNUMANode"),
        ),
        "exclusive": ("singleNUMANodeExclusive", shapes.choice("", "Preferred", "Required")),
    },
)


def decode(text: str, problems: list[str]) -> wishes.Numa:
    """The wish."""
    return _NUMA(shapes.parse(text), problems)
