"""Whatever is asked of the stand-in, it keeps what every kernel keeps (random operations)."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import hypothesis
from hypothesis import strategies as st

from koordlet.host.fs.root import HostPath, HostRoot
from koordlet.model.cpuset import CPUSet
from tests.kit import search
from tests.kit.kernel import KernelHost, Machine

NODES = {0: "0-3", 1: "4-7"}
NAMES = ("a", "a/b", "a/b/c", "a/d", "e", "e/f")
MASKS = ("", "0-1", "1-3", "2-5", "4-7", "0-7", "7", "0-8")

Step = tuple[str, str, str]

groups = st.sampled_from(NAMES)
masks = st.sampled_from(MASKS)
flags = st.sampled_from(("0", "1"))
quotas = st.sampled_from(("-1", "1000", "50000", "100000", "400000"))
periods = st.sampled_from(("10000", "100000", "200000"))

makes = st.tuples(st.just("mkdir"), groups, st.just(""))
lives = st.one_of(
    st.tuples(st.sampled_from(("rmdir", "spawn", "exit")), groups, st.just("")),
    st.tuples(st.just("move"), groups, groups),
)
hotplugs = st.tuples(st.sampled_from(("offline", "online")), st.sampled_from("1267"), st.just(""))
wishes = st.one_of(
    st.tuples(st.just("cpuset.cpus"), groups, masks),
    st.tuples(st.just("cpuset.mems"), groups, st.sampled_from(("", "0", "1", "0-1", "2"))),
)
steps1 = st.one_of(
    *(makes, lives, hotplugs, wishes, wishes, wishes, wishes),
    st.tuples(st.just("cpuset.cpu_exclusive"), groups, flags),
    st.tuples(st.just("cgroup.clone_children"), groups, flags),
)
steps_cpu = st.one_of(
    makes,
    st.tuples(st.just("cpu.cfs_quota_us"), groups, quotas),
    st.tuples(st.just("cpu.cfs_quota_us"), groups, quotas),
    st.tuples(st.just("cpu.cfs_period_us"), groups, periods),
    st.tuples(st.just("cpu.cfs_burst_us"), groups, quotas),
)
passing = st.tuples(
    st.just("cgroup.subtree_control"), groups, st.sampled_from(("+cpuset", "-cpuset", "+memory"))
)
steps2 = st.one_of(makes, lives, hotplugs, wishes, wishes, wishes, passing, passing)
roles = st.tuples(
    st.just("cpuset.cpus.partition"), groups, st.sampled_from(("root", "isolated", "member"))
)
steps_partition = st.one_of(lives, wishes, wishes, passing, roles, roles, roles)

#: Sequences start from a tree with something in it, or they would meet little but ENOENT.
whole = [("mkdir", name, "") for name in NAMES]
filled1 = [
    *whole,
    *(("cpuset.mems", name, "0-1") for name in NAMES),
    *(("cpuset.cpus", name, "0-7") for name in NAMES if name != "e/f"),
    *(("cpuset.cpu_exclusive", name, "1") for name in ("a", "e")),
    ("spawn", "a/b/c", ""),
]
filled2 = [
    *whole,
    *(("cgroup.subtree_control", name, "+cpuset") for name in ("a", "a/b")),
    *(("spawn", name, "") for name in ("a/b/c", "a/d", "e")),
]
shared = [
    *filled2,
    ("cpuset.cpus", "a", "1-7"),
    ("cpuset.cpus.partition", "a", "root"),
    ("cpuset.cpus", "a/b", "2-5"),
    ("cpuset.cpus.partition", "a/b", "root"),
    ("cpuset.cpus", "a/d", "6-7"),
]


class Walk:
    """Carries steps out below a mount; refusals are part of the game."""

    def __init__(self, host: KernelHost, mount: str) -> None:
        self.host = host
        self.mount = mount

    def path(self, group: str, *file: str) -> HostPath:
        """A path below the mount."""
        return HostRoot.below(HostRoot.at(self.mount), group, *file)

    def do(self, step: Step) -> None:
        """One step, taken or refused."""
        verb, where, value = step
        with contextlib.suppress(OSError):
            match verb:
                case "mkdir":
                    self.host.mkdir(self.path(where))
                case "rmdir":
                    self.host.rmdir(self.path(where))
                case "spawn":
                    self.host.spawn(self.path(where))
                case "exit":
                    for pid in self.host.pids(self.path(where))[:1]:
                        self.host.exit(pid)
                case "move":
                    for pid in self.host.pids(self.path(where))[:1]:
                        self.host.move(pid, self.path(value))
                case "online" | "offline":
                    self.host.set_online(int(where), verb == "online")
                case _:
                    self.host.write(self.path(where, verb), f"{value}\n".encode())

    def present(self) -> Iterator[tuple[str, str]]:
        """Every group that is there, with its parent."""
        for name in NAMES:
            if self.host.exists(self.path(name)):
                yield name, name.rpartition("/")[0]

    def cpus(self, group: str, file: str) -> CPUSet:
        """A set that a file holds."""
        return CPUSet.parse(self.host.text(self.path(group, file)))

    def number(self, group: str, file: str) -> int:
        """A number that a file holds."""
        return int(self.host.text(self.path(group, file)))


def check_cpuset1(walk: Walk) -> None:
    """Child within parent, exclusive siblings apart, no process without CPUs or memory."""
    parents = dict(walk.present())
    for group, parent in parents.items():
        cpus, mems = walk.cpus(group, "cpuset.cpus"), walk.cpus(group, "cpuset.mems")
        assert cpus <= walk.cpus(parent, "cpuset.cpus")
        assert mems <= walk.cpus(parent, "cpuset.mems")
        for pid in walk.host.pids(walk.path(group)):
            assert cpus
            assert mems
            assert walk.host.affinity(pid)
            assert walk.host.affinity(pid) <= cpus
        if not walk.number(group, "cpuset.cpu_exclusive"):
            continue
        for other, above in parents.items():
            if above == parent and other != group:
                assert cpus.isdisjoint(walk.cpus(other, "cpuset.cpus"))
    assert walk.host.machine.online == walk.cpus("", "cpuset.cpus")


def check_bandwidth1(walk: Walk) -> None:
    """No group has more CPUs than its nearest limited ancestor, nor more burst than quota."""
    limits: dict[str, float] = {"": float("inf")}
    for group, parent in walk.present():
        quota = walk.number(group, "cpu.cfs_quota_us")
        ratio = quota / walk.number(group, "cpu.cfs_period_us")
        assert quota < 0 or ratio <= limits[parent]
        assert quota < 0 or walk.number(group, "cpu.cfs_burst_us") <= quota
        limits[group] = limits[parent] if quota < 0 else ratio


def effective(walk: Walk, group: str) -> CPUSet:
    """The effective CPUs of the nearest group that has a file for them."""
    while not walk.host.exists(walk.path(group, "cpuset.cpus.effective")):
        group = group.rpartition("/")[0]
    return walk.cpus(group, "cpuset.cpus.effective")


def check_cpuset2(walk: Walk) -> None:
    """Effective sets are online, within the parent's, and never empty where a process is."""
    for group, parent in walk.present():
        cpus = effective(walk, group)
        assert cpus <= walk.host.machine.online
        assert cpus
        assert cpus <= effective(walk, parent)
        for pid in walk.host.pids(walk.path(group)):
            assert walk.host.affinity(pid) == cpus


def check_partitions(walk: Walk) -> None:
    """Effective sets are online, an outcome has a reason, and no process is without a CPU.

    More does not hold: 6.1 leaves groups that have processes with an empty effective set, and lets
    partitions share CPUs with their parent (both recorded in ``v2-partition``).
    """
    for group, _ in walk.present():
        assert effective(walk, group) <= walk.host.machine.online
        for pid in walk.host.pids(walk.path(group)):
            assert walk.host.affinity(pid)
        file = walk.path(group, "cpuset.cpus.partition")
        if walk.host.exists(file):
            partition = walk.host.text(file)
            assert re.match(r"(member|(root|isolated)( invalid \(.+\))?)\n\Z", partition)


@search.examples(40)
@hypothesis.given(st.lists(steps1, min_size=20, max_size=40))
def test_cpuset_of_v1_keeps_its_order(steps: list[Step]) -> None:
    """v1: a child is always within its parent and no process is ever without CPUs or memory."""
    walk = Walk(Machine(nodes=NODES), "/sys/fs/cgroup/cpuset")
    for step in filled1 + steps:
        walk.do(step)
        check_cpuset1(walk)


@search.examples(40)
@hypothesis.given(st.lists(steps_cpu, min_size=10, max_size=40))
def test_bandwidth_of_v1_keeps_its_order(steps: list[Step]) -> None:
    """v1: quota over period never exceeds that of the nearest limited ancestor."""
    walk = Walk(Machine(nodes=NODES), "/sys/fs/cgroup/cpu")
    for step in whole + steps:
        walk.do(step)
        check_bandwidth1(walk)


@search.examples(40)
@hypothesis.given(st.lists(steps2, min_size=10, max_size=40))
def test_effective_sets_of_v2_nest(steps: list[Step]) -> None:
    """v2: effective sets are within the parent's and never empty; processes run on just these."""
    walk = Walk(Machine(nodes=NODES, cgroup="v2"), "/sys/fs/cgroup")
    for step in filled2 + steps:
        walk.do(step)
        check_cpuset2(walk)


@search.examples(40)
@hypothesis.given(st.lists(steps_partition, min_size=10, max_size=40))
def test_partitions_of_v2_leave_every_process_a_cpu(steps: list[Step]) -> None:
    """v2: whatever becomes of partitions, each process can run and each outcome is explained."""
    walk = Walk(Machine(nodes=NODES, cgroup="v2"), "/sys/fs/cgroup")
    for step in shared + steps:
        walk.do(step)
        check_partitions(walk)
