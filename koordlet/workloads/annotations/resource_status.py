"""``resource-status``: the CPUs and NUMA resources that a scheduler gave to a pod.

An empty ``cpuset`` grants no CPUs, as if it were missing. A cpuset that does not parse costs the
CPUs, not the NUMA part.
"""

from __future__ import annotations

from koordlet.model import resources, wishes
from koordlet.workloads import shapes

KEY = "scheduling.koordinator.sh/resource-status"

_HIGHEST_NODE = 1023


def _amounts(value: object, problems: list[str]) -> dict[str, int]:
    return resources.read(shapes.mapping(value), problems, "resources")


_SHARE = shapes.record(
    wishes.NumaShare,
    {
        "node": ("node", shapes.integer(0, _HIGHEST_NODE)),
        "resources": ("resources", _amounts),
    },
)
_GRANT = shapes.record(
    wishes.Grant,
    {
        "cpus": ("cpuset", shapes.cpus),
        "numa": ("numaNodeResources", shapes.listing(_SHARE)),
    },
)


def decode(text: str, problems: list[str]) -> wishes.Grant:
    """The grant."""
    return _GRANT(shapes.parse(text), problems)
