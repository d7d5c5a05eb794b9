"""The pictures of ``docs/topology.md``: ``python -m tests.kit.pictures`` draws them anew.

Covers: which machines, and who owns what in them.
Does not cover: drawing (``report.topology_svg``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from koordlet.host.fs import root
from koordlet.host.recording import roots
from koordlet.host.topology import discovery
from koordlet.report import topology_svg
from tests.kit import large_machines, machines

_TOP = Path(__file__).parents[2]
IMAGES = _TOP / "docs" / "images"


def _fixture(name: str) -> Callable[[], root.HostRoot]:
    return lambda: roots.open_root(str(_TOP / "fixtures" / "sysfs" / f"{name}.tar.gz"))


#: File name to the machine that it shows.
PICTURES: Mapping[str, Callable[[], root.HostRoot]] = {
    "topology-two-sockets": _fixture("xeon-2s-smt2"),
    "topology-hybrid": _fixture("hybrid-pe"),
    "topology-memory-only": _fixture("memory-only-nodes"),
    "topology-smt8": _fixture("power-smt8"),
    "topology-nodes-in-sockets": _fixture("vm-4n16"),
    "topology-256": lambda: machines.to_host(large_machines.full(256)),
}
#: Whose CPUs they are, in pictures that show that.
OWNERS: Mapping[str, Mapping[int, str]] = {
    "topology-two-sockets": {
        **dict.fromkeys((0, 8), "reserved"),
        **dict.fromkeys((4, 12, 5, 13), "lse"),
        **dict.fromkeys((1, 9, 2, 10), "ls"),
        **dict.fromkeys((3, 11, 6, 14, 7, 15), "be"),
    },
}


def draw(name: str) -> str:
    """One picture."""
    machine = discovery.discover(PICTURES[name]())
    return topology_svg.picture(machine, OWNERS.get(name))


def main() -> None:
    """Write all."""
    IMAGES.mkdir(exist_ok=True)
    for name in PICTURES:
        (IMAGES / f"{name}.svg").write_text(draw(name), encoding="utf-8")


if __name__ == "__main__":
    main()
