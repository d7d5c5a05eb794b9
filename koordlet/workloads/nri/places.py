"""Cgroup of a pod or container from the runtime's path. Pure.

Covers: the two ways in which runtimes write it. Does not cover: what a group is (``grouppath``).

Under the driver cgroupfs it is a path below each mount. Under systemd the place of a pod is the
name of a slice, and that of a container ``slice:prefix:id``, an instruction to make a scope.
"""

from __future__ import annotations

from koordlet.model import cgroup, container_names, slices


def group(text: str, base: str) -> str | None:
    """The group below ``base``; ``None`` where it is elsewhere, or says nothing."""
    path = _path(text)
    if path is None or not cgroup.is_plain(path):
        return None
    if not base:
        return path
    return path.removeprefix(f"{base}/") if path.startswith(f"{base}/") else None


def _path(text: str) -> str | None:
    head, _, rest = text.partition(":")
    if rest:
        prefix, _, what = rest.partition(":")
        above = slices.expand(head)
        leaf = container_names.Leaf(id=what, prefix=prefix, scope=True)
        return None if above is None else "/".join(part for part in (above, str(leaf)) if part)
    if text.endswith(slices.SUFFIX) and "/" not in text:
        return slices.expand(text)
    return text.strip("/") or None
