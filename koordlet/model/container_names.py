"""Container names in cgroup paths: runtime and id. Pure.

Covers: the names that runtimes give, both ways; the group that crun nests in a scope.
Does not cover: the path above (``grouppath``).

Under the systemd driver a runtime asks systemd for the scope ``<prefix>-<id>.scope``; under
cgroupfs it makes a directory itself, with or without its prefix. ``slice:prefix:id`` is how a
runtime is told to use systemd; one that is set to cgroupfs takes it for a directory's name, and so
it is found.
The pause container is named like any other: only the runtime can tell which one it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from koordlet.model.record import dataclass

#: Prefix of the name to the scheme of the id, as ``containerStatuses[].containerID`` has it.
RUNTIMES = {
    "cri-containerd": "containerd",
    "nerdctl": "containerd",
    "crio": "cri-o",
    "docker": "docker",
    "libpod": "podman",
    "pouch": "pouch",
}

#: The group that crun makes inside a scope (v2), and in which all of the container is.
NESTED = "container"
#: Watches over one container and is none itself: ``crio-conmon-<id>.scope``.
_SCOPE = ".scope"
#: All runtimes draw 32 random bytes. A bare name must be just that; behind a prefix, names that a
#: person shortened are known too.
_FULL = re.compile(r"[0-9a-f]{64}")
_ID = re.compile(r"[0-9a-f]{12,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One container's name."""

    id: str
    #: Of ``RUNTIMES``; empty where the directory is named by the id alone.
    prefix: str = ""
    #: ``<prefix>-<id>.scope`` and not a plain directory.
    scope: bool = False
    #: The slice of an instruction to systemd that was taken for a name.
    misplaced: str = ""

    @property
    def runtime(self) -> str:
        """The scheme of the id, empty while unknown."""
        return RUNTIMES.get(self.prefix, "")

    def __str__(self) -> str:
        """The name of the directory."""
        if self.misplaced:
            return f"{self.misplaced}:{self.prefix}:{self.id}"
        name = f"{self.prefix}-{self.id}" if self.prefix else self.id
        return name + (_SCOPE if self.scope else "")


def parse(name: str) -> Leaf | None:
    """Parse a directory name; ``None`` where it is not a container."""
    if name.count(":") == 2:
        where, prefix, what = name.split(":")
        known = prefix in RUNTIMES and _ID.fullmatch(what) and where.endswith(".slice")
        return Leaf(id=what, prefix=prefix, misplaced=where) if known and "/" not in where else None
    if _FULL.fullmatch(name):
        return Leaf(id=name)
    body = name.removesuffix(_SCOPE)
    prefix, _, what = body.rpartition("-")
    if prefix not in RUNTIMES or not _ID.fullmatch(what):
        return None
    return Leaf(id=what, prefix=prefix, scope=body != name)


def home(scope: str, inside: Collection[str]) -> str:
    """The group in which a container's processes and limits are, of its own and those inside.

    On v2 under systemd crun gives the scope its weight alone, and all else to one group inside.
    """
    nested = f"{scope}/{NESTED}"
    return nested if scope.endswith(_SCOPE) and list(inside) == [nested] else scope
