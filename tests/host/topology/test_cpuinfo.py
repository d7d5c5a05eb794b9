"""Vendor, model, architecture and flags are read from what each architecture writes."""

from __future__ import annotations

import pytest

from koordlet.host.fs import sysfs
from koordlet.host.topology import cpuinfo
from tests.kit import machines

X86 = (
    "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel name\t: EPYC\n"
    "flags\t: fpu lm mba\n"
)
ARM = (
    "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0xc0\n"
    "CPU architecture: 8\nCPU part\t: 0xac3\n"
)
S390 = (
    "vendor_id       : IBM/S390\nfeatures\t: esan3 zarch\n"
    "processor 0: version = FF, machine = 3931\n"
)
RISCV = (
    "processor\t: 0\nhart\t\t: 1\nisa\t\t: rv64imafdc_zicsr_sstc\nmmu\t\t: sv39\n"
    "uarch\t\t: sifive,u74-mc\nmvendorid\t: 0x489\n\nprocessor\t: 1\nisa\t\t: rv64imafdc\n"
)
POWER = "processor\t: 0\ncpu\t\t: POWER{0}, altivec supported\n\nmachine\t\t: PowerNV\n"


def read(text: str, **files: str) -> tuple[cpuinfo.Info, tuple[str, ...]]:
    """What a machine with this cpuinfo says, and its warnings; ``files`` are below /proc."""
    tree = {"proc/cpuinfo": text}
    tree |= {f"proc/{name.replace('__', '/')}": content for name, content in files.items()}
    reader = sysfs.SysfsReader(machines.to_host(tree))
    return cpuinfo.read(reader), reader.warnings()


@pytest.mark.parametrize(
    ("text", "vendor", "model", "arch", "flags"),
    [
        (X86, "AuthenticAMD", "EPYC", "x86_64", ("fpu", "lm", "mba")),
        (X86.replace(" lm", ""), "AuthenticAMD", "EPYC", "i686", ("fpu", "mba")),
        (ARM, "Ampere", "part 0xac3", "aarch64", ("fp", "asimd")),
        (S390, "IBM/S390", "3931", "s390x", ("esan3", "zarch")),
        (RISCV, "0x489", "sifive,u74-mc", "riscv64", ("rv64imafdc", "zicsr", "sstc")),
        (POWER.format(7), "IBM", "POWER7, altivec supported", "ppc64", ()),
        ("", None, None, None, ()),
    ],
)
def test_architectures(
    text: str, vendor: str | None, model: str | None, arch: str | None, flags: tuple[str, ...]
) -> None:
    """Each architecture has words of its own for the same things."""
    expected = cpuinfo.Info(vendor=vendor, model_name=model, arch=arch, flags=flags)

    assert (expected, ()) == read(text)


@pytest.mark.parametrize(
    ("files", "arch"),
    [
        ({"version": "Linux version 5.10 (powerpc64le-linux-gnu-gcc-10) #1\n"}, "ppc64le"),
        ({"version": "Linux version 5.10 (powerpc64-linux-gnu-gcc-10) #1\n"}, "ppc64"),
        ({"version": "Linux version 3.10.0-1.el7.ppc64 (gcc) #1\n"}, "ppc64"),
        ({"sys__kernel__osrelease": "4.18.0-80.el8.ppc64le\n"}, "ppc64le"),
        ({"sys__kernel__arch": "ppc64\n"}, "ppc64"),
    ],
)
def test_byte_order_of_power(files: dict[str, str], arch: str) -> None:
    """POWER8 and later run in both byte orders; kernel, release or compiler tell which."""
    info, warnings = read(POWER.format(9), **files)

    assert (arch, ()) == (info.arch, warnings)


def test_unknown_byte_order_is_taken_and_told() -> None:
    """Where nothing tells the byte order, the common one is taken, with a warning."""
    info, warnings = read(POWER.format(10))

    assert info.arch == "ppc64le"
    assert "byte order of this POWER10" in warnings[0]


def test_release_tells_where_cpuinfo_is_missing() -> None:
    """Without cpuinfo, the name of the kernel's release may end with the architecture."""
    info, _ = read("", sys__kernel__osrelease="5.14.0-70.el9.aarch64\n")

    assert info.arch == "aarch64"


def test_riscv_processors_are_numbered() -> None:
    """The processors of riscv64 are found, without the ids that only x86 has."""
    reader = sysfs.SysfsReader(machines.to_host({"proc/cpuinfo": RISCV}))

    assert {0: cpuinfo.Ids(), 1: cpuinfo.Ids()} == cpuinfo.processors(reader)
