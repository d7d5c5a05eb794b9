"""Vendor, model and features of the CPU, from ``/proc/cpuinfo``.

Covers: vendor, model, architecture, flags on x86, arm64, ppc64, s390x, riscv64; processor numbers
and the x86 ids as a last resort where sysfs has no topology directory.
Does not cover: frequencies (``discovery``).

The format is free text that differs per architecture (arch/*/kernel/setup.c, proc.c, cpu.c).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from koordlet.host.fs import root, sysfs
from koordlet.model.record import dataclass

#: The first processor's block is far shorter on every architecture.
_HEAD = 1 << 14
#: 8 192 CPUs with 2 KiB each.
_WHOLE = 16 << 20

_X86_VENDORS = frozenset(
    {"GenuineIntel", "AuthenticAMD", "HygonGenuine", "CentaurHauls", "GenuineTMx86"}
)
#: ``CPU implementer`` of the Arm architecture reference (MIDR_EL1).
_ARM_VENDORS = {
    0x41: "ARM", 0x42: "Broadcom", 0x43: "Cavium", 0x46: "FUJITSU", 0x48: "HiSilicon",
    0x4E: "NVIDIA", 0x50: "APM", 0x51: "Qualcomm", 0x53: "Samsung", 0x56: "Marvell",
    0x61: "Apple", 0x66: "Faraday", 0x69: "Intel", 0x6D: "Microsoft", 0x70: "Phytium",
    0xC0: "Ampere",
}  # fmt: skip
_ARCHITECTURES = frozenset({"x86_64", "aarch64", "ppc64", "ppc64le", "s390x", "riscv64"})
_FLAGS = ("flags", "features", "isa")
_S390_PROCESSOR = re.compile(r"processor ([0-9]{1,6})\Z")
_POWER = re.compile(r"POWER\s?([0-9]{1,2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Info:
    """Data of the first processor."""

    vendor: str | None = None
    model_name: str | None = None
    arch: str | None = None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ids:
    """The x86 ids of one processor."""

    physical: int | None = None
    core: int | None = None


def read(reader: sysfs.SysfsReader) -> Info:
    """Vendor, model, architecture and flags; unknown ones ``None``."""
    first = _fields(_head(reader))
    word = reader.text(reader.host.proc("sys", "kernel", "arch"))
    flags = next((first[key] for key in _FLAGS if first.get(key)), "")
    return Info(
        vendor=_vendor(first),
        model_name=_model(first),
        arch=word or _arch(first, reader),
        flags=tuple(flags.replace("_", " ").split() if "isa" in first else flags.split()),
    )


def processors(reader: sysfs.SysfsReader) -> Mapping[int, Ids]:
    """Every online processor with its x86 ids, where it has them."""
    text = reader.text(reader.host.proc("cpuinfo"), limit=_WHOLE) or ""
    ids: dict[int, Ids] = {}
    current: int | None = None
    for line in text.splitlines():
        key, value = _split(line)
        s390 = _S390_PROCESSOR.match(key)
        if s390 is not None or key == "processor":
            current = _number(s390[1] if s390 else value)
            if current is not None:
                ids[current] = Ids()
        elif current is not None and key == "physical id":
            ids[current] = Ids(_number(value), ids[current].core)
        elif current is not None and key == "core id":
            ids[current] = Ids(ids[current].physical, _number(value))
    return ids


def _head(reader: sysfs.SysfsReader) -> str:
    """The beginning of the file: on a large machine the rest is megabytes of repetition."""
    path = reader.host.proc("cpuinfo")
    if not reader.host.live:
        return (reader.text(path, limit=_WHOLE) or "")[:_HEAD]
    try:
        return _live_head(reader.host, path)
    except OSError as error:
        reader.warn(f"{path}: cannot be read")
        reader.silent(path, error)
        return ""


def _live_head(host: root.HostRoot, path: root.HostPath) -> str:
    handle = host.open(path)
    try:
        return host.pread(handle, _HEAD).decode("utf-8", "replace")
    finally:
        host.close(handle)


def _fields(text: str) -> dict[str, str]:
    """The first value of each key: keys in lower case."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, value = _split(line)
        if key and key not in fields:
            fields[key] = value
    return fields


def _split(line: str) -> tuple[str, str]:
    key, _, value = line.partition(":")
    return key.strip().lower(), value.strip()


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _vendor(first: Mapping[str, str]) -> str | None:
    if vendor := first.get("vendor_id") or first.get("vendor"):
        return vendor
    if implementer := first.get("cpu implementer"):
        try:
            return _ARM_VENDORS.get(int(implementer, 16), implementer)
        except ValueError:
            return None
    if _POWER.search(first.get("cpu", "")):
        return "IBM"
    return first.get("mvendorid")


def _model(first: Mapping[str, str]) -> str | None:
    for key in ("model name", "cpu", "uarch"):
        if first.get(key):
            return " ".join(first[key].split())
    part, machine = first.get("cpu part"), first.get("processor 0", "")
    if part:
        return f"part {part}"
    return machine.partition("machine = ")[2].strip() or first.get("family")


def _arch(first: Mapping[str, str], reader: sysfs.SysfsReader) -> str | None:
    """Architecture as of ``uname -m``, as far as the text shows it (6.1 and later do)."""
    vendor = first.get("vendor_id", "")
    if vendor == "IBM/S390":
        return "s390x"
    if first.get("arch", "").startswith("IA-64"):
        return "ia64"
    if vendor in _X86_VENDORS or ("cpu family" in first and "flags" in first):
        return "x86_64" if "lm" in first.get("flags", "").split() else "i686"
    if "cpu implementer" in first:
        is_64 = first.get("cpu architecture") in ("8", "AArch64")
        return "aarch64" if is_64 else "armv7l"
    if first.get("isa", "").startswith("rv"):
        return "riscv64" if first["isa"].startswith("rv64") else "riscv32"
    return _released_for(reader) or _power_arch(first, reader)


def _released_for(reader: sysfs.SysfsReader) -> str | None:
    """Some distributions end the name of the kernel's release with the architecture."""
    release = reader.text(reader.host.proc("sys", "kernel", "osrelease")) or ""
    word = release.rpartition(".")[2]
    return word if word in _ARCHITECTURES else None


def _power_arch(first: Mapping[str, str], reader: sysfs.SysfsReader) -> str | None:
    """The byte order is not in the text: old processors are big-endian, else the build tells.

    Where even that is silent, little-endian is what distributions build for POWER8 and later.
    """
    match = _POWER.search(first.get("cpu", ""))
    if match is None:
        return None
    version = reader.text(reader.host.proc("version")) or ""
    if "ppc64le" in version or "ppc64el" in version or "powerpc64le" in version:
        return "ppc64le"
    if int(match[1]) < 8 or "ppc64" in version or "powerpc64" in version:
        return "ppc64"
    path = reader.host.proc("cpuinfo")
    reader.warn(f"{path}: the byte order of this POWER{match[1]} is unknown; assumed ppc64le")
    return "ppc64le"
