"""Random trees of groups, each with the set that it has and the set that it shall have.

Covers: worlds for both cgroup versions, and putting them up on the machine in memory.
Does not cover: trees that a kernel would not hold: sets nest, as they do after any kernel's checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from koordlet.model import cpuset, pod, qos
from tests.kit import agents
from tests.kit.kernel import KernelHost, Machine
from tests.kit.kernel.machine import Cgroup

CPUS = "0-4"
_EVERY = cpuset.CPUSet.parse(CPUS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One group: its path, its set now (empty: never set, v2 only) and its set to be."""

    path: str
    old: cpuset.CPUSet
    new: cpuset.CPUSet
    #: Whether a process lives in it.
    busy: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A tree on one cgroup version."""

    version: Cgroup
    groups: tuple[Group, ...]

    @property
    def wanted(self) -> agents.Sets:
        """What the policy ``fixed`` is told."""
        return agents.Sets(cpus={group.path: str(group.new) for group in self.groups})

    def effective(self, path: str) -> tuple[cpuset.CPUSet, cpuset.CPUSet]:
        """The CPUs that tasks of a group may use before and after."""
        old = new = _EVERY
        for group in self.groups:
            if path == group.path or path.startswith(group.path + "/"):
                old, new = group.old & old or old, group.new & new or new
        return old, new


def top(version: str) -> str:
    """Where the tree with the sets is mounted."""
    return "/sys/fs/cgroup/cpuset" if version == "v1" else "/sys/fs/cgroup"


def file(world: World, path: str) -> str:
    """The set of one group."""
    return f"{top(world.version)}/{path}/cpuset.cpus"


@st.composite
def worlds(draw: st.DrawFn, version: Cgroup | None = None, most: int = 6) -> World:
    """Trees of up to ``most`` groups."""
    either: st.SearchStrategy[Cgroup] = st.sampled_from(("v1", "v2"))
    chosen = draw(either) if version is None else version
    paths: list[str] = []
    sets: dict[str, tuple[cpuset.CPUSet, cpuset.CPUSet]] = {"": (_EVERY, _EVERY)}
    groups = []
    for number in range(draw(st.integers(1, most))):
        parent = draw(st.sampled_from(["", *paths]))
        path = f"{parent}/g{number}".lstrip("/")
        above_old, above_new = sets[parent]
        unset = chosen == "v2" and draw(st.booleans())
        old = cpuset.CPUSet() if unset else draw(_part(above_old))
        new = draw(_part(above_new))
        sets[path] = (old or above_old, new)
        paths.append(path)
        groups.append(Group(path=path, old=old, new=new, busy=draw(st.booleans())))
    return World(version=chosen, groups=tuple(groups))


def _part(of: cpuset.CPUSet) -> st.SearchStrategy[cpuset.CPUSet]:
    return st.sets(st.sampled_from(sorted(of)), min_size=1).map(cpuset.CPUSet.of)


def build(world: World) -> tuple[KernelHost, Mapping[int, str]]:
    """The machine, and each process with the group that it lives in."""
    host = Machine(CPUS, cgroup=world.version)
    homes = {}
    for group in world.groups:
        directory = f"{top(world.version)}/{group.path}"
        host.mkdir(host.at(directory))
        if world.version == "v2":
            _pass_down(host, group.path)
        if group.old:
            host.write(host.at(f"{directory}/cpuset.cpus"), f"{group.old}\n".encode())
        if world.version == "v1":
            host.write(host.at(f"{directory}/cpuset.mems"), b"0\n")
    for group in world.groups:
        # On v2 processes live in the leaves of a tree that hands controllers down.
        inner = any(other.path.startswith(group.path + "/") for other in world.groups)
        if group.busy and not (inner and world.version == "v2"):
            homes[host.spawn(f"{top(world.version)}/{group.path}")] = group.path
    host.calls.clear()
    return host, homes


def _pass_down(host: KernelHost, path: str) -> None:
    parent = path.rpartition("/")[0]
    if parent:
        place = f"/sys/fs/cgroup/{parent}/cgroup.subtree_control"
        host.write(host.at(place), b"+cpuset\n")


def site(world: World, host: KernelHost, state: Path) -> agents.Site:
    """A site on which the policy ``fixed`` wants the new sets."""
    pods = tuple(
        pod.Pod(
            uid=group.path,
            namespace="trees",
            name=group.path,
            qos=qos.Qos.LS,
            source="test",
            match=f"cgroup={group.path}",
        )
        for group in world.groups
    )
    return agents.Site(
        host, state, rows=(agents.fixed(),), settings={"fixed": world.wanted}, pods=pods
    )


def each(world: World) -> Iterator[tuple[str, cpuset.CPUSet, cpuset.CPUSet]]:
    """Path, effective set before, effective set after."""
    for group in world.groups:
        yield group.path, *world.effective(group.path)
