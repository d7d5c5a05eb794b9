"""Cgroup hierarchies as they are mounted.

Covers: v1, v2 and hybrid mounts from mountinfo, which of them we may write, files that this kernel
lacks.
Does not cover: the groups in them (``tree``).

Kernel facts: proc(5) on mountinfo; Documentation/admin-guide/cgroup-v2.rst.
``/proc/cgroups`` is not used: it says nothing about v2. From 7.0 on a v2 group with processes takes
an empty set, and uses its parent's then; before, that is ENOSPC (kernel/cgroup/cpuset.c).
"""

from __future__ import annotations

import dataclasses
import os
import re
from functools import partial

from koordlet.host.fs import root
from koordlet.model import cgroup, knob

#: v1 mount options that are not controllers.
_NOT_CONTROLLERS = frozenset(
    {"rw", "ro", "xattr", "noprefix", "clone_children", "cpuset_v2_mode", "none", "all", "seclabel"}
    | {"favordynmods"}
)

#: Mount options with which nothing can be written, and what they mean.
_OBSTACLES = {
    "ro": "mounted read-only",
    "noprefix": "mounted with noprefix, so cpuset.cpus is called cpus there; mount it without",
}
_EMPTY_SETS = (7, 0)
_RELEASE = re.compile(r"(\d+)\.(\d+)")

#: Groups that are asked for what the kernel has.
_SAMPLES = 8
#: Rows whose file is not on every kernel.
_RARE = tuple(row for row in knob.TABLE.values() if row.since)


def discover(host: root.HostRoot, base: str = "") -> cgroup.Layout:
    """The mounted hierarchies, as this process sees them; nothing mounted is an empty layout.

    A read that gets no answer raises: half a layout is none.
    """
    mounts = host.silence.answer(lambda: host.text(host.proc("self", "mountinfo")), "")
    by_key: dict[frozenset[str] | str, cgroup.Hierarchy] = {}
    for line in mounts.splitlines():
        hierarchy = _hierarchy(host, line, base)
        if hierarchy is None:
            continue
        key = "unified" if hierarchy.unified else hierarchy.controllers
        before = by_key.get(key)
        if before is None or _replaces(hierarchy, before):
            by_key[key] = hierarchy
    takes = _release(host) >= _EMPTY_SETS
    return cgroup.Layout(
        hierarchies=tuple(_looked_at(host, hierarchy, takes=takes) for hierarchy in by_key.values())
    )


def _release(host: root.HostRoot) -> tuple[int, int]:
    """Major and minor version of the kernel; zeros where it does not say."""
    path = host.proc("sys", "kernel", "osrelease")
    release = _RELEASE.match(host.silence.answer(lambda: host.text(path), ""))
    return (int(release[1]), int(release[2])) if release else (0, 0)


def _looked_at(
    host: root.HostRoot, hierarchy: cgroup.Hierarchy, *, takes: bool
) -> cgroup.Hierarchy:
    """Hierarchy completed from its directories and the kernel."""
    if hierarchy.base and hierarchy.writable and not host.exists(host.at(hierarchy.directory(""))):
        hierarchy = dataclasses.replace(
            hierarchy, writable=False, why=f"the cgroup {hierarchy.base} does not exist"
        )
    return dataclasses.replace(
        hierarchy, lacks=_lacks(host, hierarchy), empty_sets=takes and hierarchy.unified
    )


def _lacks(host: root.HostRoot, hierarchy: cgroup.Hierarchy) -> frozenset[str]:
    """Files that not every kernel has and this one has not.

    The root group has few files, so groups below it are looked at; on v2 those that the controller
    was handed down to. Without any, only what other kernels' makers added is taken as missing.
    """
    groups = _samples(host, hierarchy)
    missing = set()
    for row in _RARE:
        name = row.file(unified=hierarchy.unified)
        if name is None or (row.controller and row.controller not in hierarchy.controllers):
            continue
        asked = [
            group
            for group, controllers in groups.items()
            if not hierarchy.unified or not row.controller or row.controller in controllers
        ]
        there = any(host.exists(host.at(f"{group}/{name}")) for group in asked)
        if not there and (asked or not row.since[0].isdigit()):
            missing.add(name)
    return frozenset(missing)


def _samples(host: root.HostRoot, hierarchy: cgroup.Hierarchy) -> dict[str, frozenset[str]]:
    """The directories of some groups below the top, and the controllers handed down to each."""
    answer, top = host.silence.answer, host.at(hierarchy.directory(""))
    samples: dict[str, frozenset[str]] = {}
    for name in answer(lambda: host.list(top), list[str]()):
        group = host.at(f"{top}/{name}")
        stat = answer(partial(host.stat, group, follow=False), None, broken=False)
        if stat is not None and stat.kind is root.FileKind.DIRECTORY:
            samples[group] = _controllers(host, group)
            if len(samples) == _SAMPLES:
                break
    return samples


def _replaces(hierarchy: cgroup.Hierarchy, before: cgroup.Hierarchy) -> bool:
    """True if the later of two mounts of one hierarchy replaces the earlier.

    What is below /sys/fs/cgroup is where other programs look, too; of two there, the later covers
    the earlier, unless it lies inside of it: a part bound to its own place (kind does that with the
    kubelet's group) shows less and hides nothing.
    """
    if hierarchy.mount.startswith(f"{before.mount}/"):
        return False
    return _usual(hierarchy) or not _usual(before)


def _usual(hierarchy: cgroup.Hierarchy) -> bool:
    return hierarchy.mount.startswith("/sys/fs/cgroup")


def _hierarchy(host: root.HostRoot, line: str, base: str) -> cgroup.Hierarchy | None:
    """One line of mountinfo, or ``None`` when it is no cgroup mount with something to control."""
    left, _, right = line.partition(" - ")
    fields, tail = left.split(), right.split()
    if len(fields) < 6 or len(tail) < 3 or tail[0] not in ("cgroup", "cgroup2"):
        return None
    options = set(fields[5].split(",")) | set(tail[2].split(","))
    mount = _unescape(fields[4])
    if tail[0] == "cgroup2":
        controllers = _controllers(host, mount, mounted=True)
    else:
        controllers = frozenset(
            word for word in tail[2].split(",") if word not in _NOT_CONTROLLERS and "=" not in word
        )
        if not controllers:
            return None  # a named hierarchy: bookkeeping of systemd, nothing to control
    # The superblock or this mount may be read-only; either refuses a write.
    obstacle = next((why for option, why in _OBSTACLES.items() if option in options), "")
    return cgroup.Hierarchy(
        mount=mount,
        unified=tail[0] == "cgroup2",
        controllers=controllers,
        base=base.strip("/"),
        writable=not obstacle,
        why=obstacle,
    )


def _unescape(text: str) -> str:
    r"""Mountinfo writes blanks as octal: ``\040``."""
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text


def _controllers(host: root.HostRoot, mount: str, *, mounted: bool = False) -> frozenset[str]:
    path = host.at(f"{mount}/cgroup.controllers")
    return frozenset(host.silence.answer(lambda: host.text(path), "", broken=mounted).split())


def writable(host: root.HostRoot, layout: cgroup.Layout) -> cgroup.Layout:
    """The layout with ``writable`` narrowed to what this process may really write.

    A recording is read-only to us, which says nothing about the machine that it is of.
    """
    if not host.live:
        return layout
    hierarchies = tuple(
        hierarchy
        if not hierarchy.writable or host.access(host.at(hierarchy.directory("")), os.W_OK)
        else dataclasses.replace(hierarchy, writable=False, why="this user has no write permission")
        for hierarchy in layout.hierarchies
    )
    return cgroup.Layout(hierarchies=hierarchies)
