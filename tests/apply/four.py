"""Four groups that a pass changes, one inside another: what the executor is tried on."""

from __future__ import annotations

from koordlet.model import cpuset
from tests.kit import trees


def group(path: str, old: str, new: str, *, busy: bool = True) -> trees.Group:
    """One group."""
    return trees.Group(
        path=path, old=cpuset.CPUSet.parse(old), new=cpuset.CPUSet.parse(new), busy=busy
    )


TREE = trees.World(
    version="v1",
    groups=(
        group("a", "0-4", "0-1"),
        group("a/b", "0-4", "0"),
        group("c", "0-4", "2-3"),
        group("d", "0-4", "4"),
    ),
)
