"""Files that not every kernel has."""

from __future__ import annotations

import pytest

from koordlet.host.cgroup import hierarchies
from koordlet.model import cgroup, knob
from tests.kit import machines
from tests.kit.kernel import Machine
from tests.kit.kernel.machine import Cgroup


def layout(version: Cgroup, *groups: str) -> cgroup.Layout:
    """What is found on a machine with these groups, in every hierarchy."""
    host = Machine("0-1", cgroup=version)
    for hierarchy in hierarchies.discover(host).hierarchies:
        if hierarchy.unified:
            host.write(host.at(f"{hierarchy.mount}/cgroup.subtree_control"), b"+cpu +memory")
        for group in groups:
            host.mkdir(host.at(hierarchy.directory(group)))
    return hierarchies.discover(host)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_files_of_other_makers_kernels(version: Cgroup) -> None:
    """They are missing, and why is said; what this kernel has is there."""
    machine_layout = layout(version, "web")

    assert machine_layout.file(knob.CPU_BVT, "web") is None
    gap = machine_layout.why_not(knob.CPU_BVT)
    assert gap is not None
    assert gap.why == "this kernel has no cpu.bvt_warp_ns (since Alibaba Cloud Linux)"
    idle = machine_layout.file(knob.CPU_IDLE, "web")
    assert idle is not None
    assert machine_layout.why_not(knob.CPU_IDLE) is None


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_without_any_group(version: Cgroup) -> None:
    """The root has few files, so only what other makers added is taken as missing."""
    machine_layout = layout(version)

    assert machine_layout.file(knob.CPU_BVT, "web") is None
    assert machine_layout.file(knob.CPU_IDLE, "web") is not None


@pytest.mark.parametrize(
    ("version", "kernel", "takes"),
    [("v2", (6, 19), False), ("v2", (7, 0), True), ("v2", (10, 1), True), ("v1", (7, 0), False)],
)
def test_sets_that_may_be_empty(version: Cgroup, kernel: tuple[int, int], *, takes: bool) -> None:
    """By the kernel's version, on v2; one that does not say which it is counts as old."""
    host = Machine("0-1", cgroup=version, kernel=kernel)
    holder = hierarchies.discover(host).holder("cpuset")
    host.tree.text("/proc/sys/kernel/osrelease", "a kernel of its own\n")
    silent = hierarchies.discover(host).holder("cpuset")

    assert holder is not None
    assert silent is not None
    assert (takes, False) == (holder.empty_sets, silent.empty_sets)


def test_a_controller_that_nobody_handed_down() -> None:
    """A group without its files says nothing about the kernel."""
    host = Machine("0-1", cgroup="v2", passed_down=())
    top = hierarchies.discover(host).hierarchies[0].mount
    host.mkdir(host.at(f"{top}/web"))

    assert hierarchies.discover(host).file(knob.CPU_BURST, "web") is not None


def _mounted(*lines: tuple[str, str, str]) -> list[str]:
    """Where what is found is mounted; a line is (root, mount point, type and options)."""
    text = "".join(
        f"{30 + n} 22 0:26 {top} {at} rw,nosuid,nodev - {kind} cgroup rw,{options}\n"
        for n, (top, at, what) in enumerate(lines)
        for kind, _, options in (what.partition(" "),)
    )
    host = machines.to_host({"proc/self/mountinfo": text})
    return [hierarchy.mount for hierarchy in hierarchies.discover(host).hierarchies]


@pytest.mark.parametrize("what", ["cgroup cpuset", "cgroup2 nsdelegate"])
def test_a_part_bound_to_its_own_place_hides_nothing(what: str) -> None:
    """As kind does with the kubelet's group: the node is still the mount around it."""
    assert _mounted(
        ("/docker/c1", "/sys/fs/cgroup/top", what),
        ("/docker/c1/kubelet", "/sys/fs/cgroup/top/kubelet", what),
    ) == ["/sys/fs/cgroup/top"]


def test_a_later_mount_on_the_same_place_covers_the_earlier() -> None:
    """The host's tree over the container's own; one elsewhere is only for want of a usual one."""
    assert _mounted(
        ("/", "/run/cilium/cgroupv2", "cgroup2 rw"),
        ("/kubepods/p/c", "/sys/fs/cgroup", "cgroup2 rw"),
        ("/", "/sys/fs/cgroup", "cgroup2 rw"),
        ("/", "/mnt/again", "cgroup2 rw"),
    ) == ["/sys/fs/cgroup"]


def test_what_linux_6_0_says_of_v1_mounts() -> None:
    """``favordynmods`` is no controller, and makes none of systemd's own hierarchy."""
    assert _mounted(
        ("/", "/sys/fs/cgroup/systemd", "cgroup xattr,favordynmods,name=systemd"),
        ("/", "/sys/fs/cgroup/cpuset", "cgroup cpuset,favordynmods"),
    ) == ["/sys/fs/cgroup/cpuset"]


def test_a_cpuset_whose_files_have_other_names_is_refused_by_name() -> None:
    """``mount -t cpuset``, as before cgroups: its files are not missing from this kernel."""
    line = "30 22 0:26 / /dev/cpuset rw - cgroup none rw,cpuset,noprefix,release_agent=/sbin/x\n"
    host = machines.to_host({"proc/self/mountinfo": line})

    gap = hierarchies.discover(host).why_not(knob.CPUSET_CPUS)
    assert gap is not None
    assert gap.why == (
        "/dev/cpuset: mounted with noprefix, so cpuset.cpus is called cpus there; mount it without"
    )


def test_a_root_that_is_not_there_is_named() -> None:
    """A mistyped --cgroup-root is no right that is missing, and not all is as it should be."""
    host = Machine("0-1", cgroup="v2")

    for discovered in (
        hierarchies.discover(host, "kubelte"),
        hierarchies.writable(host, hierarchies.discover(host, "kubelte")),
    ):
        gap = discovered.why_not(knob.CPUSET_CPUS)
        assert gap is not None
        assert gap.why == "/sys/fs/cgroup: the cgroup kubelte does not exist"
