"""A claim on the cgroup tree itself, so that two agents never write the same one.

Covers: flock(2) on the managed directory, and finding who holds it.
Does not cover: the lock file in the run directory (``state.lock``).

Two agents may have different state directories, or live in different containers; the directory in
the cgroup filesystem is one inode for all of them. No file is made and nothing is left behind.

A claim is exclusive on the managed directory and shared on every one above it, so trees that lie
inside each other exclude each other and neighbours do not. Above the root of a cgroup namespace
nobody inside it can see; there the directories in between are not claimed.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable

from koordlet.host.fs import root
from koordlet.host.process import identity
from koordlet.model import cgroup, errors


def take(host: root.HostRoot, layout: cgroup.Layout) -> tuple[int, ...]:
    """Claim the tree until the handles close; returns none if there is nothing to claim."""
    home = layout.holder("cpuset") or layout.tree
    if home is None or not host.live:
        return ()
    handles: list[int] = []
    try:
        for above in reversed(tuple(cgroup.ancestors(home.base))):
            directory = "/".join(part for part in (home.mount, above) if part)
            handles.append(_lock(host, directory, fcntl.LOCK_SH))
        handles.append(_lock(host, home.directory(""), fcntl.LOCK_EX))
    except errors.HostError:
        release(host, handles)
        raise
    return tuple(handles)


def release(host: root.HostRoot, handles: Iterable[int]) -> None:
    """Give a claim back."""
    for handle in handles:
        host.close(handle)


def _lock(host: root.HostRoot, path: str, kind: int) -> int:
    directory = host.at(path)
    try:
        handle = host.open(directory)
    except OSError as error:
        raise errors.HostError(
            f"cannot open the cgroup root: {error.strerror}",
            culprit=directory,
            fix="create the cgroup, or correct cgroups.root",
            errno=error.errno,
        ) from error
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = _holder(host, os.fstat(handle).st_ino)
        os.close(handle)
        raise errors.TakenError(
            f"another koordlet manages this cgroup tree ({identity.describe(pid)})",
            culprit=directory,
            fix=f"stop it first, or look at it: ps -fp {pid}",
        ) from None
    return handle


def _holder(host: root.HostRoot, inode: int) -> str:
    """The pid behind a lock. A line is ``1: FLOCK ADVISORY WRITE PID MAJ:MIN:INODE …``."""
    try:
        lines = host.text(host.proc("locks")).splitlines()
    except OSError:
        return "unknown"
    for line in lines:
        words = line.split()
        if len(words) > 5 and words[1] == "FLOCK" and words[5].endswith(f":{inode}"):
            return words[4]
    return "unknown"
