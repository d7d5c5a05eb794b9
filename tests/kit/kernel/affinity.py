"""Which CPUs a process may use, between its cpuset and its own wish.

Kernel facts: up to 6.1 a cpuset overwrites the wish of sched_setaffinity(2); from 6.2 on the wish
is kept and the process runs on the intersection when there is one (``task_struct.user_cpus_ptr``).
"""

from __future__ import annotations

import errno

from koordlet.model.cpuset import CPUSet
from tests.kit.kernel.group import Process
from tests.kit.kernel.tree import refused

_KEEPS_WISH = (6, 2)


def confine(process: Process, cpus: CPUSet, kernel: tuple[int, int]) -> None:
    """The cpuset of a process changed, or the process changed its cpuset.

    Where nothing is left (partitions of 6.1 can do that) the process stays where it is.
    """
    if not cpus:
        return
    process.allowed = cpus
    if process.wish is not None and kernel >= _KEEPS_WISH:
        process.allowed = process.wish & cpus or cpus


def ask(process: Process, wish: CPUSet, cpus: CPUSet) -> None:
    """sched_setaffinity(2): EINVAL when nothing of it is in the cpuset."""
    if not wish & cpus:
        raise refused(errno.EINVAL)
    process.wish = wish
    process.allowed = wish & cpus
