"""Resctrl groups of the workloads' threads.

Covers: one scan, when the next one is due. Does not cover: moving threads (``apply.resctrl``).

The kernel puts a child into its parent's group, so only what enters a workload's cgroup from
outside (a container that starts, ``exec`` into one) can be astray. A scan is due in the slow lane,
when the workloads' cgroups or the groups changed, and after threads were moved.

Cost: one read for each workload cgroup and each resctrl group. 10 000 threads in 500 cgroups take
some 15 ms, so it is not done with every tick.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from koordlet.host.fs import root
from koordlet.model import cgroup, pod, resctrl

Homes = Mapping[str, Mapping[str, tuple[int, ...]]]


class Scanner:
    """Keeps the last scan."""

    def __init__(self, host: root.HostRoot) -> None:
        self.host = host
        self.homes: Homes = {}
        self._files: Mapping[str, tuple[str, ...]] = {}
        self._groups: tuple[str, ...] = ()
        self._due = True

    def due(self) -> None:
        """Threads were moved."""
        self._due = True

    def look(
        self,
        now: resctrl.Resctrl,
        files: Mapping[str, tuple[str, ...]],
        *,
        full: bool,
    ) -> Homes:
        """The homes of all threads; those of the last scan where nothing asks for a new one."""
        groups = tuple(_all_groups(now))
        if not (full or self._due or files != self._files or groups != self._groups):
            return self.homes
        self._files, self._groups, self._due = files, groups, False
        try:
            self.homes = self._scan(now, files)
        except OSError as error:
            # Half a scan would take threads for astray: the last one holds, until one succeeds.
            self._due = self.host.silence.met(error, known=True)
        return self.homes

    def _scan(self, now: resctrl.Resctrl, files: Mapping[str, tuple[str, ...]]) -> Homes:
        where: dict[int, str] = {}
        # Monitoring groups last: their threads are listed by the control group as well.
        for group in sorted(_all_groups(now), key=lambda name: "mon_groups" in name):
            for thread in numbers(self.host, now.file(group, "tasks")):
                where[thread] = group
        homes: dict[str, dict[str, tuple[int, ...]]] = {}
        for workload, paths in files.items():
            by_group: dict[str, list[int]] = {}
            for path in paths:
                for thread in numbers(self.host, path):
                    # One that was born after its group was read is where its parent is.
                    if thread in where:
                        by_group.setdefault(where[thread], []).append(thread)
            homes[workload] = {name: tuple(sorted(threads)) for name, threads in by_group.items()}
        return homes


def _all_groups(now: resctrl.Resctrl) -> Iterable[str]:
    for name, group in now.groups.items():
        yield name
        for monitor in group.monitors:
            yield f"{name}/mon_groups/{monitor}".lstrip("/")


def numbers(host: root.HostRoot, path: str) -> list[int]:
    """The numbers that a ``tasks`` file lists; none where the group is gone."""
    return [int(word) for word in words(host, path) if word.isdigit()]


def words(host: root.HostRoot, path: str) -> list[bytes]:
    """Thread ids as text, while reading. Raises if the kernel does not answer."""
    return host.silence.answer(lambda: host.read(host.at(path)), b"").split()


def thread_files(
    layout: cgroup.Layout, groups: Iterable[str], pods: Iterable[pod.Pod]
) -> Mapping[str, tuple[str, ...]]:
    """The files that list each workload's threads: its own cgroup's and those of all below it.

    A container that uses resource claims is a workload of its own: it may have a group alone.
    """
    where = layout.holder("cpuset") or layout.holder("cpu") or layout.tree
    if where is None:
        return {}
    name = "cgroup.threads" if where.unified else "tasks"
    listed = list(pods)
    owners = {workload.group for workload in listed if workload.group}
    owners |= {b.group for workload in listed for b in workload.containers if b.claims and b.group}
    by_owner: dict[str, list[str]] = {owner: [] for owner in sorted(owners)}
    for path in sorted(groups):
        owner = next((up for up in (path, *cgroup.ancestors(path)) if up in owners), None)
        if owner is not None:
            by_owner[owner].append(f"{where.directory(path)}/{name}")
    return {owner: tuple(files) for owner, files in by_owner.items()}


def workload_of(
    host: root.HostRoot, layout: cgroup.Layout, workloads: Iterable[str], pid: int
) -> str | None:
    """The workload whose cgroup a process is in; ``None`` where it is in none, or has ended."""
    holder = layout.holder("cpuset") or layout.holder("cpu") or layout.tree
    try:
        lines = host.text(host.proc(str(pid), "cgroup")).splitlines()
    except OSError:
        return None
    known = frozenset(workloads)
    for line in lines if holder is not None else ():
        _, controllers, path = line.split(":", 2)
        named = frozenset(controllers.split(",")) if controllers else frozenset()
        if holder is not None and (not named if holder.unified else named & holder.controllers):
            if path.startswith(_ABOVE):
                return _by_end(path, known)
            base = f"/{holder.base}/" if holder.base else "/"
            if not path.startswith(base):
                return None
            group = path.removeprefix(base)
            return next((up for up in (group, *cgroup.ancestors(group)) if up in known), None)
    return None


#: How a path begins that leads out of the cgroup namespace of whoever reads it.
_ABOVE = "/../"


def _by_end(path: str, known: Iterable[str]) -> str | None:
    """The workload of a path out of our cgroup namespace, such as ``/../../pod1.slice/c.scope``.

    A container without privileges has one of its own on v2, whatever it has mounted
    (cgroup_namespaces(7)). Where that is in the tree nobody says: the longest part of the path that
    ends the name of one workload alone counts.
    """
    steps = path.rpartition(_ABOVE)[2].split("/")
    for length in range(len(steps), 0, -1):
        end = "/" + "/".join(steps[:length])
        ending = [workload for workload in known if f"/{workload}".endswith(end)]
        if ending:
            return ending[0] if len(ending) == 1 else None
    return None


def at_home(host: root.HostRoot, homes: Mapping[str, object], pid: int) -> bool:
    """True if a process is in a group that holds others of its workload.

    ``/proc/PID/cpu_resctrl_groups`` says it since 5.7; where it does not, nobody knows.
    """
    try:
        text = host.text(host.proc(str(pid), "cpu_resctrl_groups"))
    except OSError:
        return not host.exists(host.proc(str(pid)))
    group = text.partition("\n")[0].removeprefix("res:").strip("/")
    return any(home.partition("/mon_groups/")[0] == group for home in homes)
