"""Descriptors of this process: how many it may have, and those it keeps of small files.

Covers: raising the soft limit, the shares, reading a small file as it is now. Does not cover:
counters of groups (``host.counters.groups``), which are read by the thousand.

1. The soft limit is 1 024 on most machines, for programs that use select(2), which we do not; it
   is there to be raised. A cgroup file that was read pins a page of the kernel's, so "as many as
   there are" would be no bound.
2. Opening and closing a file costs two to six times what reading it does. Only files that say
   everything in one read, as ``/proc/meminfo`` does, are kept; one that says more than a page is
   opened anew each time, and so is everything in a recording, where there may be another file the
   next moment.
"""

from __future__ import annotations

import resource

from koordlet.host.fs import root

#: What we ask for: counters, sets, and as many for everybody else.
_WANTED = 1 << 15
_PAGE = 4096


def share(part: float, most: int) -> int:
    """A part of what this process may have, at most a number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unbounded = resource.RLIM_INFINITY
    wanted = _WANTED if hard == unbounded else min(hard, _WANTED)
    if soft != unbounded and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return min(most, int(part * (_WANTED if soft == unbounded else soft)))


class KeptFiles:
    """Small files that one reader reads at every tick, and their descriptors."""

    def __init__(self, host: root.HostRoot) -> None:
        self._host = host
        self._handles: dict[root.HostPath, int] = {}

    def read(self, path: root.HostPath) -> bytes:
        """The whole file."""
        if not self._host.live:
            return self._host.read(path)
        try:
            handle = self._handles.get(path)
            if handle is None:
                handle = self._handles[path] = self._host.open(path)
            text = self._host.pread(handle, _PAGE)
        except OSError:
            # Its group is gone, or was made anew; what is wrong with the path, ``read`` says.
            self._drop(path)
            return self._host.read(path)
        return text if len(text) < _PAGE else self._host.read(path)

    def close(self) -> None:
        """Give all descriptors back."""
        for path in list(self._handles):
            self._drop(path)

    def _drop(self, path: root.HostPath) -> None:
        handle = self._handles.pop(path, None)
        if handle is not None:
            self._host.close(handle)
