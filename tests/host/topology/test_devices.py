"""PCI devices have their class, driver, node and name, whatever is missing or wrong."""

from __future__ import annotations

import pytest

from koordlet.host.recording import contents
from koordlet.model import topology
from tests.kit import machines
from tests.kit.topologies import discover, warned

PCI = "sys/bus/pci/devices"


def pci(address: str, code: str, node: int = -1, driver: str | None = None) -> machines.Tree:
    """One device as sysfs shows it."""
    at = f"sys/devices/pci0000:00/{address}"
    tree = {
        f"{PCI}/{address}": f"->../../../devices/pci0000:00/{address}",
        f"{at}/class": f"{code}\n",
        f"{at}/numa_node": f"{node}\n",
    }
    if driver is not None:
        tree[f"{at}/driver"] = f"->../../../bus/pci/drivers/{driver}"
    return tree


def named(kind: str, name: str, address: str, between: str = "") -> machines.Tree:
    """The entry of a class that leads to a device."""
    way = f"../../devices/pci0000:00/0000:00:01.0/{address}{between}/{kind}/{name}"
    return {f"sys/class/{kind}/{name}": f"->{way}"}


def found(*parts: machines.Tree) -> dict[str, topology.Device]:
    """The devices of a machine with these files, by address."""
    tree = machines.xeon_2s_smt2()
    for part in parts:
        tree |= part
    return {device.address: device for device in discover(tree).devices}


def test_nic() -> None:
    """A NIC is known by the name of its interface, with driver and node."""
    devices = found(pci("0000:3b:00.0", "0x020000", 1, "ice"), named("net", "eth0", "0000:3b:00.0"))

    assert {
        "0000:3b:00.0": topology.Device(
            address="0000:3b:00.0",
            device_class="0x020000",
            kind="network",
            driver="ice",
            node=1,
            name="eth0",
        )
    } == devices


@pytest.mark.parametrize(
    ("code", "kind", "folder", "name"),
    [
        ("0x010802", "nvme", "nvme", "nvme0"),
        ("0x030200", "gpu", "drm", "card1"),
        ("0x120000", "accelerator", "accel", "accel0"),
        ("0x010601", "storage", "block", "sda"),
        ("0x020700", "network", "infiniband", "mlx5_0"),
        ("0x050210", "memory", "net", None),
        ("0x0B4000", "accelerator", "net", None),
    ],
)
def test_kinds(code: str, kind: str, folder: str, name: str | None) -> None:
    """The class says what it is, the class folder what it is called."""
    address = "0000:5e:00.0"
    more = named(folder, name, address) if name else {}

    device = found(pci(address, code), more)[address]

    assert (kind, name, code.lower()) == (device.kind, device.name, device.device_class)


@pytest.mark.parametrize(
    ("code", "vendor", "kind"),
    [
        # A server's board shows its console by a chip of its own, a virtual machine by an emulator.
        ("0x030000", "0x1a03", "display"),
        ("0x030000", "0x102B", "display"),
        ("0x038000", "0x1af4", "display"),
        ("0x030000", "0x10de", "gpu"),
        ("0x030000", "damage", "gpu"),
        # Of other classes the same vendors make other things.
        ("0x120000", "0x19e5", "accelerator"),
    ],
)
def test_what_only_shows_a_console_is_no_gpu(code: str, vendor: str, kind: str) -> None:
    """Nobody computes with it: a Device with it would have pods scheduled to a BMC."""
    tree = pci("0000:03:00.0", code)
    tree["sys/devices/pci0000:00/0000:03:00.0/vendor"] = f"{vendor}\n"

    assert found(tree)["0000:03:00.0"].kind == kind


@pytest.mark.parametrize("code", ["0x060400", "0x0c0330", "0x088000", "0x050000"])
def test_boards_are_left_out(code: str) -> None:
    """Bridges, USB, timers and plain memory controllers are nobody's business."""
    assert found(pci("0000:00:1f.0", code)) == {}


def test_name_behind_virtio() -> None:
    """A virtual NIC hangs on a virtio device, which hangs on PCI."""
    address = "0000:00:03.0"

    devices = found(
        pci(address, "0x020000", driver="virtio-pci"), named("net", "eth0", address, "/virtio1")
    )

    assert (devices[address].name, devices[address].node) == ("eth0", None)


def test_nic_is_called_by_its_interfaces() -> None:
    """Two ports of one function are both named; the name of its verbs device is not."""
    address = "0000:5e:00.0"

    devices = found(
        pci(address, "0x020000"),
        named("net", "p1", address),
        named("net", "p0", address),
        named("infiniband", "mlx4_0", address),
    )

    assert devices[address].name == "p0,p1"


def test_old_class_directory() -> None:
    """Where an interface is a directory, its ``device`` link leads to the device."""
    address = "0000:02:00.0"
    link = {"sys/class/net/eth0/device": f"->../../../devices/pci0000:00/{address}"}

    assert found(pci(address, "0x020000"), link)[address].name == "eth0"


def test_what_is_missing_is_null() -> None:
    """Without driver, node and name the device is still listed."""
    device = found({f"{PCI}/0000:01:00.0/class": "0x020000\n"})["0000:01:00.0"]

    assert (device.driver, device.node, device.name) == (None, None, None)


def test_damage_is_told() -> None:
    """A class that is none, and one that is missing, are warned of; the others stay."""
    tree = (
        machines.xeon_2s_smt2() | pci("0000:01:00.0", "network") | pci("0000:02:00.0", "0x020000")
    )
    tree |= {f"{PCI}/0000:03:00.0/vendor": "0x8086\n", f"{PCI}/nonsense/class": "0x020000\n"}

    machine = discover(tree)

    assert [device.address for device in machine.devices] == ["0000:02:00.0"]
    assert warned(machine, "0000:01:00.0/class", "'network'")
    assert warned(machine, "2 devices have no class")


def test_devices_survive_a_recording() -> None:
    """What names and places a device is recorded."""
    tree = machines.xeon_2s_smt2()
    tree |= pci("0000:3b:00.0", "0x010802", 1, "nvme") | named("nvme", "nvme0", "0000:3b:00.0")
    host = machines.to_host(tree)

    again = {
        item.path.lstrip("/"): f"->{item.link}" if item.link is not None else item.data.decode()
        for item in contents.items(host)
    }

    assert discover(tree).devices == discover(again).devices
    assert discover(again).devices[0].name == "nvme0"


def test_a_gpu_as_its_driver_tells_it() -> None:
    """Memory of amdgpu, identity of NVIDIA's; what is no number or no UUID is unknown."""
    about = "proc/driver/nvidia/gpus/0000:3b:00.0/information"
    amd = "sys/devices/pci0000:00/0000:5e:00.0/mem_info_vram_total"
    parts = (
        pci("0000:3b:00.0", "0x030200", 0, "nvidia"),
        pci("0000:5e:00.0", "0x030000", 1, "amdgpu"),
        {amd: "17163091968\n"},
    )
    text = "Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t GPU-1a2b3c4d-0000\nDevice Minor: \t 3\n"
    module = {"sys/module/nvidia/version": "550.54.15\n", "sys/module/amdgpu/version": "a b\n"}
    devices = found(*parts, {about: text, **module})
    nvidia = devices["0000:3b:00.0"]
    assert (nvidia.model, nvidia.driver_version) == ("NVIDIA H100 80GB HBM3", "550.54.15")
    assert (nvidia.excluded, devices["0000:5e:00.0"].driver_version) == (False, None)
    assert (devices["0000:3b:00.0"].uuid, devices["0000:3b:00.0"].minor) == ("GPU-1a2b3c4d-0000", 3)
    assert devices["0000:5e:00.0"].memory_bytes == 17163091968

    devices = found(*parts, {about: "GPU UUID: ????\nGPU Excluded:\t Yes\n", amd: "0\n"})
    assert devices["0000:3b:00.0"].excluded
    assert (devices["0000:3b:00.0"].uuid, devices["0000:3b:00.0"].minor) == (None, None)
    assert devices["0000:5e:00.0"].memory_bytes is None


def test_rdma_and_its_functions() -> None:
    """A card keeps the name of its interface; its functions come in the order of their numbers."""
    at = "sys/devices/pci0000:00/0000:3b:00.0"
    devices = found(
        pci("0000:3b:00.0", "0x020000", 1, "mlx5_core"),
        pci("0000:3b:00.1", "0x020000", 1, "mlx5_core"),
        named("net", "eth0", "0000:3b:00.0"),
        named("infiniband", "mlx5_0", "0000:3b:00.0"),
        named("infiniband", "mlx5_1", "0000:3b:00.1"),
        {
            f"{at}/virtfn10": "->../0000:3b:01.2",
            f"{at}/virtfn2": "->../0000:3b:00.1",
            "sys/devices/pci0000:00/0000:3b:00.1/physfn": "->../0000:3b:00.0",
        },
    )
    card, function = devices["0000:3b:00.0"], devices["0000:3b:00.1"]

    assert (card.name, card.rdma, card.virtual) == ("eth0", "mlx5_0", False)
    assert card.functions == ("0000:3b:00.1", "0000:3b:01.2")
    assert (function.rdma, function.virtual) == ("mlx5_1", True)
