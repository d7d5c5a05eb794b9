"""The PCI devices that work is placed near: graphics, network, storage, accelerators.

Covers: class, driver, NUMA node and the name that people know (``eth0``, ``nvme0``), from sysfs;
memory and identity of GPUs whose driver tells them in a file; RDMA and virtual functions.
Does not cover: bridges, USB and what else boards are made of; links of other network namespaces
(``host.devices.netlink``).

Kernel facts: ``class`` is 24 bits (base, sub, interface; include/linux/pci_ids.h); ``numa_node`` is
-1 where firmware is silent; an entry of ``/sys/class/*`` is a link whose path leads through its PCI
device, also where something is between them (``.../0000:00:03.0/virtio1/net/eth0``). ``virtfnN``
and ``physfn`` link the functions of SR-IOV (Documentation/PCI/pci-iov-howto.rst).
``mem_info_vram_total`` is amdgpu's (Documentation/gpu/amdgpu/driver-misc.rst), and so is
``product_name``, where the board has one; NVIDIA's driver has UUID, minor, model and whether it has
excluded the GPU below ``/proc/driver/nvidia/gpus``, and the memory in its library alone.
``/sys/module/NAME/version`` is there where a module says one (``MODULE_VERSION``).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from koordlet.host.fs import root, sysfs
from koordlet.model import topology

#: Base class, or base and sub class, to what it is. The longer one counts.
_KINDS = {
    "01": "storage",
    "0108": "nvme",
    "02": "network",
    "03": "gpu",
    "0502": "memory",
    "0b40": "accelerator",
    "0c06": "network",
    "12": "accelerator",
}
#: Vendors of chips that show a board's console, and of emulated ones (pci.ids): ASPEED,
#: Matrox, HiSilicon, Silicon Motion, XGI; Bochs, Cirrus, Red Hat (QXL, virtio), VMware, VirtualBox,
#: Hyper-V, Amazon. Nobody computes with those.
_CONSOLES = frozenset(
    {"1a03", "102b", "19e5", "126f", "18ca"}
    | {"1234", "1013", "1b36", "1af4", "15ad", "80ee", "1414", "1d0f"}
)
#: Where a device's name is found; the earlier wins, so a NIC is ``eth0`` rather than ``mlx5_0``.
CLASSES = (
    ("net", re.compile(r"[^/]{1,15}\Z")),
    ("nvme", re.compile(r"nvme[0-9]+\Z")),
    ("drm", re.compile(r"card[0-9]+\Z")),
    ("accel", re.compile(r"accel[0-9]+\Z")),
    ("infiniband", re.compile(r"\w+\Z")),
    ("block", re.compile(r"(?:sd|vd|xvd)[a-z]+\Z")),
)
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z")
_CLASS = re.compile(r"0x([0-9a-f]{6})\Z", re.IGNORECASE)
_VENDOR = re.compile(r"0x([0-9a-f]{4})\Z", re.IGNORECASE)
_FUNCTION = re.compile(r"virtfn([0-9]{1,4})\Z")
_UUID = re.compile(r"^GPU UUID:\s*(GPU-[0-9a-fA-F-]{8,40})\s*$", re.MULTILINE)
_MINOR = re.compile(r"^Device Minor:\s*([0-9]{1,4})\s*$", re.MULTILINE)
_MODEL = re.compile(r"^Model:\s*(\S[^\n]{0,62})", re.MULTILINE)
_EXCLUDED = re.compile(r"^GPU Excluded:\s*Yes\s*$", re.MULTILINE | re.IGNORECASE)
_WORD = re.compile(r"[\w.+-]{1,64}\Z", re.ASCII)


def scan(reader: sysfs.SysfsReader) -> tuple[topology.Device, ...]:
    """All devices of interest, in the order of their addresses."""
    devices: list[topology.Device] = []
    names: Mapping[str, list[str]] | None = None
    rdma: Mapping[str, list[str]] = {}
    nameless = 0
    for address in reader.names(reader.host.sys("bus", "pci", "devices")):
        if not _ADDRESS.match(address):
            continue
        code = _code(reader, address, "class", _CLASS, "not a PCI class")
        nameless += code is None
        kind = _KINDS.get(code[:4], _KINDS.get(code[:2])) if code else None
        if code is None or kind is None:
            continue
        if names is None:
            names, rdma = _names(reader)
        device = _device(reader, address, code, kind, names.get(address, []))
        if kind == "gpu":
            shows = _code(reader, address, "vendor", _VENDOR, "not a vendor's number") in _CONSOLES
            device = replace(device, kind="display") if shows else _described(reader, device)
        if address in rdma:
            device = _connected(reader, device, rdma[address][0])
        devices.append(device)
    if nameless:
        reader.warn(f"/sys/bus/pci/devices: {nameless} devices have no class")
    return tuple(devices)


def _device(
    reader: sysfs.SysfsReader, address: str, code: str, kind: str, names: list[str]
) -> topology.Device:
    at = reader.host.sys("bus", "pci", "devices", address)
    return topology.Device(
        address=address,
        device_class=f"0x{code}",
        kind=kind,
        driver=_driver(reader, at),
        node=reader.ident(reader.host.below(at, "numa_node")),
        name=",".join(names) or None,
    )


def _described(reader: sysfs.SysfsReader, device: topology.Device) -> topology.Device:
    """A GPU with what its driver says of it."""
    if device.driver is None:
        return device
    version = (reader.text(reader.host.sys("module", device.driver, "version")) or "").strip()
    device = replace(device, driver_version=version if _WORD.match(version) else None)
    if device.driver == "amdgpu":
        at = reader.host.sys("bus", "pci", "devices", device.address)
        memory = reader.integer(reader.host.below(at, "mem_info_vram_total"))
        model = (reader.text(reader.host.below(at, "product_name")) or "").strip()[:63]
        known = memory if memory and memory > 0 else None
        return replace(device, memory_bytes=known, model=model or None)
    if device.driver != "nvidia":
        return device
    at = reader.host.proc("driver", "nvidia", "gpus", device.address, "information")
    text = reader.text(at) or ""
    uuid, minor, name = _UUID.search(text), _MINOR.search(text), _MODEL.search(text)
    return replace(
        device,
        uuid=uuid and uuid[1],
        minor=int(minor[1]) if minor else None,
        model=name and name[1].strip(),
        excluded=_EXCLUDED.search(text) is not None,
    )


def _connected(reader: sysfs.SysfsReader, device: topology.Device, name: str) -> topology.Device:
    """An RDMA device with its functions."""
    at = reader.host.sys("bus", "pci", "devices", device.address)
    numbers: dict[int, str] = {}
    virtual = False
    for entry in reader.names(at):
        match = _FUNCTION.match(entry)
        virtual |= entry == "physfn"
        if match is not None:
            with contextlib.suppress(OSError):
                link = reader.host.readlink(reader.host.below(at, entry))
                numbers[int(match[1])] = nearest(link) or ""
    functions = tuple(numbers[number] for number in sorted(numbers) if numbers[number])
    return replace(device, rdma=name, functions=functions, virtual=virtual)


def _code(
    reader: sysfs.SysfsReader, address: str, file: str, form: re.Pattern[str], problem: str
) -> str | None:
    """The hexadecimal number in a file of a device."""
    match = reader.match(reader.host.sys("bus", "pci", "devices", address, file), form, problem)
    return match[1].lower() if match else None


def _driver(reader: sysfs.SysfsReader, at: root.HostPath) -> str | None:
    """Driver name from the link; none for a device without driver."""
    try:
        word = reader.host.readlink(reader.host.below(at, "driver")).rpartition("/")[2]
    except OSError:
        return None
    return word if _WORD.match(word) else None


def _names(reader: sysfs.SysfsReader) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """PCI address to the names in the first class that knows the device, and among RDMA devices."""
    known: dict[str, list[str]] = {}
    rdma: dict[str, list[str]] = {}
    for folder, wanted in CLASSES:
        here: dict[str, list[str]] = {}
        for name in reader.names(reader.host.sys("class", folder)):
            if wanted.match(name) and name.isprintable():
                for address in _addresses(reader, reader.host.sys("class", folder, name)):
                    here.setdefault(address, []).append(name)
        known = here | known
        rdma = here if folder == "infiniband" else rdma
    return known, rdma


def _addresses(reader: sysfs.SysfsReader, path: root.HostPath) -> Iterator[str]:
    """The nearest PCI device that the link leads through."""
    for link in (path, reader.host.below(path, "device")):
        try:
            address = nearest(reader.host.readlink(link))
        except OSError:
            continue
        if address is not None:
            yield address
            return


def nearest(link: str) -> str | None:
    """The last PCI address in the text of a link."""
    return next((step for step in reversed(link.split("/")) if _ADDRESS.match(step)), None)
