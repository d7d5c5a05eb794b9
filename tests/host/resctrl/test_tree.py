"""Reading resctrl: mounts, hardware of every kind, groups, why there is nothing."""

from __future__ import annotations

import pytest

from koordlet.host.resctrl import tree
from koordlet.model.resctrl import Unit
from tests.kit import resctrl as kit
from tests.kit.kernel import KernelHost, Machine


def reader(
    host: KernelHost, vendor: str = "GenuineIntel", flags: str = ""
) -> tree.ResctrlTreeReader:
    """A reader that knows of mounts."""
    made = tree.ResctrlTreeReader(host)
    made.refresh(vendor, flags.split())
    return made


def test_intel_with_code_and_data() -> None:
    """Two resources of one cache, half the classes, the mount's own options."""
    mounted = reader(kit.machine("intel,cdp,l2,cbm=20", mount="cdp")).read()
    assert mounted is not None
    names = [(cache.name, cache.ways, cache.num_closids) for cache in mounted.hardware.caches]

    assert names == [("L2", 8, 8), ("L3DATA", 20, 8), ("L3CODE", 20, 8)]
    assert (mounted.options, mounted.hardware.most_groups) == (("cdp",), 8)


@pytest.mark.parametrize(
    ("rdt", "options", "vendor", "unit", "free"),
    [
        ("intel", "", "GenuineIntel", Unit.PERCENT, 100),
        ("intel", "mba_MBps", "GenuineIntel", Unit.MBPS, (1 << 32) - 1),
        ("amd", "", "AuthenticAMD", Unit.EIGHTHS, 2048),
        ("amd", "", "", Unit.EIGHTHS, 2048),
    ],
)
def test_the_unit_of_bandwidth(rdt: str, options: str, vendor: str, unit: Unit, free: int) -> None:
    """No file says it: options, the vendor, and values that are no percentage do."""
    mounted = reader(kit.machine(rdt, mount=options), vendor).read()
    assert mounted is not None
    (bandwidth,) = mounted.hardware.bandwidths

    assert (unit, free) == (bandwidth.unit, bandwidth.free(0))


def test_devices_that_fill_the_cache_have_a_class() -> None:
    """The last one: a group that counts on it is refused (ENOSPC)."""
    host = kit.machine("amd")
    host.tree.text(f"{kit.PLACE}/info/L3/io_alloc", "enabled\n")
    mounted = reader(host, "AuthenticAMD").read()
    assert mounted is not None

    assert mounted.hardware.most_groups == 15


def test_cache_ids_have_gaps() -> None:
    """The domains are those that the root's file names."""
    host = kit.machine("amd", l3={0: "0-1", 8: "2-5", 16: "6-7"})
    mounted = reader(host, "AuthenticAMD").read()
    assert mounted is not None

    assert mounted.hardware.caches[0].domains == (0, 8, 16)
    assert mounted.hardware.caches[0].sparse


@pytest.mark.parametrize("rdt", ["intel,nol3", "intel,nomba", "intel,nomon", "intel,l2,nol3,nomba"])
def test_what_is_absent_is_not_there(rdt: str) -> None:
    """No empty resource is made up."""
    mounted = reader(kit.machine(rdt)).read()
    assert mounted is not None
    names = {cache.name for cache in mounted.hardware.caches}

    assert ("nol3" in rdt) is ("L3" not in names)
    assert ("nomba" in rdt) is (not mounted.hardware.bandwidths)
    assert ("nomon" in rdt) is (mounted.hardware.monitoring is None)


@pytest.mark.parametrize(
    ("host", "flags", "why"),
    [
        (Machine("0-1"), "", "cannot control cache"),
        (Machine("0-1"), "cat_l3 mba", "cat_l3 mba, but this kernel has no resctrl"),
        (kit.machine(mount=None), "cat_l3", "not mounted"),
    ],
)
def test_why_there_is_nothing(host: KernelHost, flags: str, why: str) -> None:
    """A sentence for the operator, from what the machine itself says."""
    made = reader(host, flags=flags)

    assert made.read() is None
    assert why in made.unsupported[0].why


def test_a_promise_that_the_kernel_does_not_keep() -> None:
    """Some processors say cat_l3 and need a word on the kernel's command line."""
    made = reader(kit.machine("intel,nol3"), flags="cat_l3")

    assert [gap.feature for gap in made.unsupported] == ["resctrl.L3"]


def test_groups_come_with_inode_and_monitors() -> None:
    """Who a group is, and what counts in it."""
    host = kit.machine()
    host.mkdir(host.at(f"{kit.PLACE}/BE"))
    host.mkdir(host.at(f"{kit.PLACE}/BE/mon_groups/m"))
    mounted = reader(host).read()
    assert mounted is not None

    assert list(mounted.groups) == ["", "BE"]
    assert (mounted.groups["BE"].monitors, mounted.groups["BE"].mode) == (("m",), "shareable")
    assert host.stat(host.at(f"{kit.PLACE}/BE")).inode == mounted.groups["BE"].inode


def test_unmounted_between_two_looks() -> None:
    """Nothing is read from an empty directory, and why is said."""
    host = kit.machine()
    made = reader(host)
    host.unmount(host.at(kit.PLACE))

    assert made.read() is None
    assert "unmounted" in made.unsupported[0].why
