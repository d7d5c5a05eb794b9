"""Container runtimes in a guest: the host's fetched programs, mounted where the guest looks.

Does not cover: fetching them (``tests.kit.containerd.programs``).
"""

from __future__ import annotations

from pathlib import Path

from tests.kit import needs
from tests.kit.containerd import programs

#: The guest's cache, where it finds what the host fetched.
CACHE = "/srv/cache"


def shares(*bundles: str) -> dict[str, Path]:
    """The folder of each bundle by its mount point, as ``machine.boot`` takes them."""
    kept = [programs.kept(name) for name in bundles]
    if not all(project.there for project in kept):
        names = " ".join(bundles)
        needs.missing(f"one of {names} is not here: python -m tests.kit.containerd fetch {names}")
    return {f"{CACHE}/koordlet/{project.folder.name}": project.folder for project in kept}


def environment(patience: int = 200) -> dict[str, str]:
    """What a probe is run with: emulated, each of a container's programs takes seconds to begin."""
    return {"XDG_CACHE_HOME": CACHE, "KOORDLET_TEST_PATIENCE": str(patience)}
