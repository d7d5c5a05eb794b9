"""Hierarchies from mountinfo, groups as they are, and groups that are not there any more."""

from __future__ import annotations

import sys

import pytest

from koordlet.host.cgroup import hierarchies, tree
from koordlet.model import absence, cgroup
from tests.kit.kernel import KernelHost, Machine
from tests.kit.kernel.machine import Cgroup

LINE = "30 25 0:26 / {mount} {flags} shared:9 - {kind} {kind} {options}"


class Mounts(KernelHost):
    """A machine whose mountinfo a test writes."""

    lines: tuple[str, ...] = ()

    def read(self, path: str) -> bytes:
        """Mountinfo is what the test says."""
        if path.endswith("/self/mountinfo"):
            return "\n".join(self.lines).encode()
        return super().read(self.at(path))


def layout(*lines: str) -> cgroup.Layout:
    """What is found in these lines of mountinfo."""
    base = Machine("0-1", cgroup="v2")
    host = Mounts(base.machine, base.tree, base.hierarchies)
    host.lines = lines
    return hierarchies.discover(host)


def line(mount: str, kind: str, options: str, flags: str = "rw,relatime") -> str:
    """One mount."""
    return LINE.format(mount=mount, kind=kind, options=options, flags=flags)


def shown(mounted: cgroup.Layout) -> list[tuple[str, str, bool]]:
    """Mount, controllers and whether it may be written."""
    return [(h.mount, ",".join(sorted(h.controllers)), h.writable) for h in mounted.hierarchies]


def test_v1_mounts() -> None:
    """Controllers are the words of a v1 mount; a hierarchy without any has nothing to control."""
    mounted = layout(
        line("/sys/fs/cgroup/cpu,cpuacct", "cgroup", "rw,cpu,cpuacct"),
        line("/sys/fs/cgroup/systemd", "cgroup", "rw,xattr,name=systemd"),
        line("/sys/fs/cgroup/memory", "cgroup", "ro,memory"),
        line("/sys/fs/cgroup/pids", "cgroup", "rw,pids", flags="ro"),
        line("/proc", "proc", "rw"),
    )

    assert shown(mounted) == [
        ("/sys/fs/cgroup/cpu,cpuacct", "cpu,cpuacct", True),
        ("/sys/fs/cgroup/memory", "memory", False),
        ("/sys/fs/cgroup/pids", "pids", False),
    ]


def test_a_hierarchy_that_is_mounted_twice() -> None:
    """What is below the usual place wins, wherever it stands in the list."""
    usual = line("/sys/fs/cgroup/cpu", "cgroup", "rw,cpu")
    other = line("/mnt/cpu", "cgroup", "rw,cpu")

    assert [h.mount for h in layout(usual, other).hierarchies] == ["/sys/fs/cgroup/cpu"]
    assert [h.mount for h in layout(other, usual).hierarchies] == ["/sys/fs/cgroup/cpu"]


def test_names_with_blanks() -> None:
    """Mountinfo writes blanks as octal numbers."""
    assert [h.mount for h in layout(line(r"/a\040b", "cgroup", "cpu")).hierarchies] == ["/a b"]


@pytest.mark.parametrize("text", ["", "x", " - ", "a b c - cgroup", "30 25 0:26 / /m rw - cgroup2"])
def test_damaged_lines_are_no_mounts(text: str) -> None:
    """What is not a whole line is skipped."""
    assert layout(text).hierarchies == ()


@pytest.mark.parametrize(
    ("version", "expected"), [("v1", "v1"), ("v2", "v2"), ("hybrid", "hybrid")]
)
def test_real_layouts(version: Cgroup, expected: str) -> None:
    """Each way of mounting is recognised."""
    host = Machine("0-1", cgroup=version)

    assert expected == hierarchies.discover(host).version.value


def reader(host: KernelHost) -> tree.CgroupReader:
    """A reader of what is mounted."""
    return tree.CgroupReader(host, hierarchies.discover(host))


def test_a_group_that_vanished_is_a_value() -> None:
    """Reading a group that is not there says that it is gone; the others are read."""
    host = Machine("0-1", cgroup="v2")
    host.mkdir(host.at("/sys/fs/cgroup/a"))
    look = reader(host)

    assert absence.Gone("b") == look.read("b")
    assert list(look.read_all(["a", "b", "a"])) == ["a"]


def test_a_group_made_anew_has_another_identity() -> None:
    """The same path with another inode is another group, with its own values."""
    host = Machine("0-1", cgroup="v2")
    directory = host.at("/sys/fs/cgroup/a")
    host.mkdir(directory)
    host.write(host.at(f"{directory}/cpuset.cpus"), b"0")
    look = reader(host)
    first = look.read_all(["a"])["a"]
    host.rmdir(directory)
    host.mkdir(directory)
    second = look.read_all(["a"])["a"]

    assert first.inode != second.inode
    assert (first.values["cpuset.cpus"], second.values["cpuset.cpus"]) == ("0", "")


def test_changes_between_passes_are_seen() -> None:
    """Also without a full look, a set that somebody changed is read as it is."""
    host = Machine("0-3")
    directory = host.at("/sys/fs/cgroup/cpuset/a")
    host.mkdir(directory)
    look = reader(host)
    for cpus in ("0", "1-2", "0-3"):
        host.write(host.at(f"{directory}/cpuset.cpus"), cpus.encode())
        assert cpus == look.read_all(["a"])["a"].values["cpuset.cpus"]


def test_groups_that_say_the_same_share_its_text() -> None:
    """It is freed with them: what ``sys.intern`` takes stays for ever in Python 3.12."""
    host = Machine("0-1", cgroup="v2")
    for name in ("a", "b"):
        host.mkdir(host.at(f"/sys/fs/cgroup/{name}"))
        host.write(host.at(f"/sys/fs/cgroup/{name}/cpuset.cpus"), b"0-1")
    groups = reader(host).read_all(["a", "b"])
    texts = [group.values["cpuset.cpus"] for group in groups.values()]

    assert texts[0] is texts[1]
    assert sys.intern("".join(texts[0])) is not texts[0]
