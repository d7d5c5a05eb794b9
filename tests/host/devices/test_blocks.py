"""Block devices as the kernel lists them."""

from __future__ import annotations

from koordlet.host.cgroup import hierarchies
from koordlet.host.devices import blocks
from koordlet.model import blocks as shape
from koordlet.model import cgroup
from tests.kit import machines

UID = "0f1e2d3c-0000-4000-8000-000000000001"
STATS = """\
   8       0 sda 1 2 3
   8       1 sda1 1 2 3
 253       0 dm-0 1 2 3
 bad line
   8       x sdz 0
"""
MOUNTS = f"""\
20 1 8:1 / / rw - ext4 /dev/sda1 rw
21 20 253:0 / /var/lib/kubelet/pods/{UID}/volumes/kubernetes.io~csi/pvc-7/mount rw - ext4 x rw
22 20 8:1 / /var/lib/kubelet/pods/{UID}/volumes/kubernetes.io~local-volume/fast rw - ext4 x rw
23 20 0:40 / /var/lib/kubelet/pods/{UID}/volume-subpaths/pvc-7/x/0 rw - tmpfs x rw
"""
SYS = "sys/devices/pci0000:00/0000:00:01.0/block/sda"
TREE: machines.Tree = {
    "proc/diskstats": STATS,
    "proc/1/mountinfo": MOUNTS,
    f"{SYS}/sda1/partition": "1\n",
    "sys/class/block/sda": f"->../../{SYS.removeprefix('sys/')}",
    "sys/class/block/sda1": f"->../../{SYS.removeprefix('sys/')}/sda1",
    "sys/class/block/dm-0": "->../../devices/virtual/block/dm-0",
    "sys/devices/virtual/block/dm-0/dm/name": "fast-data\n",
    "sys/devices/virtual/block/dm-0/dm/uuid": "LVM-abc\n",
    "sys/devices/virtual/block/dm-0/slaves/sda1": "->../../../../x",
}


def test_devices_partitions_and_volumes() -> None:
    """Numbers, what lies on what, and which pod has mounted it."""
    known = blocks.read(machines.to_host(TREE), cgroup.Layout())

    assert known.find("device", "/dev/sda1") == ("8:0",)
    assert known.find("volumegroup", "fast") == ("8:0",)
    assert known.find("podvolume", "pvc-7", UID) == ("253:0",)
    assert known.find("podvolume", "fast", UID) == ("8:0",)
    assert [device.name for device in known.devices] == ["sda", "sda1", "dm-0"]


def test_a_machine_that_says_nothing_has_none() -> None:
    """No lists, no sysfs: no devices, and no error."""
    assert shape.Blocks() == blocks.read(machines.to_host({"proc/stat": ""}), cgroup.Layout())


def test_without_sysfs_a_device_is_still_known_by_its_name() -> None:
    """A recording has the numbers only."""
    known = blocks.read(machines.to_host({"proc/diskstats": STATS}), cgroup.Layout())

    assert known.find("device", "sda1") == ("8:1",)


def test_files_of_the_cost_model() -> None:
    """On the root group of v2, where the kernel has them."""
    tree = {
        "proc/self/mountinfo": "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        "sys/fs/cgroup/cgroup.controllers": "cpuset io\n",
        "sys/fs/cgroup/io.cost.qos": "",
    }
    host = machines.to_host(tree)

    assert blocks.read(host, hierarchies.discover(host)).cost_files == {"io.cost.qos"}
