"""The groups in a cgroup directory, with as few system calls as its link count allows.

Covers: telling groups from files by name, and by stat(2) where names do not suffice; all that is
below a directory.
Does not cover: when to look (``tree``).

Names suffice where there are as many as the link count says, and all of them are such as the kernel
gives no file: its own have a dot, but for three, and none ends as systemd's units do.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from koordlet.host.fs import root

#: Link count of a directory without groups in it. A filesystem that does not count says less.
NONE = 2

_FILE_PREFIXES = (
    "cgroup.", "cpu.", "cpuset.", "cpuacct.", "memory.", "io.", "pids.", "hugetlb.",
    "rdma.", "misc.", "blkio.", "devices.", "freezer.", "net_cls.", "net_prio.", "irq.",
)  # fmt: skip
_UNITS = (".slice", ".scope", ".service")


def looks_like_file(name: str) -> bool:
    """True if a name in a cgroup directory looks like a kernel file."""
    return name.startswith(_FILE_PREFIXES) or name in (
        "tasks",
        "notify_on_release",
        "release_agent",
    )


def names(host: root.HostRoot, directory: root.HostPath, links: int) -> list[str]:
    """The groups directly in a directory, sorted; none when it is gone. Silence raises.

    Names that look like files are looked at only when groups are missing among the others.
    """
    every = host.silence.answer(lambda: host.list(directory), list[str]())
    plain = [name for name in every if not looks_like_file(name)]
    if len(plain) == links - NONE and all("." not in n or n.endswith(_UNITS) for n in plain):
        return plain
    groups = [name for name in plain if _is_group(host, directory, name)]
    if links < NONE or len(groups) < links - NONE:
        odd = [name for name in every if looks_like_file(name)]
        groups = sorted((*groups, *(name for name in odd if _is_group(host, directory, name))))
    return groups


def below(host: root.HostRoot, top: str) -> Iterator[str]:
    """A directory and all below, parents first, as far as they are there. Silence raises.

    Whoever owns a group may nest others deeper than Python nests calls.
    """
    todo = [top]
    while todo:
        here = host.at(todo.pop())
        stat = host.silence.answer(partial(host.stat, here), None)
        if stat is not None:
            yield here
            todo += [host.below(here, name) for name in reversed(names(host, here, stat.links))]


def _is_group(host: root.HostRoot, directory: root.HostPath, name: str) -> bool:
    path = host.below(directory, name)
    stat = host.silence.answer(lambda: host.stat(path), None)
    return stat is not None and stat.kind is root.FileKind.DIRECTORY
