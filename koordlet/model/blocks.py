"""Block devices: device names in limits, resolved to the kernel's numbers.

Covers: devices, partitions, volume groups, volumes of pods, to whole devices.
Does not cover: reading them (``host.devices.blocks``), limits (``policy.memory_io.blkio_qos``).

Kernel fact: limits are of whole devices; a partition is refused (ENODEV, ``blkg_conf_prep``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block device."""

    #: As below ``/sys/class/block``: ``sda``, ``sda1``, ``dm-0``.
    name: str
    #: ``MAJOR:MINOR``.
    number: str
    #: Of a partition, the device that it is part of.
    disk: str = ""
    #: What device mapper calls it (``/dev/mapper/NAME``).
    mapped: str = ""
    #: The LVM volume group that it is a volume of.
    volume_group: str = ""
    #: Names of the devices that it lies on.
    below: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """All block devices of one machine."""

    devices: tuple[Block, ...] = ()
    #: Pod UID and name of the volume's directory to the number of what is mounted there.
    volumes: Mapping[tuple[str, str], str] = field(default_factory=dict)
    #: Files of the cost model that this kernel has on its root group.
    cost_files: frozenset[str] = frozenset()

    def find(self, kind: str, name: str, uid: str = "") -> tuple[str, ...]:
        """Numbers of the whole devices behind a name, in order; empty where there are none."""
        if kind == "volumegroup":
            tops = (device.name for device in self.devices if name and device.volume_group == name)
            disks = {disk.number for top in tops for disk in self._bottom(top)}
        elif kind == "podvolume":
            number = self.volumes.get((uid, name))
            mounted = (device for device in self.devices if device.number == number)
            disks = {self._whole(device).number for device in mounted}
        else:
            short = name.removeprefix("/dev/").removeprefix("mapper/")
            disks = {
                self._whole(device).number
                for device in self.devices
                if short in (device.name, device.mapped, device.number)
            }
        return tuple(sorted(disks, key=_by_number))

    def _named(self, name: str) -> Block | None:
        return next((device for device in self.devices if device.name == name), None)

    def _whole(self, block: Block) -> Block:
        return (self._named(block.disk) if block.disk else None) or block

    def _bottom(self, name: str, depth: int = 0) -> Iterator[Block]:
        """The whole devices at the bottom of a stack of mapped ones."""
        block = self._named(name)
        if block is None or depth > len(self.devices):
            return
        if not block.below:
            yield self._whole(block)
        for under in block.below:
            yield from self._bottom(under, depth + 1)


def volume_group(mapped: str, uuid: str) -> str:
    """The group of a logical volume; empty for what is none.

    LVM joins the names with a dash, and doubles those that were there.
    """
    if not uuid.startswith("LVM-"):
        return ""
    group = mapped.replace("--", "\0").partition("-")[0]
    return group.replace("\0", "-")


def _by_number(number: str) -> tuple[int, ...]:
    return tuple(int(part) for part in number.split(":") if part.isdigit())
