"""The groups that a runtime made in every hierarchy, removed.

Covers: a test group in all mounted hierarchies. Does not cover: which group that is.

runc removes a container's own groups and leaves those above it, in hierarchies that koordlet does
not even look at (devices, freezer, pids ...).
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.kit import deadline


def tops(name: str) -> list[Path]:
    """A group in each hierarchy that has it."""
    mounts = (line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines())
    kinds = ((words[words.index("-") + 1], words[4]) for words in mounts)
    paths = (Path(mount) / name for kind, mount in kinds if kind in ("cgroup", "cgroup2"))
    return [path for path in dict.fromkeys(paths) if path.is_dir()]


def remove(name: str) -> None:
    """Remove a group and all below it everywhere; processes in it are ending already."""
    for top in tops(name):
        for folder, _, _ in sorted(os.walk(top), reverse=True):
            deadline.removed(Path(folder))
