"""What a machine's cgroups amount to, as one value that can be compared.

Covers: every writable control file of every group, and which groups there are.
Does not cover: counters, which change by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from koordlet.host.fs import root

#: On v2 the wish of a set may come back as what it amounts to (an empty set of a group with
#: processes cannot be emptied again), so these are judged by what is in effect.
_WISHES = {"cpuset.cpus": "cpuset.cpus.effective", "cpuset.mems": "cpuset.mems.effective"}
_WRITABLE = 0o200
#: Writable only so that it can be reset.
_COUNTERS = {"cpuacct.usage"}

Image = Mapping[str, str]


def groups(host: root.HostRoot, top: str) -> Iterator[str]:
    """A group's directory and all below it, parents first."""
    yield top
    for name in host.list(host.at(top)):
        path = f"{top}/{name}"
        if host.stat(host.at(path), follow=False).kind is root.FileKind.DIRECTORY:
            yield from groups(host, path)


def image(host: root.HostRoot, *tops: str) -> Image:
    """Path to text of every writable file below the directories; a directory has no text."""
    texts: dict[str, str] = {}
    for top in tops:
        for group in groups(host, top):
            texts[group] = ""
            names = host.list(host.at(group))
            for name in names:
                path = host.at(f"{group}/{name}")
                kept = host.stat(path, follow=False)
                if (
                    kept.kind is root.FileKind.FILE
                    and kept.mode & _WRITABLE
                    and name not in _COUNTERS
                ):
                    in_effect = _WISHES.get(name, name)
                    shown = in_effect if in_effect in names else name
                    texts[path] = _text(host, f"{group}/{shown}")
    return texts


def _text(host: root.HostRoot, path: str) -> str:
    try:
        text = host.text(host.at(path))
    except OSError as error:
        return f"errno {error.errno}"
    if path.endswith(("/cgroup.procs", "/tasks", "/cgroup.threads")):
        # The order of processes is not part of what is compared.
        return " ".join(sorted(text.split()))
    return text


def difference(before: Image, after: Image) -> dict[str, tuple[str | None, str | None]]:
    """Path to (before, after), for a message that can be read."""
    return {
        path: (before.get(path), after.get(path))
        for path in sorted({*before, *after})
        if before.get(path) != after.get(path)
    }
