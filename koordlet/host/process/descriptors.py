"""Limit of open files of this process, and its distribution.

Covers: raising the soft limit, the shares. Does not cover: what is kept open.

The soft limit is 1 024 on most machines, for programs that use select(2), which we do not; it is
there to be raised. A cgroup file that was read pins a page of the kernel's, so "as many as there
are" would be no bound.
"""

from __future__ import annotations

import resource

#: What we ask for: counters, sets, and as many for everybody else.
_WANTED = 1 << 15


def share(part: float, most: int) -> int:
    """A part of what this process may have, at most a number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unbounded = resource.RLIM_INFINITY
    wanted = _WANTED if hard == unbounded else min(hard, _WANTED)
    if soft != unbounded and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return min(most, int(part * (_WANTED if soft == unbounded else soft)))
