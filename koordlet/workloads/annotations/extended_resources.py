"""``extended-resource-spec``: batch and mid resources of containers, copied to an annotation.

The webhook leaves the amounts in the containers' resources too, where the API server lets it; the
annotation serves where only the annotations of a pod are seen, and fills what the spec lacks.
"""

from __future__ import annotations

from dataclasses import field

from koordlet.model import resources
from koordlet.model.record import dataclass
from koordlet.workloads import shapes

KEY = "node.koordinator.sh/extended-resource-spec"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extended:
    """Extended resources of one container."""

    requests: resources.Amounts = field(default_factory=dict)
    limits: resources.Amounts = field(default_factory=dict)


def _amounts(value: object, problems: list[str]) -> dict[str, int]:
    return resources.read(shapes.mapping(value), problems, "resources")


def _containers(*, containers: dict[str, Extended] | None = None) -> dict[str, Extended]:
    return containers or {}


_CONTAINER = shapes.record(
    Extended, {"requests": ("requests", _amounts), "limits": ("limits", _amounts)}
)
_SPEC = shapes.record(_containers, {"containers": ("containers", shapes.table(_CONTAINER))})


def decode(text: str, problems: list[str]) -> dict[str, Extended]:
    """Container to its amounts."""
    return _SPEC(shapes.parse(text), problems)
