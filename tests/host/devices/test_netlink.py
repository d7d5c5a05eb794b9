"""NICs that sysfs does not name are named by the kernel's list of links, on the live host only."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from koordlet.host.devices import netlink
from koordlet.host.fs import root
from koordlet.host.recording import archive
from koordlet.model import topology
from tests.kit import machines

LINKS = (
    netlink.NetworkInterface("eth1", "pci", "0000:01:00.0"),
    netlink.NetworkInterface("eth0", "pci", "0000:01:00.0"),
    netlink.NetworkInterface("eth7", "virtio", "virtio1"),
    netlink.NetworkInterface("eth8", "usb", "2-1"),
)


class Live(archive.ArchiveHost):
    """Files in memory that pass for this host's."""

    live = True


def host() -> root.HostRoot:
    """A host that knows where a virtio device is."""
    way = "->../../../devices/pci0000:00/0000:02:00.0/virtio1"
    return Live(machines.to_index({"sys/bus/virtio/devices/virtio1": way}))


def nic(address: str, driver: str | None = "ice", name: str | None = None) -> topology.Device:
    """A NIC."""
    return topology.Device(
        address=address, device_class="0x020000", kind="network", driver=driver, name=name
    )


def names(*devices: topology.Device) -> list[str | None]:
    """Their names after asking."""
    machine = netlink.complete(host(), topology.Topology(devices=devices), lambda: LINKS)
    return [device.name for device in machine.devices]


def test_missing_names_are_found() -> None:
    """A nameless NIC gets all names of its address, also behind virtio."""
    assert names(nic("0000:01:00.0"), nic("0000:02:00.0")) == ["eth0,eth1", "eth7"]


def test_known_names_stay() -> None:
    """What sysfs says is not changed."""
    assert names(nic("0000:01:00.0", name="lan"), nic("0000:02:00.0")) == ["lan", "eth7"]


@pytest.mark.parametrize("driver", ["vfio-pci", None])
def test_device_that_is_lent_is_not_asked_for(driver: str | None) -> None:
    """A NIC that nobody drives, or a virtual machine does, costs no question."""

    def never() -> Iterator[netlink.NetworkInterface]:
        msg = "asked"
        raise AssertionError(msg)

    machine = topology.Topology(devices=(nic("0000:01:00.0", driver),))

    assert machine is netlink.complete(host(), machine, never)


def test_recording_is_never_completed() -> None:
    """The links of this host are not those of a recorded one."""
    machine = topology.Topology(devices=(nic("0000:01:00.0"),))

    assert machine is netlink.complete(machines.to_host({}), machine, lambda: LINKS)


def test_links_of_this_host() -> None:
    """The kernel answers, and every link has a name and a parent."""
    assert all(link.name and link.parent for link in netlink.links())
