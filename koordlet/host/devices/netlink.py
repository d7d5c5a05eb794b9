"""Names of network devices from the kernel's own list of links, where sysfs does not say them.

Covers: NICs of this host whose ``/sys/class/net`` entry is not to be seen, as where sysfs is that
of another network namespace. Does not cover: queueing (``apply.network``).

Kernel fact: a link tells its parent device since 5.14 (``IFLA_PARENT_DEV_NAME``); behind virtio
that is ``virtio1``, whose place on the PCI bus sysfs knows.

Cost: importing pyroute2 takes 150 ms and 25 MB, so only commands ask, and only where a NIC that a
driver holds for the network has no name. Without pyroute2 the NIC stays nameless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from koordlet.host.fs import root
from koordlet.host.topology import devices
from koordlet.model import topology
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True)
class NetworkInterface:
    """A network interface and the device that it belongs to, as the kernel tells."""

    name: str
    bus: str
    parent: str


def links() -> Iterator[NetworkInterface]:
    """The links of this network namespace that have a device; none without pyroute2."""
    try:
        # Late: 150 ms, and it is optional.
        import pyroute2  # type: ignore[import-untyped]  # noqa: PLC0415
    except ImportError:
        return
    try:
        with pyroute2.IPRoute() as route:
            for link in route.get_links():
                attributes = dict(link["attrs"])
                parent = attributes.get("IFLA_PARENT_DEV_NAME")
                if parent:
                    bus = attributes.get("IFLA_PARENT_DEV_BUS_NAME", "")
                    yield NetworkInterface(attributes["IFLA_IFNAME"], bus, parent)
    except (OSError, pyroute2.NetlinkError):
        # A sandbox without netlink: the names stay unknown, and nothing else depends on them.
        return


def complete(
    host: root.HostRoot,
    machine: topology.Topology,
    ask: Callable[[], Iterable[NetworkInterface]] = links,
) -> topology.Topology:
    """The machine with the names that were missing; unchanged if none was, or if recorded."""
    if not host.live or not any(_nameless(device) for device in machine.devices):
        return machine
    names: dict[str, list[str]] = {}
    for link in ask():
        address = _address(host, link)
        if address is not None:
            names.setdefault(address, []).append(link.name)
    return replace(
        machine,
        devices=tuple(
            replace(device, name=",".join(sorted(names[device.address])))
            if _nameless(device) and device.address in names
            else device
            for device in machine.devices
        ),
    )


def _nameless(device: topology.Device) -> bool:
    """True if the kernel should know a name. A device lent to a virtual machine has none."""
    driven = device.driver is not None and not device.driver.startswith("vfio")
    return device.kind == "network" and device.name is None and driven


def _address(host: root.HostRoot, link: NetworkInterface) -> str | None:
    if link.bus == "pci":
        return link.parent
    try:
        steps = host.readlink(host.sys("bus", link.bus, "devices", link.parent))
    except OSError:
        return None
    return devices.nearest(steps)
