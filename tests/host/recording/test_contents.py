"""A recording holds what the agent reads, in full, and nothing that is nobody's business."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from koordlet.host import machine
from koordlet.host.fs import root
from koordlet.host.recording import contents, directory, frames, redaction
from koordlet.host.topology import discovery
from tests.kit import machines

MOUNTINFO = (
    "23 27 0:22 / /sys rw,relatime - sysfs sysfs rw\n"
    "30 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
    "31 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
    "90 27 0:90 / /mnt/share rw - cifs //server/share rw,username=me,password=hunter2\n"
)


def tree() -> machines.Tree:
    """A machine with groups, a NIC, a GPU, and things that nobody should record."""
    group = "sys/fs/cgroup/cpu,cpuacct"
    made = machines.xeon_2s_smt2()
    made |= {
        "proc/self/mountinfo": MOUNTINFO,
        "proc/cmdline": "root=/dev/vda isolcpus=2,10 token=hunter2 nohz_full=2 -- --key=hunter2\n",
        "proc/sys/kernel/random/boot_id": "6dba9ca6-0000-4000-8000-000000000001\n",
        "proc/sys/kernel/hostname": "hunter2\n",
        "proc/self/environ": "SECRET=hunter2\0",
        "proc/meminfo": "MemTotal: 1 kB\n",
        "etc/machine-id": "hunter2\n",
        f"{group}/cpu.shares": "1024\n",
        f"{group}/cgroup.procs": "1\n",
        f"{group}/pod.slice/box.scope/cpu.shares": "2\n",
        f"{group}/pod.slice/box.scope/notes.txt": "hunter2\n",
        "sys/fs/cgroup/cpu": "->cpu,cpuacct",
        "sys/fs/resctrl/schemata": "L3:0=fff\n",
        "sys/devices/system/cpu/cpufreq/boost": "1\n",
        "sys/devices/system/cpu/intel_pstate/no_turbo": "0\n",
        "sys/devices/system/cpu/intel_pstate/turbo_pct": "hunter2\n",
        "sys/devices/system/cpu/cpu0/topology/ppin": "hunter2\n",
        "sys/devices/system/cpu/cpu0/crash_notes": "hunter2\n",
        "sys/devices/system/cpu/cpu0/node0": "->../../node/node0",
        "sys/class/net/eth0": "->../../devices/pci0000:00/0000:00:01.0/net/eth0",
        "sys/class/net/bad": "->../../../../../etc",
        "sys/devices/pci0000:00/0000:00:01.0/net/eth0/mtu": "1500\n",
        "sys/devices/pci0000:00/0000:00:01.0/net/eth0/address": "hunter2\n",
        "sys/devices/pci0000:00/0000:00:01.0/net/eth0/device": "->../../../0000:00:01.0",
        "sys/devices/pci0000:00/0000:00:01.0/numa_node": "1\n",
        "sys/bus/pci/devices/0000:00:01.0": "->../../../devices/pci0000:00/0000:00:01.0",
    }
    return made


@pytest.fixture
def host(tmp_path: Path) -> root.HostRoot:
    """That machine as a recorded directory."""
    return directory.DirHost(str(machines.to_directory(tree(), tmp_path)))


def recorded(host: root.HostRoot) -> dict[str, bytes | str]:
    """Path to content, or to the text of a link."""
    return {
        item.path: item.data if item.link is None else item.link for item in contents.items(host)
    }


def test_what_the_agent_reads_is_there(host: root.HostRoot) -> None:
    """Topology, groups of any depth, resctrl, network and PCI nodes are recorded."""
    files = recorded(host)

    for path in (
        "/sys/devices/system/cpu/online",
        "/sys/devices/system/cpu/cpufreq/boost",
        "/sys/devices/system/cpu/intel_pstate/no_turbo",
        "/sys/devices/system/cpu/cpu3/topology/core_cpus_list",
        "/sys/devices/system/node/node1/distance",
        "/sys/fs/cgroup/cpu,cpuacct/pod.slice/box.scope/cpu.shares",
        "/sys/fs/resctrl/schemata",
        "/sys/devices/pci0000:00/0000:00:01.0/net/eth0/mtu",
        "/sys/devices/pci0000:00/0000:00:01.0/numa_node",
        "/proc/meminfo",
    ):
        assert isinstance(files[path], bytes), path
    assert files["/sys/fs/cgroup/cpu"] == "cpu,cpuacct"
    assert files["/sys/devices/system/cpu/cpu0/node0"] == "../../node/node0"


def test_topology_of_a_recording_is_that_of_the_machine(
    host: root.HostRoot, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Nothing that discovery reads is missing from a recording."""
    again = {
        path.lstrip("/"): f"->{content}" if isinstance(content, str) else content.decode()
        for path, content in recorded(host).items()
    }
    copy = machines.to_directory(again, tmp_path_factory.mktemp("copy"))

    assert discovery.discover(host) == discovery.discover(directory.DirHost(str(copy)))


def test_nothing_secret_is_there(host: root.HostRoot) -> None:
    """No environment, no host name, no password of a mount, no serial number, no address."""
    files = recorded(host)

    assert not [path for path, content in files.items() if "hunter2" in str(content)]
    assert "/proc/self/environ" not in files


def test_link_that_leads_out_is_left(host: root.HostRoot) -> None:
    """A link that would climb out of the recorded tree is not recorded."""
    assert "/sys/class/net/bad" not in recorded(host)
    assert "/sys/class/net/eth0" in recorded(host)


def test_boot_parameters_are_allowed_by_name() -> None:
    """Only parameters that are known to be harmless stay, with harmless values."""
    line = b"BOOT_IMAGE=/v isolcpus=domain,2-3 nohz-full=2 psi=1 nosmt isolcpus=$(x) token=1\n"

    kept = redaction.redact("/proc/cmdline", line)

    assert kept == b"isolcpus=domain,2-3 nohz-full=2 psi=1 nosmt\n"


def test_mounts_keep_their_shape() -> None:
    """Every mount stays a line; only the kernel's own keep source and options."""
    kept = redaction.redact("/proc/self/mountinfo", MOUNTINFO.encode()).decode().splitlines()

    assert MOUNTINFO.splitlines()[:3] == kept[:3]
    assert kept[3] == "27 1 254:0 / / rw,relatime - ext4 redacted rw"
    assert kept[4] == "90 27 0:90 / /mnt/share rw - cifs redacted rw"


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        (b"Serial\t\t: 10000000abcdef\n", b"Serial\t\t: 0\n"),
        (b"processor 0: version = 00,  identification = 279F25,  machine = 2817\n",
         b"processor 0: version = 00,  identification = 0,  machine = 2817\n"),
        (b"model name\t: X\n", b"model name\t: X\n"),
    ],
)  # fmt: skip
def test_serial_numbers_are_zeros(line: bytes, kept: bytes) -> None:
    """Serial numbers of boards and of s390 processors go."""
    assert kept == redaction.redact("/proc/cpuinfo", line)


# Frames -----------------------------------------------------------------------------------------


def item(path: str, data: bytes, link: str | None = None) -> contents.Item:
    """One item."""
    return contents.Item(root.HostPath(path), data, link)


def changes(*readings: list[contents.Item]) -> list[dict[str, object]]:
    """What the last reading adds to those before it."""
    memory = frames.FrameDigests()
    list(memory.first(readings[0]))
    lines: list[dict[str, object]] = []
    for reading in readings[1:]:
        lines = list(memory.changes(reading))
    return lines


def test_only_changes_are_in_a_frame() -> None:
    """Changed, new and vanished files, nothing else."""
    before = [item("/a", b"1"), item("/b", b"1"), item("/c", b"1")]
    after = [item("/a", b"1"), item("/b", b"2"), item("/d", b"\xff"), item("/e", b"", "a")]

    assert changes(before, after) == [
        {"path": "/b", "text": "2"},
        {"path": "/d", "base64": "/w=="},
        {"path": "/e", "link": "a"},
        {"path": "/c", "gone": True},
    ]


def test_change_back_is_a_change() -> None:
    """Each frame is compared with the one before it, not with the first."""
    first, two = [item("/a", b"1")], [item("/a", b"2")]

    assert changes(first, two, first) == [{"path": "/a", "text": "1"}]
    assert changes(first, two, two) == []


def test_frame_says_when() -> None:
    """The first line of a frame has both clocks."""
    lines = frames.frame(3, machine.Now(at=1.5, wall=1e9), [{"path": "/a", "gone": True}])

    assert [json.loads(line) for line in lines.splitlines()] == [
        {"frame": 3, "monotonic": 1.5, "wall": 1e9},
        {"path": "/a", "gone": True},
    ]


def test_manifest_says_what_was_left_out(host: root.HostRoot) -> None:
    """The manifest names the format, the host's facts and every redaction."""
    document = json.loads(frames.manifest(host, frames=2, files=7))

    assert document["format"] == "koordlet-recording/v1"
    assert document["host"]["cpus_online"] == "0-15"
    assert list(redaction.RULES) == document["redactions"]


def test_unreadable_tree_is_an_empty_recording(tmp_path: Path) -> None:
    """Where nothing can be read, nothing is recorded, and nothing raises."""
    assert recorded(directory.DirHost(str(tmp_path))) == {}
