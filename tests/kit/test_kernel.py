"""The stand-in machine where recordings do not reach: tree, processes, hotplug, refusals, shape."""

from __future__ import annotations

import errno
import os

import pytest

from koordlet.host.fs.root import FileKind, HostPath, HostRoot
from koordlet.model.cpuset import CPUSet
from tests.kit.kernel import KernelHost, Machine

NODES = {0: "0-3", 1: "4-7"}


def at(*parts: str) -> HostPath:
    """A path below the cgroup mount."""
    return HostRoot.at("/".join(("/sys/fs/cgroup", *parts)))


def refusal(act: object, *args: object) -> str:
    """The errno name with which a call fails, ``ok`` when it does not."""
    assert callable(act)
    try:
        act(*args)
    except OSError as error:
        # The port promises a file name.
        return errno.errorcode[error.errno or 0] if error.filename else "no name"
    return "ok"


@pytest.mark.parametrize(
    "path",
    ["/", "//", "/a", "/a/", "//a", "/a//b", "/a/./b", "/a/../b", "/a/..", "/.a", "/a/.b", "/a..b"],
)
def test_a_path_has_one_spelling(path: str) -> None:
    """Whatever the machine told: no empty part, no dots that lead elsewhere."""
    assert HostRoot.at(path) == os.path.normpath("/" + path.lstrip("/"))


@pytest.fixture
def v1() -> KernelHost:
    """Eight CPUs, two nodes, cgroup v1 as systemd mounts it."""
    return Machine(nodes=NODES)


@pytest.fixture
def v2() -> KernelHost:
    """Eight CPUs, two nodes, cgroup v2 with all controllers passed down."""
    return Machine(nodes=NODES, cgroup="v2")


def test_inode_numbers_are_never_used_twice(v2: KernelHost) -> None:
    """A group made again under the same name has another inode number."""
    v2.mkdir(at("a"))
    first = v2.stat(at("a")).inode
    v2.rmdir(at("a"))
    v2.mkdir(at("a"))

    assert first != v2.stat(at("a")).inode


def test_links_of_a_group_count_its_children(v2: KernelHost) -> None:
    """The link count of a group directory is two more than its number of children."""
    v2.mkdir(at("a"))
    alone = v2.stat(at("a")).links
    v2.mkdir(at("a", "b"))

    assert (alone, v2.stat(at("a")).links) == (2, 3)


def test_joined_hierarchies_have_links_that_can_be_followed(v1: KernelHost) -> None:
    """``cpu`` is a link to ``cpu,cpuacct``: followed by calls, seen by readlink and lstat."""
    v1.mkdir(at("cpu", "a"))

    assert v1.readlink(at("cpu")) == "cpu,cpuacct"
    assert FileKind.LINK is v1.stat(at("cpu"), follow=False).kind
    assert FileKind.DIRECTORY is v1.stat(at("cpu,cpuacct", "a")).kind
    assert refusal(v1.readlink, at("cpuset")) == "EINVAL"


def test_the_mount_directory_of_v1_is_read_only(v1: KernelHost) -> None:
    """Groups can be made in hierarchies, not beside them, and access(2) says so."""
    assert refusal(v1.mkdir, at("more")) == "EROFS"
    assert not v1.access(at(), os.W_OK)
    assert v1.access(at("cpuset"), os.W_OK)
    assert not v1.access(at("absent"), os.R_OK)


def test_a_hierarchy_root_cannot_be_removed(v1: KernelHost) -> None:
    """Rmdir of a mount point is EBUSY."""
    assert refusal(v1.rmdir, at("cpuset")) == "EBUSY"


def test_paths_fail_as_the_kernel_says(v2: KernelHost) -> None:
    """Missing names, files used as directories and directories used as files are told apart."""
    assert refusal(v2.read, at("absent")) == "ENOENT"
    assert refusal(v2.read, at("cgroup.procs", "x")) == "ENOTDIR"
    assert refusal(v2.read, at()) == "EISDIR"
    assert refusal(v2.list, at("cgroup.procs")) == "ENOTDIR"
    assert refusal(v2.write, v2.sys("devices/system/cpu/possible"), b"0") == "EACCES"


def test_a_write_longer_than_a_page_is_too_big(v2: KernelHost) -> None:
    """One write takes a page, the masks of cpuset take more."""
    v2.mkdir(at("a"))

    assert refusal(v2.write, at("a", "cpu.max"), b"1" * 4097) == "E2BIG"
    assert refusal(v2.write, at("a", "cpuset.cpus"), b"0," * 4000) == "ok"


def test_handles_die_with_their_group(v2: KernelHost) -> None:
    """Pread on a file of a removed group is ENODEV; handles that are not closed can be counted."""
    v2.mkdir(at("a"))
    handle = v2.open(at("a", "cpu.max"))
    before = v2.pread(handle, 3)
    v2.rmdir(at("a"))

    with pytest.raises(OSError, match="No such device"):
        v2.pread(handle, 3)
    assert (before, v2.open_handles) == (b"max", 1)
    v2.close(handle)
    assert v2.open_handles == 0


def test_calls_are_logged_in_order_with_their_outcome(v2: KernelHost) -> None:
    """The log has every write, mkdir and rmdir, refused ones with their errno."""
    v2.mkdir(at("a"))
    refusal(v2.write, at("a", "cpu.weight"), b"0")
    v2.write(at("a", "cpu.weight"), b"50\n")

    assert [call.kind for call in v2.calls] == ["mkdir", "write", "write"]
    assert [call.errno for call in v2.writes] == [errno.ERANGE, 0]
    assert [call.text for call in v2.writes] == ["0", "50\n"]


def test_an_injected_refusal_lasts_as_often_as_told(v2: KernelHost) -> None:
    """``refuse`` fails the next writes to one path and changes nothing else."""
    v2.mkdir(at("a"))
    v2.refuse(at("a", "cpu.weight"), errno.EIO, times=2)
    outcomes = [refusal(v2.write, at("a", "cpu.weight"), b"50") for _ in range(3)]

    assert outcomes == ["EIO", "EIO", "ok"]
    assert refusal(v2.read, at("a", "cpu.weight")) == "ok"


def test_a_process_is_in_one_group_of_every_hierarchy(v1: KernelHost) -> None:
    """/proc/<pid>/cgroup names the groups, and the pid is in their process lists."""
    for controller in ("cpu", "memory"):
        v1.mkdir(at(controller, "a"))
    pid = v1.spawn(at("cpu", "a"), at("memory", "a"))
    lines = v1.text(v1.proc(str(pid), "cgroup")).splitlines()

    assert {"2:cpu,cpuacct:/a", "3:memory:/a", "1:cpuset:/"} <= set(lines)
    assert [pid] == v1.pids(at("cpu", "a"))
    v1.exit(pid)
    assert v1.pids(at("cpu", "a")) == []
    assert not v1.exists(v1.proc(str(pid)))


def test_a_refused_spawn_leaves_no_process(v1: KernelHost) -> None:
    """Spawning into an empty v1 cpuset fails with ENOSPC and nothing is left behind."""
    v1.mkdir(at("cpuset", "a"))
    before = v1.list(v1.proc())

    assert refusal(v1.spawn, at("cpuset", "a")) == "ENOSPC"
    assert before == v1.list(v1.proc())


def test_status_shows_the_cpus_of_a_process(v2: KernelHost) -> None:
    """``Cpus_allowed_list`` follows the cpuset."""
    v2.mkdir(at("a"))
    v2.write(at("a", "cpuset.cpus"), b"1-2")
    pid = v2.spawn(at("a"))

    assert "Cpus_allowed_list:\t1-2\n" in v2.text(v2.proc(str(pid), "status"))
    assert CPUSet.parse("1-2") == v2.affinity(pid)


@pytest.mark.parametrize(("kernel", "left"), [((6, 1), "4-6"), ((6, 18), "5")])
def test_the_wish_of_a_process_lasts_from_kernel_6_2_on(kernel: tuple[int, int], left: str) -> None:
    """A cpuset write overwrites sched_setaffinity up to 6.1 and intersects with it later."""
    host = Machine(nodes=NODES, cgroup="v2", kernel=kernel)
    host.mkdir(at("a"))
    pid = host.spawn(at("a"))
    host.pin(pid, CPUSet.parse("0,5"))
    host.write(at("a", "cpuset.cpus"), b"4-6")

    assert CPUSet.parse(left) == host.affinity(pid)


def test_hotplug_shows_in_sysfs(v2: KernelHost) -> None:
    """An offline CPU leaves the lists and loses topology and caches; both come back with it."""
    cpu = v2.sys("devices", "system", "cpu")
    v2.write(v2.below(cpu, "cpu7", "online"), b"0\n")
    gone = (v2.text(v2.below(cpu, "online")), v2.text(v2.below(cpu, "offline")))

    assert gone == ("0-6\n", "7\n")
    assert not v2.exists(v2.below(cpu, "cpu7", "topology"))
    assert v2.text(v2.sys("devices", "system", "node", "node1", "cpulist")) == "4-6\n"
    assert not v2.exists(v2.below(cpu, "cpu0", "online"))
    v2.set_online(7, online=True)
    assert v2.text(v2.below(cpu, "online")) == "0-7\n"
    assert v2.exists(v2.below(cpu, "cpu7", "topology", "core_id"))


def test_a_cpu_that_is_not_present_cannot_go_online() -> None:
    """Possible is not present: the switch does not exist and set_online refuses."""
    host = Machine("0-5", possible="0-7", present="0-5")

    assert refusal(host.write, host.sys("devices/system/cpu/cpu7/online"), b"1") == "ENOENT"
    with pytest.raises(ValueError, match="not present"):
        host.set_online(7, online=True)


def test_a_node_without_memory_is_refused_by_v1_and_taken_by_v2() -> None:
    """v1 wants nodes with memory; v2 takes any possible node and falls back to the parent's."""
    old = Machine(nodes=NODES, memory_nodes="0")
    old.mkdir(at("cpuset", "a"))
    new = Machine(nodes=NODES, memory_nodes="0", cgroup="v2")
    new.mkdir(at("a"))

    assert refusal(old.write, at("cpuset", "a", "cpuset.mems"), b"0-1") == "EINVAL"
    assert refusal(new.write, at("a", "cpuset.mems"), b"1") == "ok"
    assert new.text(at("a", "cpuset.mems.effective")) == "0\n"


def test_hybrid_has_v1_controllers_beside_an_empty_v2() -> None:
    """The unified hierarchy of a hybrid machine has groups and processes but no controllers."""
    host = Machine(cgroup="hybrid", joined=False)
    host.mkdir(at("unified", "a"))
    pid = host.spawn(at("unified", "a"))

    assert host.text(at("unified", "cgroup.controllers")) == "\n"
    assert "0::/a\n" in host.text(host.proc(str(pid), "cgroup"))
    assert "cgroup2 cgroup2" in host.text(host.proc("self", "mountinfo"))
    assert host.exists(at("cpuacct", "tasks"))


def test_memory_max_below_use_kills_only_as_many_as_needed(v2: KernelHost) -> None:
    """The largest process dies first, the count of kills is told, the rest stays."""
    v2.mkdir(at("a"))
    small = v2.spawn(at("a"), memory=1 << 20)
    large = v2.spawn(at("a"), memory=8 << 20)
    v2.write(at("a", "memory.max"), b"4M")

    assert (v2.alive(small), v2.alive(large)) == (True, False)
    assert "oom_kill 1\n" in v2.text(at("a", "memory.events"))
    assert f"{1 << 20}\n" == v2.text(at("a", "memory.current"))


def test_siblings_are_numbered_as_asked() -> None:
    """Threads are neighbours, or follow after all first threads as on servers."""
    place = "devices/system/cpu/cpu1/topology/thread_siblings_list"
    near = Machine(nodes=NODES, threads=2)
    split = Machine("0-15", {0: "0-3,8-11", 1: "4-7,12-15"}, threads=2, split=True)

    assert near.text(near.sys(place)) == "0-1\n"
    assert split.text(split.sys(place)) == "1,9\n"


def test_nothing_else_can_be_mounted(v2: KernelHost) -> None:
    """Unknown file systems are ENODEV."""
    assert refusal(v2.mount, "resctrl", at("x"), "resctrl", "") == "ENODEV"
    assert refusal(v2.unmount, at("x")) == "EINVAL"
    assert v2.statvfs(at()).f_bavail > 0
