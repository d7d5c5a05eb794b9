"""``resource-spec``: how the CPUs of a pod should be chosen."""

from __future__ import annotations

from koordlet.model import wishes
from koordlet.workloads import shapes

KEY = "scheduling.koordinator.sh/resource-spec"

_BIND = shapes.choice("", "Default", "FullPCPUs", "SpreadByPCPUs", "ConstrainedBurst")
_EXCLUSIVE = shapes.choice("", "None", "PCPULevel", "NUMANodeLevel")
_BINDING = shapes.record(
    wishes.Binding,
    {
        "required": ("requiredCPUBindPolicy", _BIND),
        "preferred": ("preferredCPUBindPolicy", _BIND),
        "exclusive": ("preferredCPUExclusivePolicy", _EXCLUSIVE),
    },
)


def decode(text: str, problems: list[str]) -> wishes.Binding:
    """The wish."""
    return _BINDING(shapes.parse(text), problems)
